"""A search server in a separate process, started as by `make run`, with additional operations for tests."""

import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

START_TIMEOUT_S = 120


@dataclass
class SearchServerProcess:
    port: int
    folder: Path
    key: str = "test-key"
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the process and return once it responds.

        Raises:
            RuntimeError: The process ended, or did not respond within a minute.
        """
        options = ["--port", str(self.port), "--data", str(self.folder), "--key", self.key]
        self.process = subprocess.Popen([sys.executable, "-m", "tests.search_operations", *options])
        give_up = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < give_up and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.endpoint}/health", timeout=5):
                    return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.05)
        raise RuntimeError(f"the search server did not start (exit code {self.process.poll()})")

    def stop(self) -> int:
        """Request a stop and return the exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> int:
        return self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> int:
        if self.process is None:
            raise RuntimeError("the search server was never started")
        self.process.send_signal(number)
        return self.process.wait(timeout=30)
