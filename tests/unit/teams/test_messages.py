"""Tests for messages that explain, in the user's language, why a file can't be read."""

from typing import get_args

import pytest

from shared.platform.errors import FileFailure
from shared.teams.messages import file_reason


@pytest.mark.parametrize("failure", get_args(FileFailure))
def test_every_failure_has_german_words(failure: FileFailure) -> None:
    assert file_reason(failure, "Page 12 cannot be read.", "de") != "Page 12 cannot be read."


def test_english_is_what_the_parser_says() -> None:
    assert file_reason("damaged", "Page 12 cannot be read.", "en") == "Page 12 cannot be read."
