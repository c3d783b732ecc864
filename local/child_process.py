"""Child processes for the servers of the local stack: start, health checks, logs and stop."""

import contextlib
import http.client
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from local.run_all.stack_settings import StackError

POLL_S = 0.05
PROBE_TIMEOUT_S = 2.0
START_TIMEOUT_S = 90.0  # servers start in 1 to 4 s, but take much longer on a busy machine with cold files
STOP_TIMEOUT_S = 20.0  # time for the host to finish running functions
TAIL_LINES = 25


class ChildProcess:
    """A started server process. `name` identifies it in messages."""

    def __init__(self, name: str, process: "subprocess.Popen[bytes]", log_path: Path) -> None:
        self.name = name
        self.log_path = log_path
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """Ask the process to exit with SIGTERM, and kill it after STOP_TIMEOUT_S."""
        if self.is_running():
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill the process immediately, to simulate a crash."""
        if self.is_running():
            self._process.kill()
        self._process.wait()

    def describe_end(self) -> str:
        """Return a message with the exit code and the end of the log."""
        code = self._process.poll()
        return (
            f"The {self.name} ended with exit code {code}. The end of {self.log_path}:\n{tail(self.log_path)}"
        )


def start_child(
    name: str, command: Sequence[str], log_path: Path, environment: Mapping[str, str], *, folder: Path
) -> ChildProcess:
    """Start a server in the working directory `folder`. Its stdout and stderr are appended to the log
    file.
    """
    with log_path.open("ab") as log:
        # A separate process group keeps Ctrl-C away from the server, so that the launcher can stop all
        # servers gracefully. A separate session would be wrong, because Linux schedules sessions as groups
        # and priorities would apply only within one.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=dict(environment),
            cwd=folder,
            process_group=0,
        )
    return ChildProcess(name, process, log_path)


def wait_until_healthy(
    child: ChildProcess, port: int, path: str, headers: Mapping[str, str] | None = None
) -> None:
    """Wait until a GET of `path` returns 200.

    Raises:
        StackError: if the server exits or doesn't respond in time. The message contains the end of its log.
    """
    deadline = time.monotonic() + START_TIMEOUT_S
    while not answers(port, path, headers or {}):
        if not child.is_running():
            raise StackError(child.describe_end())
        if time.monotonic() > deadline:
            raise StackError(
                f"The {child.name} did not answer on port {port} within {START_TIMEOUT_S:.0f} s. The end of "
                f"{child.log_path}:\n{tail(child.log_path)}"
            )
        time.sleep(POLL_S)


def answers(port: int, path: str, headers: Mapping[str, str]) -> bool:
    """Return whether a GET of a path on a loopback port returns 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PROBE_TIMEOUT_S)
    with contextlib.closing(connection):
        try:
            connection.request("GET", path, headers=dict(headers))
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False


def tail(log_path: Path) -> str:
    """Return the last lines of a log file."""
    if not log_path.exists():
        return "(no log)"
    with log_path.open("rb") as log:
        log.seek(max(0, log.seek(0, os.SEEK_END) - 16_384))
        lines = log.read().decode("utf-8", errors="replace").splitlines()
    return "\n".join(lines[-TAIL_LINES:])
