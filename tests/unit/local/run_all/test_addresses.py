"""Tests for the addresses that `make run` prints once all services are up."""

from pathlib import Path

import pytest

from local.run_all.__main__ import _print_addresses
from local.run_all.stack import LocalStack
from local.run_all.stack_settings import Ports, StackSettings
from local.run_all.tokens import StackSecrets
from samples.acl import ANNA


def test_the_address_comes_first_and_no_secret_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = LocalStack(StackSettings(Ports(), tmp_path))
    stack.secrets = StackSecrets("search-key", "model-key", "x" * 32, "y" * 32)
    _print_addresses(stack)
    text = capsys.readouterr().out
    assert text.split()[:2] == ["Open", "http://127.0.0.1:7071/"]
    assert "--dev-user anna" in text
    secrets = ("AccountKey", stack.token(ANNA)[:10], "search-key", "model-key")
    assert [secret for secret in secrets if secret in text] == []
