"""Services that read documents instead of our parsers: for layout, and for text recognition."""

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

MAX_ANSWER_BYTES = 100_000_000  # a dense page takes some 100 KB (unmeasured): about 1,000 pages
_MAX_PLACES = 200_000  # of one table: what its size promises is made only up to here


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


def page_area(box: tuple[float, float, float, float], width: float, height: float) -> PageArea | None:
    """What a box (left, top, right, bottom) covers of a page; None when the page has no size."""
    left, top, right, bottom = box
    if width <= 0 or height <= 0:
        return None
    return PageArea(left=left / width, top=top / height, right=right / width, bottom=bottom / height)


def cannot_read(dependency: Dependency, said: str = "") -> BadDocumentError:
    """The service refuses the document."""
    reason = f" ({said})" if said else ""
    return BadDocumentError(
        f"The file cannot be read by {dependency.name}{reason}.", "Check that it opens in a viewer."
    )


async def read_answer(parts: AsyncIterator[bytes], dependency: Dependency) -> bytes:
    """The whole answer. BadDocumentError when it is larger than MAX_ANSWER_BYTES."""
    too_large = BadDocumentError(
        f"The answer of {dependency.name} has more than {MAX_ANSWER_BYTES // 1_000_000} MB.",
        "Split the file.",
        failure="too_large",
    )
    return await read_bounded(parts, MAX_ANSWER_BYTES, too_large)


class LayoutReader(Protocol):
    """A service that reads the layout of PDFs and pictures.

    Attributes:
        name: what messages call it, with the article.
        suffixes: files that it takes, in lower case with the dot.
    """

    name: str
    suffixes: frozenset[str]

    async def read_layout(self, source: Path, filename: str, limits: CallLimits) -> Layout:
        """The whole file. BadDocumentError when the service cannot read it, or its answer is too large."""


class PageReader(Protocol):
    """A service that reads the words of pages that hold none as text. Attributes as above."""

    name: str
    suffixes: frozenset[str]

    async def read_pages(self, source: Path, pages: Sequence[int], limits: CallLimits) -> PageTexts:
        """The words of these pages, counted from 1. BadDocumentError when the file cannot be read."""


@dataclass(frozen=True)
class ParserServices:
    """Services that read documents; None = our parsers read them alone."""

    layout: LayoutReader | None = None
    pages: PageReader | None = None
