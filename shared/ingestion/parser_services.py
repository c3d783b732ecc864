"""Interfaces of external services that replace the built-in parsers, for page layout or for text
recognition.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from shared.evidence.models import PageArea
from shared.ingestion.models import Layout, PageTexts
from shared.platform.calls import Dependency
from shared.platform.errors import BadDocumentError
from shared.platform.http_client import read_bounded
from shared.platform.language_models.models import CallLimits

# Maximum size of a service's response: about 1,000 dense pages of 100 KB each (unmeasured).
MAX_ANSWER_BYTES = 100_000_000
# Maximum number of cells per table, because a service may declare a huge table.
_MAX_PLACES = 200_000


@dataclass(frozen=True)
class Cell:
    """A table cell. Row and column indexes start at 0; their ends are exclusive."""

    row: int
    row_end: int
    column: int
    column_end: int
    text: str


def filled_rows(row_count: int, column_count: int, cells: Iterable[Cell]) -> tuple[tuple[str, ...], ...]:
    """Convert the cells of a table to rows of text. The text of a spanning cell is repeated in every position
    that the cell covers.

    Raises:
        ValueError: the table has an invalid size.
    """
    if row_count < 0 or column_count < 0 or row_count * column_count > _MAX_PLACES:
        raise ValueError(f"The table size {row_count} x {column_count} is invalid or too large.")
    rows = [[""] * column_count for _ in range(row_count)]
    for cell in cells:
        for row in rows[max(cell.row, 0) : cell.row_end]:
            for column in range(max(cell.column, 0), min(cell.column_end, column_count)):
                row[column] = cell.text
    return tuple(tuple(row) for row in rows)


def page_area(box: tuple[float, float, float, float], width: float, height: float) -> PageArea | None:
    """Convert a box (left, top, right, bottom) to fractions of the page size. Return None if the page has no
    size.
    """
    left, top, right, bottom = box
    if width <= 0 or height <= 0:
        return None
    return PageArea(left=left / width, top=top / height, right=right / width, bottom=bottom / height)


def cannot_read(dependency: Dependency, error_code: str = "") -> BadDocumentError:
    """Return the error for a file that the service rejected. `error_code` is added to the message."""
    reason = f" ({error_code})" if error_code else ""
    return BadDocumentError(
        f"The file cannot be read by {dependency.name}{reason}.", "Check that the file opens in a viewer."
    )


async def read_answer(parts: AsyncIterator[bytes], dependency: Dependency) -> bytes:
    """Return the whole body of a service's response.

    Raises:
        BadDocumentError: the response is larger than MAX_ANSWER_BYTES.
    """
    too_large = BadDocumentError(
        f"The response of {dependency.name} exceeds {MAX_ANSWER_BYTES // 1_000_000} MB.",
        "Split the file.",
        failure="too_large",
    )
    return await read_bounded(parts, MAX_ANSWER_BYTES, too_large)


class LayoutReader(Protocol):
    """Service that reads the layout of PDFs and pictures.

    Attributes:
        name: name of the service for use in messages, with the article.
        suffixes: supported file suffixes, in lower case with the dot.
    """

    name: str
    suffixes: frozenset[str]

    async def read_layout(self, source: Path, filename: str, limits: CallLimits) -> Layout:
        """Return the layout of a whole PDF or picture file.

        Raises:
            BadDocumentError: the service cannot read the file, or its response is too large.
        """


class PageReader(Protocol):
    """Service that reads the text of scanned pages. Its attributes are described in `LayoutReader`."""

    name: str
    suffixes: frozenset[str]

    async def read_pages(self, source: Path, pages: Sequence[int], limits: CallLimits) -> PageTexts:
        """Read the text of the given pages, counted from 1.

        Raises:
            BadDocumentError: the file cannot be read.
        """


@dataclass(frozen=True)
class ParserServices:
    """The configured parser services. The built-in parsers replace a service that is None."""

    layout: LayoutReader | None = None
    pages: PageReader | None = None
