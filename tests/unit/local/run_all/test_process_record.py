"""Tests for ending the child processes of a killed launcher without affecting a running one."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.run_all import process_record
from local.run_all.stack_settings import StackError

SLEEP = [sys.executable, "-c", "import time; time.sleep(300)"]


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(SLEEP) as process:
        yield process
        process.kill()


def record(folder: Path, entries: dict[str, tuple[int, str | None]]) -> None:
    (folder / process_record.FILE_NAME).write_text(json.dumps(entries))


def test_a_child_of_a_dead_launcher_is_ended(tmp_path: Path, sleeper: "subprocess.Popen[bytes]") -> None:
    born = process_record.birth(sleeper.pid)
    record(tmp_path, {"launcher": (2**22 + 1, "long ago"), "search server": (sleeper.pid, born)})
    process_record.claim(tmp_path)
    assert sleeper.wait(10) != 0


def test_a_process_that_got_the_id_of_a_dead_child_is_left_alone(
    tmp_path: Path, sleeper: "subprocess.Popen[bytes]"
) -> None:
    record(tmp_path, {"search server": (sleeper.pid, "another time")})
    process_record.claim(tmp_path)
    assert sleeper.poll() is None


def test_a_folder_in_use_is_refused(tmp_path: Path, sleeper: "subprocess.Popen[bytes]") -> None:
    record(tmp_path, {"launcher": (sleeper.pid, process_record.birth(sleeper.pid))})
    with pytest.raises(StackError, match=f"process {sleeper.pid}.*GROUNDWORK_DATA"):
        process_record.claim(tmp_path)
    assert sleeper.poll() is None


def test_a_released_folder_can_be_claimed_again(tmp_path: Path) -> None:
    process_record.claim(tmp_path)
    process_record.release(tmp_path)
    process_record.claim(tmp_path)
