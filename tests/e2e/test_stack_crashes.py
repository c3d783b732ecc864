"""Crashes of the launcher and of the servers that it started."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from local.run_all import process_record
from local.run_all.stack import ROOT
from local.run_all.stack_settings import DATA_SETTING, PORT_SETTINGS
from tests.e2e.stack_fixture import environment_without_model

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

START_GUARD_S = 240.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the data folder of consecutive launchers, of which only the first ingests the samples."""
    return tmp_path_factory.mktemp("launched")


@contextmanager
def launch(folder: Path, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Yield a launcher, and stop it if the test fails, because leaving the block waits for its end."""
    ports = dict.fromkeys(PORT_SETTINGS.values(), "0")
    environment = {**environment_without_model(), DATA_SETTING: str(folder), **ports}
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "local.run_all", *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as launcher:
        try:
            yield launcher
        except BaseException:
            launcher.terminate()
            raise


def read_until(launcher: "subprocess.Popen[str]", words: str) -> str:
    assert launcher.stdout is not None
    seen = ""
    deadline = time.monotonic() + START_GUARD_S
    for line in launcher.stdout:
        seen += line
        if words in line:
            return seen
        assert time.monotonic() < deadline, seen
    raise AssertionError(f"the launcher ended before it said {words!r}:\n{seen}")


def children_of(folder: Path) -> dict[str, tuple[int, str]]:
    recorded = process_record.read(folder)
    return {name: entry for name, entry in recorded.items() if name != process_record.LAUNCHER}


def is_alive(entry: tuple[int, str]) -> bool:
    return process_record.birth(entry[0]) == entry[1]


def test_a_killed_launcher_can_be_started_again_and_sigterm_ends_everything(folder: Path) -> None:
    with launch(folder) as launcher:
        output = read_until(launcher, "Serving until Ctrl-C")
        assert "not a language model" in output
        assert "heron-400-manual.pdf, page 4 (verified)" in output
        orphans = children_of(folder)
        assert len(orphans) == 4
        launcher.kill()
    assert all(is_alive(entry) for entry in orphans.values())
    with launch(folder) as launcher:
        read_until(launcher, "Serving until Ctrl-C")
        assert not any(is_alive(entry) for entry in orphans.values())
        children = children_of(folder)
        launcher.send_signal(signal.SIGTERM)
        assert launcher.wait(120) == 0
    assert not any(is_alive(entry) for entry in children.values())


@pytest.mark.nightly
def test_a_server_that_dies_ends_the_stack_and_is_named(folder: Path) -> None:
    with launch(folder) as launcher:
        read_until(launcher, "Serving until Ctrl-C")
        children = children_of(folder)
        os.kill(children["search server"][0], signal.SIGKILL)
        output = read_until(launcher, "The search server ended with exit code -9")
        assert launcher.wait(120) == 1, output
    assert not any(is_alive(entry) for entry in children.values())
