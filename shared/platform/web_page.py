"""What clients that speak HTTP by themselves share: bounded answers, cells as rows, errors."""

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from shared.platform.calls import Dependency, timed_out, unreachable
from shared.platform.errors import BadDocumentError, DependencyError

MAX_ANSWER_BYTES = 100_000_000  # a dense page takes some 100 KB (unmeasured): about 1,000 pages
_MAX_PLACES = 200_000  # of one table: what its size promises is made only up to here


class Wire(BaseModel):
    """A part of a service's answer: the fields that are used; others come and go with its versions."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True, hide_input_in_errors=True)


@dataclass(frozen=True)
class Cell:
    """A cell of a table; places count from 0, the ends are excluded."""

    row: int
    row_end: int
    column: int
    column_end: int
    text: str


def filled_rows(row_count: int, column_count: int, cells: Iterable[Cell]) -> tuple[tuple[str, ...], ...]:
    """The table's rows; a cell that spans several places stands in each.

    Raises:
        ValueError: a table of impossible size.
    """
    if row_count < 0 or column_count < 0 or row_count * column_count > _MAX_PLACES:
        raise ValueError(f"a table of {row_count} by {column_count}")
    rows = [[""] * column_count for _ in range(row_count)]
    for cell in cells:
        for row in rows[max(cell.row, 0) : cell.row_end]:
            for column in range(max(cell.column, 0), min(cell.column_end, column_count)):
                row[column] = cell.text
    return tuple(tuple(row) for row in rows)


def folded(text: str) -> str:
    """`text` with single spaces."""
    return " ".join(text.split())


@contextmanager
def http_errors(dependency: Dependency) -> Iterator[None]:
    """aiohttp's exceptions as ours, `from None`: they carry addresses and headers."""
    from aiohttp import ClientError

    try:
        yield
    except TimeoutError:
        raise timed_out(dependency) from None
    except (ClientError, OSError):
        raise unreachable(dependency) from None


async def read_bounded(parts: AsyncIterator[bytes], dependency: Dependency) -> bytes:
    """The whole answer.

    Raises:
        BadDocumentError: it is larger than MAX_ANSWER_BYTES.
    """
    answer = bytearray()
    async for part in parts:
        answer += part
        if len(answer) > MAX_ANSWER_BYTES:
            raise BadDocumentError(
                f"The answer of {dependency.name} has more than {MAX_ANSWER_BYTES // 1_000_000} MB.",
                "Split the file.",
            )
    return bytes(answer)


def not_understood(dependency: Dependency) -> DependencyError:
    """The service answered with something else than its protocol says."""
    return DependencyError(
        f"The answer of {dependency.name} is not understood.",
        f"Check {dependency.endpoint_setting}, and the service's version.",
    )


def cannot_read(dependency: Dependency, said: str = "") -> BadDocumentError:
    """The service refuses the document."""
    reason = f" ({said})" if said else ""
    return BadDocumentError(
        f"The file cannot be read by {dependency.name}{reason}.", "Check that it opens in a viewer."
    )
