"""Execution of a model's Python code in worker processes of Monty, an interpreter without files, network,
environment or third-party modules.

Each call gets a new session. A worker that exceeds its time or memory is killed without affecting the app.
Only values go in and out; output is untrusted, so its size, depth and types are limited here.

Source: pydantic-monty 1.4, pinned because each minor version changes its API.
"""

# Annotations stay strings, so that their types need not be imported at startup.
from __future__ import annotations

import asyncio
import importlib
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared.platform.errors import (
    BudgetExceededError,
    CallTimeoutError,
    GroundworkError,
    InvalidQueryError,
)
from shared.platform.loading import load_module
from shared.platform.models import Model

if TYPE_CHECKING:
    from pydantic_monty import AsyncMonty

RUN_TIMEOUT_S = 2.0
MAX_MEMORY_BYTES = 64 << 20
# Maximum size of the printed output, and of the result as JSON.
MAX_OUTPUT_BYTES = 20_000
_MAX_DEPTH = 20
_MAX_INTEGER_BITS = 10_000  # stays below the 4,300 digits that Python can convert to text
_MAX_ERROR_CHARS = 500
# Number of worker processes per app process: few are enough, because a call takes milliseconds.
_WORKERS = 2
_WAIT_S = 10.0  # maximum wait for a free worker, and for a worker's response
_SESSIONS_PER_WORKER = 100


class PythonRun(Model):
    """The result of a program: the value of its last expression as JSON, and its printed output."""

    result: Any
    stdout: str


class PythonSandbox:
    """Pool of worker processes. The first call starts it and ties it to the current event loop."""

    def __init__(self) -> None:
        self._pool: AsyncMonty | None = None
        self._opening = asyncio.Lock()

    async def run(self, code: str, inputs: Mapping[str, Any]) -> PythonRun:
        """Run a program in a new session, with `inputs` as global variables.

        Raises:
            InvalidQueryError: the program failed, or its result is too large or not JSON.
            CallTimeoutError: it ran longer than 2 s.
            BudgetExceededError: it used more than 64 MB or printed more than 20,000 bytes.
            GroundworkError: the worker died.
        """
        pool = await self._open()
        monty = load_module("pydantic_monty")
        output = monty.CollectString(MAX_OUTPUT_BYTES)
        try:
            session = pool.checkout(
                limits={
                    "max_feed_duration_secs": RUN_TIMEOUT_S,
                    "max_memory": MAX_MEMORY_BYTES,
                    "max_recursion_depth": 200,
                    "max_suspensions": 100,
                },
                os_policy={"sleep": "zero"},
            )
            async with session as opened:
                value = await opened.feed_run(code, inputs=dict(inputs), print_callback=output)
        except (monty.MontyRuntimeError, monty.MontySyntaxError) as failed:
            frames = failed.traceback()
            raise _error_of(failed.exception(), frames[-1].line if frames else 0) from None
        except (monty.MontyConversionError, ValueError, TypeError):
            raise InvalidQueryError(
                "The inputs cannot be passed to the program.", "Pass only JSON values in `inputs`."
            ) from None
        except (monty.MontyError, TimeoutError):
            raise GroundworkError("The program crashed its worker.", "Do less in one program.") from None
        return PythonRun(result=as_json(value), stdout=output.output)

    async def check(self) -> None:
        """Start the pool if necessary and evaluate an expression."""
        await self.run("1 + 1", {})

    async def close(self) -> None:
        """Stop the workers. The next call starts new ones."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.__aexit__(None, None, None)

    async def _open(self) -> AsyncMonty:
        async with self._opening:
            if self._pool is None:
                monty = await asyncio.to_thread(importlib.import_module, "pydantic_monty")
                pool: AsyncMonty = monty.AsyncMonty(
                    binary_path=_binary(Path(monty.__path__[0])),
                    min_processes=1,
                    max_processes=_WORKERS,
                    checkout_timeout=_WAIT_S,
                    # longer than a program may run, so the worker's own limits apply first
                    request_timeout=_WAIT_S,
                    max_checkouts_per_worker=_SESSIONS_PER_WORKER,
                )
                self._pool = await pool.__aenter__()
            return self._pool


def as_json(value: Any) -> Any:
    """Convert a value to JSON types: dates and decimals become text, and sets and tuples become lists.

    Raises:
        InvalidQueryError: it is too large, too deep or of another type.
    """
    room = [MAX_OUTPUT_BYTES]
    return _plain(value, room, 0)


def _binary(package: Path) -> Path | None:
    """Return the path of the interpreter if the package was installed with `pip install --target`, as in
    Azure; otherwise None.
    """
    beside = package.parent / "bin" / "monty"
    return beside if beside.is_file() else None


def _plain(value: Any, room: list[int], depth: int) -> Any:
    """Convert a value to JSON types recursively, and subtract its size from `room[0]`, the remaining number
    of bytes. Cyclic values are rejected as nested too deeply.
    """
    room[0] -= len(value.encode(errors="replace")) if isinstance(value, str) else 1
    if room[0] < 0 or depth > _MAX_DEPTH:
        raise InvalidQueryError(
            f"The result is larger than {MAX_OUTPUT_BYTES} bytes, or nested too deeply.",
            "Return a smaller result.",
        )
    match value:
        case bool() | None | str():
            return value
        case int():
            return _integer(value)
        case float():
            return value if abs(value) < float("inf") else str(value)  # JSON has no NaN or infinity
        case dict():
            return {_name(key, room): _plain(item, room, depth + 1) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(item, room, depth + 1) for item in value]
    return _as_text(value)


def _as_text(value: Any) -> str:
    if isinstance(value, date | datetime | time | timedelta | Decimal):
        return str(value)
    raise InvalidQueryError(
        "The value of the last line is not valid JSON.", "End with a number, string, list or dict."
    )


def _name(key: object, room: list[int]) -> str:
    name = str(_plain(key, room, _MAX_DEPTH)) if isinstance(key, str | int | float | None) else ""
    if not name and key != "":
        raise InvalidQueryError(
            "A key of the result is neither a string nor a number.", "Use strings as keys."
        )
    return name


def _integer(value: int) -> int:
    if value.bit_length() > _MAX_INTEGER_BITS:
        raise InvalidQueryError(
            "The result is an integer of more than 3,000 digits.", "Return a smaller number."
        )
    return value


def _error_of(raised: BaseException, line: int) -> GroundworkError:
    if isinstance(raised, TimeoutError):
        return CallTimeoutError(
            f"The program ran longer than {RUN_TIMEOUT_S:.0f} s.", "Do less in one program."
        )
    if isinstance(raised, MemoryError):
        return BudgetExceededError(
            f"The program used more than {MAX_MEMORY_BYTES >> 20} MB, or printed more than "
            f"{MAX_OUTPUT_BYTES} bytes.",
            "Do less in one program.",
        )
    message = f"{type(raised).__name__} in line {line}: {raised}"[:_MAX_ERROR_CHARS]
    return InvalidQueryError(
        message, "Correct the program. There is no disk or network, and no other modules."
    )
