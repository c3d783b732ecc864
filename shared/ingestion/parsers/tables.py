"""Formatting of Markdown tables, and the parser for delimiter-separated files such as CSV."""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from shared.documents.models import Element, ParsedDocument
from shared.ingestion.parsers.context import ParseContext
from shared.ingestion.parsers.ocr import Rows
from shared.ingestion.parsers.text import find_encoding, text_lines, text_paragraphs
from shared.platform.errors import BadDocumentError
from shared.tables.headers import MAX_HEADER_ROWS, is_table_title, merged_header

# Maximum number of rows per element. Longer tables are split, which limits the size of strings.
MAX_ROWS = 1000
# Maximum number of cells per element, as in 1,000 rows of 100 columns.
_MAX_PART_CELLS = 100_000
# Maximum number of characters that merged cells may repeat per document. An ordinary merged header cell
# repeats hundreds.
_MAX_REPEATED_CHARS = 1_000_000
# Minimum number of rows of a table whose first row is its title.
_MIN_TITLED_ROWS = 3
# Length of the separator between two cells.
_CELL_CHARS = 3
_UNESCAPED_PIPE = re.compile(r"(?<!\\)\|")


def markdown_table(rows: Iterable[Sequence[str]]) -> str:
    """Format rows as a Markdown table with the first row as header. Return "" if all cells are blank.

    Blank rows and columns are dropped, white space in cells is collapsed, pipes are escaped, and short rows
    are padded.
    """
    filled = [cells for row in rows if any(cells := [escape_cell(cell) for cell in row])]
    width = max((len(row) for row in filled), default=0)
    used = [column for column in range(width) if any(column < len(row) and row[column] for row in filled)]
    if not used:
        return ""
    return table_lines([[row[column] if column < len(row) else "" for column in used] for row in filled])


def table_lines(rows: Sequence[Sequence[str]]) -> str:
    """Format rows of equal length as a Markdown table, one line per row. The texts of the cells are used
    without changes.
    """
    header, *body = rows
    lines = [header, ["---"] * len(header), *body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def table_elements(rows: Iterable[Sequence[str]], page_number: int | None = None) -> Iterator[Element]:
    """Split a table of any length into elements of at most `MAX_ROWS` rows. Each element repeats the
    header.
    """
    part: list[Sequence[str]] = []
    is_first, cells = True, 0
    for row in rows:
        if not any(cell.strip() for cell in row):
            continue
        part.append(row)
        cells += len(row)
        if len(part) > MAX_ROWS or cells > _MAX_PART_CELLS:
            yield Element(kind="table", text=markdown_table(part), page_number=page_number)
            part, is_first, cells = [part[0]], False, len(part[0])
    if len(part) > 1 or (part and is_first):
        yield Element(kind="table", text=markdown_table(part), page_number=page_number)


def merged_table_elements(rows: Iterable[Sequence[str]], page_number: int | None = None) -> Iterator[Element]:
    """Yield the elements of a table in which merged cells repeat their text: its title, if its first row is a
    single cell, and the table with the rows of its header joined.
    """
    filled = (row for row in rows if any(cell.strip() for cell in row))
    start = list(islice(filled, MAX_HEADER_ROWS + 2))
    if len(start) >= _MIN_TITLED_ROWS and is_table_title(*start[:2]):
        yield Element(kind="paragraph", text=" ".join(start[0][0].split()), page_number=page_number)
        start = start[1:]
    header, row_count = merged_header(start) if start else ([], 0)
    yield from table_elements(chain([header], start[row_count:], filled), page_number)


def grid_elements(rows: Sequence[Sequence[str]], page_number: int | None = None) -> Iterator[Element]:
    """Yield the elements of a table whose rows all have the same length. A blank header row is kept;
    otherwise, long tables would repeat a data row as header.
    """
    if any(rows[0]):
        yield from table_elements(rows, page_number)
    else:
        text = table_lines([[escape_cell(cell) for cell in row] for row in rows])
        yield Element(kind="table", text=text, page_number=page_number)


def recognised_elements(parts: Iterable[str | Rows], page_number: int) -> Iterator[Element]:
    """Yield an element for each paragraph and table recognised in a picture."""
    for part in parts:
        if isinstance(part, str):
            yield from text_paragraphs(part, page_number)
        else:
            yield from grid_elements(part, page_number)


class Repeats:
    """Counter that limits how much text the merged cells of one document may repeat."""

    def __init__(self, max_chars: int = _MAX_REPEATED_CHARS) -> None:
        self._max_chars = max_chars
        self._chars = 0

    def count(self, text: str, times: int) -> None:
        """Add the text that a merged cell repeats in `times` positions to the total of the document.

        Raises:
            BadDocumentError: the repeated text of the document exceeds the limit.
        """
        self._chars += (len(text) + _CELL_CHARS) * (times - 1)
        if self._chars > self._max_chars:
            raise BadDocumentError(
                "The merged cells in the tables repeat too much text.",
                "Undo merged cells, or split the file.",
                failure="too_large",
            )


def escape_cell(text: str) -> str:
    """Return the text of a cell on one line, with pipes escaped."""
    return _UNESCAPED_PIPE.sub(r"\\|", " ".join(text.split()))


_SEPARATORS = ",;\t|"
_SAMPLE_LINES, _SAMPLE_CHARS = 50, 1 << 16
_MAX_FIELD_CHARS = 1 << 20
# A first line such as "sep=;" declares the separator, as in Excel.
_DECLARED = re.compile(r"\Asep=(.)\n")


def parse_csv(path: Path, context: ParseContext | None = None) -> ParsedDocument:
    """Parse a delimiter-separated file as a table whose first row is the header.

    Raises:
        BadDocumentError: the content is binary.
    """
    encoding = find_encoding(path)
    start = "".join(islice(text_lines(path, encoding), _SAMPLE_LINES + 1))[:_SAMPLE_CHARS]
    declared = _DECLARED.match(start)
    separator = declared[1] if declared else guess_separator(start)
    lines = islice(text_lines(path, encoding), 1 if declared else 0, None)
    csv.field_size_limit(_MAX_FIELD_CHARS)
    warnings: list[str] = []
    rows: Iterable[Sequence[str]] = _rows(lines, separator, warnings)
    if context is not None and context.tables is not None:
        rows = context.tables.load_rows(rows, decimals="de" if separator == ";" else "en")
    elements = tuple(table_elements(rows))
    return ParsedDocument(elements=elements, warnings=tuple(warnings))


def guess_separator(text: str) -> str:
    """Return the separator that splits the first lines most consistently into the same number of fields.

    The default is a comma.
    """
    sample = text[:_SAMPLE_CHARS].splitlines(keepends=True)[:_SAMPLE_LINES]

    def agreement(separator: str) -> tuple[int, int]:
        widths = Counter(len(row) for row in _rows(sample, separator, []) if row)
        width, count = widths.most_common(1)[0] if widths else (1, 0)
        return (count if width > 1 else 0), width

    return max(_SEPARATORS, key=agreement)


def _rows(lines: Iterable[str], separator: str, warnings: list[str]) -> Iterator[list[str]]:
    reader = csv.reader(lines, delimiter=separator)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            warnings.append(f"Line {reader.line_num} is malformed ({error}) and was left out.")
            continue
        yield row
