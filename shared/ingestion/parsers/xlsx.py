"""Parser for Excel workbooks. Each sheet becomes a page, its name a heading, and its cells tables.

Cells are read as values, not as formulas. Sheets are streamed by row, so the memory needed grows with the
text and not with the grid.
"""

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from openpyxl import Workbook, load_workbook

from shared.documents.models import Element, ParsedDocument
from shared.ingestion.parsers.context import ParseContext
from shared.ingestion.parsers.office import EXCEL, PART_ERRORS, open_office
from shared.ingestion.parsers.tables import Repeats, table_elements
from shared.ingestion.parsers.text import meaningful_author, meaningful_title
from shared.ingestion.parsers.xlsx_merges import MergedRows, vertical_merges
from shared.ingestion.parsers.xlsx_regions import regions
from shared.platform.errors import BadDocumentError
from shared.tables.headers import continues_header, join_header
from shared.tables.loader import TableFile

_FIGURE = re.compile(r"[-+−(]?[$€£]?\d[\d.,:%\s/-]*\)?\Z")
_LINES_PER_PARAGRAPH = 50
# Maximum number of cells to visit, which takes about 10 s. Half as many filled cells reach the limit of
# blocks.
_MAX_PLACES = 5_000_000
# Maximum number of characters that merged cells may repeat, as in 500,000 rows with a label of 17 characters.
_MAX_REPEATED_CHARS = 10_000_000

_VALUELESS_FORMULA = re.compile(rb"(?:</f>|<f\b[^<>]*/>)\s*+(?:<v\s*/>\s*+|<v>\s*</v>\s*+)?</c>")
_SCAN_BYTES = 4 << 20
# Matches a locale without a currency symbol in a number format, such as [$-407].
_LOCALE = re.compile(r"\[\$-[^\[\]]*\]")
_CURRENCY = re.compile(r"[€$£]|\b(?:EUR|USD|GBP|CHF)\b")
_CODES = {"€": "EUR", "$": "USD", "£": "GBP"}
# Matches the parts of a number format to ignore: quoted text, colours and escaped characters.
_QUOTED = re.compile(r'"[^"]*"|\[[^\[\]]*\]|\\.')


def parse_xlsx(path: Path, context: ParseContext | None = None) -> ParsedDocument:
    """Parse the visible sheets of a workbook, in order.

    Raises:
        BadDocumentError: the file is not a workbook, encrypted, damaged, or a decompression bomb.
    """
    opener = partial(load_workbook, read_only=True, data_only=True, keep_links=False)
    with warnings.catch_warnings():
        # Ignore openpyxl's warnings about features that contain no text.
        warnings.simplefilter("ignore")
        with open_office(path, EXCEL, opener) as (workbook, notes):
            return _read(workbook, path, list(notes), (context or ParseContext()).tables)


def _read(workbook: Workbook, path: Path, notes: list[str], tables: TableFile | None) -> ParsedDocument:
    elements: list[Element] = []
    places = _Places()
    for number, sheet in enumerate(workbook.worksheets, start=1):
        if sheet.sheet_state != "visible":
            notes.append(f"Sheet {sheet.title!r} is hidden and was left out.")
            continue
        sheet_start = len(elements)
        try:
            for region in regions(places.rows(sheet)):
                rows = region.rows
                if tables is not None:
                    rows = tables.load_rows(rows, sheet.title, number, first_line=region.first_line)
                elements.extend(sheet_elements(rows, number))
        except PART_ERRORS:
            notes.append(f"Sheet {sheet.title!r} could not be read completely.")
        if len(elements) > sheet_start:
            heading = Element(kind="heading", text=sheet.title, page_number=number, level=1)
            elements.insert(sheet_start, heading)
    if _has_valueless_formulas(path):
        notes.append(
            "Some formulas have no stored value. Open the file in Excel and save it to add the values."
        )
    properties = workbook.properties
    return ParsedDocument(
        elements=tuple(elements),
        page_count=len(workbook.worksheets),
        title=meaningful_title(properties.title),
        author=meaningful_author(properties.creator),
        warnings=tuple(notes),
    )


class _Places:
    """Counter that limits the number of cells visited in one workbook. Blank cells count too, because filled
    cells may be thousands of columns apart.
    """

    def __init__(self) -> None:
        self._count = 0
        self._repeats = Repeats(_MAX_REPEATED_CHARS)

    def rows(self, sheet: Any) -> Iterator[list[str]]:
        """Yield the rows of a sheet as cell texts. Cells merged over several rows repeat their text.

        Raises:
            BadDocumentError: the workbook has too many cell positions or merged cells.
        """
        # Ignore the declared dimensions of a sheet, which are often wrong.
        sheet.reset_dimensions()
        with (
            sheet._get_source() as source
        ):  # the only way to a sheet's XML; openpyxl ignores merged cells here
            merged = MergedRows(vertical_merges(source), self._repeats)
        for number, row in enumerate(sheet.iter_rows(), start=1):
            texts = [
                cell_text(cell.value, cell.number_format) if cell.value is not None else "" for cell in row
            ]
            completed = merged.complete(number, texts)
            # A merged cell far to the right makes a row wider, and takes time even in a blank row.
            self._count += 1 + len(completed) + merged.open_count
            if self._count > _MAX_PLACES:
                raise BadDocumentError(
                    f"The cells up to sheet {sheet.title!r} are spread over more than {_MAX_PLACES:,} "
                    "positions.",
                    "Delete cells far to the right or far below, or split the file.",
                    failure="too_large",
                )
            yield completed


def sheet_elements(rows: Iterable[Sequence[str]], page_number: int | None) -> Iterator[Element]:
    """Yield the elements of one sheet. Rows must start at the first column and use "" for blank cells."""
    header: Sequence[str] = ()
    for is_filled, filled_rows in groupby(rows, key=lambda row: any(cell.strip() for cell in row)):
        titles: list[str] = []
        rest = iter(filled_rows if is_filled else ())
        for row in rest:
            filled = [cell for cell in row if cell.strip()]
            if len(filled) == 1:
                titles += filled
                continue
            yield from _paragraphs(titles, page_number)
            goes_on = not titles and _fits_header(header, row)
            first = [header, row] if goes_on else _with_one_header(row, rest)
            header = first[0]
            yield from table_elements(chain(first, rest), page_number)
            break
        else:
            yield from _paragraphs(titles, page_number)


def _with_one_header(row: Sequence[str], rows: Iterator[Sequence[str]]) -> list[Sequence[str]]:
    """Return the header and the first row of a table, whose first row is `row`. Further lines of the header,
    taken from `rows`, are joined to it.
    """
    header, row_count = row, 1
    for below in rows:
        if not continues_header(header, below, row_count):
            return [header, below]
        header, row_count = join_header(header, below), row_count + 1
    return [header]


def _fits_header(header: Sequence[str], row: Sequence[str]) -> bool:
    fits = len(row) <= len(header) and all(
        head.strip() for head, cell in zip(header, row, strict=False) if cell.strip()
    )
    return fits and any(_FIGURE.match(cell.strip()) for cell in row)


def _paragraphs(lines: Sequence[str], page_number: int | None) -> Iterator[Element]:
    for start in range(0, len(lines), _LINES_PER_PARAGRAPH):
        folded = (" ".join(line.split()) for line in lines[start : start + _LINES_PER_PARAGRAPH])
        yield Element(kind="paragraph", text="\n".join(folded), page_number=page_number)


def cell_text(value: object, number_format: str | None) -> str:
    """Format the value of a cell for readers, with ISO 8601 dates, percentages and currencies."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        is_share = "%" in _QUOTED.sub("", number_format or "")
        return f"{value * 100:.10g}%" if is_share else f"{value:.15g}{_currency(number_format or '')}"
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    return value.isoformat() if isinstance(value, date | time) else str(value)


def _currency(number_format: str) -> str:
    """Return a space and the currency code of a number format, or "" if there is no currency."""
    match = _CURRENCY.search(_LOCALE.sub("", number_format).replace("[$", "["))
    return f" {_CODES.get(match[0], match[0])}" if match else ""


def _has_valueless_formulas(path: Path) -> bool:
    """Return whether the workbook contains formulas without stored results."""
    with ZipFile(path) as archive:
        for name in archive.namelist():
            if name.startswith("xl/worksheets/") and name.endswith(".xml"):
                with archive.open(name) as part:
                    while window := part.read(_SCAN_BYTES):
                        if _VALUELESS_FORMULA.search(window):
                            return True
    return False
