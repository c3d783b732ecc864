"""SIGKILL at twenty random moments of a run with parallel children: every result right, recorded once."""

from pathlib import Path

import pytest

from tests.contract.durable.crash_run import CrashRun, check

pytestmark = pytest.mark.e2e


async def test_every_result_is_right_after_twenty_kills(tmp_path: Path) -> None:
    check(await CrashRun(tmp_path, seed=20).run(kills=20))
