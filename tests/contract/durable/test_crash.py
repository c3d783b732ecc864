"""SIGKILL a few times in the middle of a run; the long version is tests/e2e/durable."""

from pathlib import Path

import pytest

from tests.contract.durable.crash_run import CrashRun, check

pytestmark = [pytest.mark.contract, pytest.mark.e2e]  # long: see `make e2e`


async def test_every_result_is_right_after_four_kills(tmp_path: Path) -> None:
    check(await CrashRun(tmp_path, seed=4).run(kills=4))
