"""Interfaces of services that replace the built-in parsers, for layout and for text recognition."""

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

MAX_ANSWER_BYTES = 100_000_000  # about 1,000 dense pages of 100 KB (unmeasured)
_MAX_PLACES = 200_000  # cells per table; guards against a huge declared size


@dataclass(frozen=True)
class Cell:
    """A table cell. Indexes start at 0; ends are exclusive."""

    row: int
    row_end: int
    column: int
    column_end: int
    text: str


def filled_rows(row_count: int, column_count: int, cells: Iterable[Cell]) -> tuple[tuple[str, ...], ...]:
    """Return the table's rows. Spanning cells are repeated in every position that they cover.

    Raises:
        ValueError: invalid table size.
    """
    if row_count < 0 or column_count < 0 or row_count * column_count > _MAX_PLACES:
        raise ValueError(f"a table of {row_count} by {column_count}")
    rows = [[""] * column_count for _ in range(row_count)]
    for cell in cells:
        for row in rows[max(cell.row, 0) : cell.row_end]:
            for column in range(max(cell.column, 0), min(cell.column_end, column_count)):
                row[column] = cell.text
    return tuple(tuple(row) for row in rows)


def page_area(box: tuple[float, float, float, float], width: float, height: float) -> PageArea | None:
    """Convert a box (left, top, right, bottom) to fractions of the page; None if the page has no size."""
    left, top, right, bottom = box
    if width <= 0 or height <= 0:
        return None
    return PageArea(left=left / width, top=top / height, right=right / width, bottom=bottom / height)


def cannot_read(dependency: Dependency, said: str = "") -> BadDocumentError:
    """Return the error for a document that the service rejected."""
    reason = f" ({said})" if said else ""
    return BadDocumentError(
        f"The file cannot be read by {dependency.name}{reason}.", "Check that it opens in a viewer."
    )


async def read_answer(parts: AsyncIterator[bytes], dependency: Dependency) -> bytes:
    """Read the whole response.

    Raises:
        BadDocumentError: it is larger than MAX_ANSWER_BYTES.
    """
    too_large = BadDocumentError(
        f"The response of {dependency.name} exceeds {MAX_ANSWER_BYTES // 1_000_000} MB.",
        "Split the file.",
        failure="too_large",
    )
    return await read_bounded(parts, MAX_ANSWER_BYTES, too_large)


class LayoutReader(Protocol):
    """A service that reads the layout of PDFs and pictures.

    Attributes:
        name: its name in messages, with the article.
        suffixes: supported file suffixes, in lower case with the dot.
    """

    name: str
    suffixes: frozenset[str]

    async def read_layout(self, source: Path, filename: str, limits: CallLimits) -> Layout:
        """Read the layout of a whole file.

        Raises:
            BadDocumentError: the service cannot read the file, or its response is too large.
        """


class PageReader(Protocol):
    """A service that reads scanned pages. Attributes as in `LayoutReader`."""

    name: str
    suffixes: frozenset[str]

    async def read_pages(self, source: Path, pages: Sequence[int], limits: CallLimits) -> PageTexts:
        """Read the text of these pages, counted from 1.

        Raises:
            BadDocumentError: the file cannot be read.
        """


@dataclass(frozen=True)
class ParserServices:
    """The configured parser services; None = only the built-in parsers are used."""

    layout: LayoutReader | None = None
    pages: PageReader | None = None
