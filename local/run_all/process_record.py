"""A record of a stack's processes in its data folder, used to stop processes that a killed launcher left
running.

Process ids are reused, so a process is recognised by its id and start time.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from local.run_all.stack_settings import StackError

FILE_NAME = "processes.json"
LAUNCHER = "launcher"
END_TIMEOUT_S = 20.0


def birth(pid: int) -> str | None:
    """Return the start time of a process in a system-specific format, or None if it doesn't exist."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            # The process name in parentheses may contain spaces, so split the text after it.
            after_name = stat.read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return None if after_name[0] == "Z" else after_name[19]
    listed = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return listed.stdout.strip() or None


def claim(data: Path) -> None:
    """Claim the data folder for this launcher, and stop the processes that an earlier one left running.

    Raises:
        StackError: if another launcher is running on the folder.
    """
    recorded = read(data)
    alive = {name: pid for name, (pid, born) in recorded.items() if birth(pid) == born}
    if alive.get(LAUNCHER, os.getpid()) != os.getpid():
        raise StackError(
            f"A stack with the data folder {data} is running (process {alive[LAUNCHER]}): stop it, or set "
            "GROUNDWORK_DATA to another folder."
        )
    for name, pid in alive.items():
        if name != LAUNCHER:
            _end(pid)
    write(data, {})


def write(data: Path, children: Mapping[str, int]) -> None:
    """Record the process ids of this launcher and its children."""
    pids = {LAUNCHER: os.getpid(), **children}
    recorded = {name: [pid, birth(pid)] for name, pid in pids.items()}
    draft = data / f"{FILE_NAME}.new"
    draft.write_text(json.dumps(recorded), encoding="utf-8")
    draft.replace(data / FILE_NAME)


def release(data: Path) -> None:
    """Delete the record. Call this after all processes of the folder have ended."""
    (data / FILE_NAME).unlink(missing_ok=True)


def read(data: Path) -> dict[str, tuple[int, str]]:
    """Return (process id, start time) of each recorded process, by name."""
    path = data / FILE_NAME
    if not path.exists():
        return {}
    return {
        name: (pid, born)
        for name, (pid, born) in json.loads(path.read_text(encoding="utf-8")).items()
        if born
    }


def _end(pid: int) -> None:
    born = birth(pid)
    deadline = time.monotonic() + END_TIMEOUT_S
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        while birth(pid) == born:
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
                return
            time.sleep(0.05)
