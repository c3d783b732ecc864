"""Servers that all workers of a pytest run share.

The first worker that requests a server starts it while it holds a lock file. The others read its ports from a
record in the folder of the run. The controller stops the servers after its workers have ended, so a server
may outlive the worker that started it.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from filelock import FileLock

from local.child_process import ChildProcess

STOP_TIMEOUT_S = 10.0
_FOLDER = "GROUNDWORK_TEST_RUN"  # the environment variable with the folder of the run
_started: list[ChildProcess] = []  # keeps Popen objects alive, which warn if collected early

Start = Callable[[Path], tuple[ChildProcess, list[int]]]
"""Starts a server with its data in a folder; returns it with its ports once they accept connections."""


def begin_run() -> None:
    """Create the folder of this run. The controller calls this before it starts workers."""
    os.environ[_FOLDER] = tempfile.mkdtemp(prefix="groundwork-tests-")


def end_run() -> None:
    """Stop every server of this run and delete the folder."""
    folder = Path(os.environ.pop(_FOLDER))
    for record in folder.glob("*.json"):
        _stop(**json.loads(record.read_text()))
    shutil.rmtree(folder, ignore_errors=True)


def ports_of(name: str, start: Start) -> list[int]:
    """Return the ports of the server with this name, and start the server if no worker has done so."""
    folder = Path(os.environ[_FOLDER])
    record = folder / f"{name}.json"
    with FileLock(folder / f"{name}.lock"):
        if not record.exists():
            data = folder / name
            data.mkdir()
            process, opened = start(data)
            _started.append(process)
            record.write_text(json.dumps({"pid": process.pid, "ports": opened}))
    ports: list[int] = json.loads(record.read_text())["ports"]
    return ports


def _stop(pid: int, ports: list[int]) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_TIMEOUT_S
    # Its ports close when it exits. Its process id is less reliable, because the parent that would reap it
    # may be gone.
    while any(accepts_connections(port) for port in ports):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    for process in _started:
        if process.pid == pid:
            with suppress(subprocess.TimeoutExpired):
                process.stop()


def accepts_connections(port: int) -> bool:
    """Return whether a server listens on a loopback port."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
