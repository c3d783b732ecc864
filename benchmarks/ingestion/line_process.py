"""A process that answers each line with a line, for measuring our parser's worker and the baseline."""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.memory import peak_mb


class LineProcess:
    """A process, started warm so that imports aren't measured. A context manager."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, line: str) -> tuple[str, float]:
        """Return the answer and the seconds it took.

        Raises:
            RuntimeError: the process ended.
        """
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("The process has no pipes.")
        began = time.perf_counter()
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"The process ended with exit code {self._process.wait()}.")
        return answer, time.perf_counter() - began

    def wait_until_ready(self) -> None:
        """Read the line that the parser's worker writes once it has started.

        Raises:
            RuntimeError: the process ended.
        """
        if self._process.stdout is None or not self._process.stdout.readline():
            raise RuntimeError(f"The process ended with exit code {self._process.wait()}.")

    def peak_mb(self) -> float | None:
        """Return its peak memory, or None if the system doesn't report it."""
        return peak_mb(self._process.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()


def start_parser(folder: Path, memory_bytes: int, readable: Sequence[Path] = ()) -> LineProcess:
    """Start the parser's worker and wait until it is ready.

    Args:
        folder: the worker may read and write below it.
        readable: additional files and folders that it may read.
    """
    places = [str(path) for path in readable]
    call = f"main({memory_bytes}, 0, {str(folder)!r}, {places!r})"
    process = LineProcess(("-c", f"from shared.ingestion.parser_worker import main; {call}"))
    process.wait_until_ready()
    return process
