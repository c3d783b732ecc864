"""Runs `python -m local.host` as a child process, and reads the notes of the sample app."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import httpx

from local.run_all.stack import QUICK_RECOVERY
from local.run_all.tokens import host_key

ROOT = Path(__file__).resolve().parents[3]
SAMPLE_APP = Path(__file__).parent / "sample_app"
HANG_GUARD_S = 120.0


class HostProcess:
    """A host with the sample app. It is a context manager, which stops the process on exit."""

    def __init__(
        self, folder: Path, port: int, settings: Mapping[str, str], app_folder: Path = SAMPLE_APP
    ) -> None:
        self.folder = folder
        self.base_url = f"http://127.0.0.1:{port}"
        self._notes = folder / "notes.jsonl"
        self._errors = folder / "stderr.txt"
        self._port = port
        self._app_folder = app_folder
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "default",
            "SAMPLE_NOTES": str(self._notes),
            **QUICK_RECOVERY,
            **settings,
        }
        self._process: subprocess.Popen[str] | None = None
        self.ready_line = ""

    def start(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        data = self.folder / "data"
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "local.host", "--port", str(self._port), "--data", str(data)],
                cwd=self._app_folder,
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        assert self._process.stdout is not None
        guard = threading.Timer(HANG_GUARD_S, self._process.kill)
        guard.start()
        self.ready_line = self._process.stdout.readline().strip()
        guard.cancel()
        if not self.ready_line:
            self.kill()
            raise AssertionError(f"the host did not start:\n{self.errors()}")
        return self

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def stop(self) -> int:
        """Send SIGTERM and return the exit code."""
        return self._end(signal.SIGTERM)

    def wait(self) -> int:
        """Wait until the process exits by itself, and return the exit code."""
        assert self._process is not None
        assert self._process.stdout is not None
        code = self._process.wait(HANG_GUARD_S)
        self._process.stdout.close()
        return code

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def worker_pid(self) -> int:
        with self.client() as client:
            return int(client.get("/admin/host/status").json()["workerProcessId"])

    def _end(self, number: int) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        code = self._process.wait(HANG_GUARD_S)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *unused: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self.stop()

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.base_url, timeout=HANG_GUARD_S, headers=self.headers)

    @property
    def headers(self) -> dict[str, str]:
        """The headers with the key for the host's own URLs."""
        return {"x-functions-key": host_key(self.folder / "data")}

    def errors(self) -> str:
        return self._errors.read_text(encoding="utf-8", errors="replace")

    def notes(self, kind: str, **facts: object) -> list[dict[str, Any]]:
        """Return the notes of a kind that functions wrote and that contain these facts."""
        if not self._notes.exists():
            return []
        notes = [json.loads(line) for line in self._notes.read_text(encoding="utf-8").splitlines()]
        return [note for note in notes if note["kind"] == kind and facts.items() <= note.items()]

    def wait_for_notes(self, kind: str, count: int = 1, **facts: object) -> list[dict[str, Any]]:
        """Wait until at least `count` notes of a kind contain these facts, and return them."""
        wait_until(lambda: len(self.notes(kind, **facts)) >= count, f"{count} notes of {kind} {facts}")
        return self.notes(kind, **facts)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Poll until the condition is true. The time limit is reached only if something is broken."""
    deadline = time.monotonic() + HANG_GUARD_S
    while not condition():
        assert time.monotonic() < deadline, f"no {what}"
        time.sleep(0.05)
