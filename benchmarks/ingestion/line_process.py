"""A child process that answers each line of input with one line of output. Both parsers run this way."""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.memory import peak_mb


class LineProcess:
    """A child process that answers lines. As a context manager, it kills the process on exit."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, line: str) -> tuple[str, float]:
        """Send a line to the process. Return the line that it prints in response, and the elapsed seconds.

        Raises:
            RuntimeError: the process ended.
        """
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("The child process has no pipes.")
        began = time.perf_counter()
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"The process ended with exit code {self._process.wait()}.")
        return answer, time.perf_counter() - began

    def wait_until_ready(self) -> None:
        """Wait for the line that the parser worker prints when it has started.

        Raises:
            RuntimeError: the process ended.
        """
        if self._process.stdout is None or not self._process.stdout.readline():
            raise RuntimeError(f"The process ended with exit code {self._process.wait()}.")

    def peak_mb(self) -> float | None:
        """Return the peak memory of the process in MB, or None if the system doesn't report it."""
        return peak_mb(self._process.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()


def start_parser(folder: Path, memory_bytes: int, readable: Sequence[Path] = ()) -> LineProcess:
    """Start a parser worker of the app, and return its process when it is ready.

    Args:
        folder: the worker may read and write below it.
        readable: additional files and folders that it may read.
    """
    places = [str(path) for path in readable]
    call = f"main({memory_bytes}, 0, {str(folder)!r}, {places!r})"
    process = LineProcess(("-c", f"from shared.ingestion.parser_worker import main; {call}"))
    process.wait_until_ready()
    return process
