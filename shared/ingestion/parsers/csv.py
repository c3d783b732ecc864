"""Separated values: one table. The separator is found out, the encoding as in plain text."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from shared.documents.models import ParsedDocument
from shared.ingestion.parsers.tables import table_elements
from shared.ingestion.parsers.text import read_text

_SEPARATORS = ",;\t|"
_SAMPLE_LINES = 50
_MAX_FIELD_CHARS = 1 << 20
_DECLARED = re.compile(r"\Asep=(.)\n")  # a line that Excel reads and writes


def parse_csv(path: Path) -> ParsedDocument:
    """The file as a table, its first row as header.

    Raises:
        BadDocumentError: the content is binary.
    """
    text = read_text(path)
    declared = _DECLARED.match(text)
    separator = declared[1] if declared else guess_separator(text)
    lines = io.StringIO(text[declared.end() if declared else 0 :])
    csv.field_size_limit(_MAX_FIELD_CHARS)
    warnings: list[str] = []
    elements = tuple(table_elements(_rows(lines, separator, warnings)))
    return ParsedDocument(elements=elements, warnings=tuple(warnings))


def guess_separator(text: str) -> str:
    """The separator that parts the first lines into the same number of fields most often; a comma if none."""
    sample = text[: 1 << 16].splitlines(keepends=True)[:_SAMPLE_LINES]

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
