"""`python -m evals.pdf_text --data FOLDER --sets a,b --out report.json`: measure the quality of PDF parsing.

Compares the parser's elements with PDFium's own text of the file, without using the app's parser. Called by
`make eval-pdf`; see docs/internals/measuring.md. Exit code 1 if a target is missed, 2 if a set can't be read.
"""

import argparse
import json
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pypdfium2

from evals.evaluation.page_layout import PlacedWord, words_of_page
from evals.evaluation.question_set import read_set
from shared.documents.models import ParsedDocument
from shared.ingestion.parsers.pdf import parse_pdf

# Targets set before the parser supported tables without ruling lines. "tabled" applies only to filings,
# because most rows of numbers in other documents belong to charts.
TARGETS = {"tabled": 0.85, "lost": 0.005, "numbers_added": 0.0, "similarity": 0.941}

_NUMERIC = re.compile(r"[$€£%()\-–—+.,:/]*\d[$€£%()\-–—+.,:/\d]*\Z|[$€£%—–-]\Z")
# A row of numbers contains at least this many numeric words, and at least this share of them.
_MIN_NUMBERS, _MIN_NUMERIC_SHARE = 2, 0.3
# Vertical tolerance for words in one row, relative to a word's height.
_SAME_ROW = 0.4
_TOKEN = re.compile(r"\d(?:[\d.,]*\d)?|[^\W\d_]+")
_NUMBER = re.compile(r"\d+")
_MARKED = re.compile(r"(?:[\ufffe\x02]|(?<=[^\W\d_])-)\s*(?=[^\W\d_])")
# Number of rows at the top and at the bottom of a page that are checked for running headers and footers.
_EDGE_ROWS = 3
# A row of numbers counts as a footer only if it occurs on at least this share of the pages.
_FOOTER_SHARE = 0.25
# A running header or footer must occur on at least this many pages.
_MIN_REPEATS = 3
_BARE = re.compile(r"<!--.*?-->|[\s|#*\-_`\\]", re.DOTALL)
_BARE_NUMBER = re.compile(r"(?:(?:page|p\.)\s*)?[-–— ]*(?:\d{1,4}|[ivxl]{1,6})[-–— ]*\Z", re.IGNORECASE)


@dataclass
class Reading:
    """Counts for one document, from which the measures are computed.

    Attributes:
        rows, tabled: number rows, and how many of them have all their words in one table row.
        words, lost: words outside running headers and footers, and how many are missing from the elements.
        numbers_added: numbers in the elements that their page lacks or has less often.
        running, running_kept: running headers, footers and page numbers, and how many remain in the elements.
        tables: number of tables by page.
        cpu_s, plain_cpu_s: CPU time of the parser, and of PDFium's plain text in the same run.
    """

    pages: int = 0
    rows: int = 0
    tabled: int = 0
    words: int = 0
    lost: int = 0
    numbers_added: int = 0
    running: int = 0
    running_kept: int = 0
    cpu_s: float = 0.0
    plain_cpu_s: float = 0.0
    tables: dict[int, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)


def main() -> int:
    """Run the evaluation as set on the command line, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", default="financebench,mmlongbench")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="", help="Measure only files whose name contains this text.")
    options = parser.parse_args()
    report: dict[str, Any] = {}
    try:
        for name in options.sets.split(","):
            sources = read_set(options.data / name).sources
            paths = [source.path for source in sources if source.path and source.path.suffix == ".pdf"]
            readings = {path.name: measure_file(path) for path in paths if options.only in path.name}
            report[name] = summary(readings.values()) | {
                "each": {key: asdict(one) for key, one in readings.items()}
            }
            print(name, json.dumps({key: value for key, value in report[name].items() if key != "each"}))
        references = sorted((options.data / "parse_docling" / "reference").glob("pdf__*.md"))
        if references:
            scores = {path.name: round(reference_similarity(path), 4) for path in references}
            report["similarity"] = {"mean": sum(scores.values()) / len(scores), "each": scores}
            print("similarity", round(report["similarity"]["mean"], 4))
    except (OSError, ValueError) as failed:
        print(failed, file=sys.stderr)
        return 2
    options.out.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 1 if missed(report) else 0


def missed(report: dict[str, Any]) -> list[str]:
    """Print and return the names of the targets that the report misses."""
    filings = report.get("financebench", {})
    values = {
        "tabled": filings.get("tabled"),
        "lost": filings.get("lost"),
        "numbers_added": filings.get("numbers_added"),
        "similarity": report.get("similarity", {}).get("mean"),
    }
    is_lowest = {"tabled", "similarity"}
    names = [
        name
        for name, value in values.items()
        if value is not None and (value < TARGETS[name] if name in is_lowest else value > TARGETS[name])
    ]
    for name in names:
        print(f"missed: {name} is {values[name]}, target {TARGETS[name]}")
    return names


def summary(readings: Iterable[Reading]) -> dict[str, float]:
    """Return the measures over all documents of a set."""
    each = list(readings)

    def share(part: str, whole: str) -> float:
        total = sum(getattr(one, whole) for one in each)
        return round(sum(getattr(one, part) for one in each) / total, 4) if total else 0.0

    return {
        "pages": sum(one.pages for one in each),
        "rows": sum(one.rows for one in each),
        "tabled": share("tabled", "rows"),
        "words": sum(one.words for one in each),
        "lost": share("lost", "words"),
        "lost_worst": max((round(one.lost / one.words, 4) for one in each if one.words), default=0.0),
        "numbers_added": sum(one.numbers_added for one in each),
        "running_kept": share("running_kept", "running"),
        "tables": sum(sum(one.tables.values()) for one in each),
        "pages_per_cpu_s": share("pages", "cpu_s"),
        "times_plain_text": share("cpu_s", "plain_cpu_s"),
    }


def measure_file(path: Path) -> Reading:
    """Parse a PDF with the app's parser and with PDFium, and return the counts of their comparison."""
    started_s = time.process_time()
    parsed = parse_pdf(path)
    parsing_s = time.process_time() - started_s
    started_s = time.process_time()
    texts = plain_pages(path)
    reading = Reading(len(texts), cpu_s=parsing_s, plain_cpu_s=time.process_time() - started_s)
    rows = [visual_rows(words) for words in _placed_pages(path)]
    running = running_rows(rows)
    _compare(reading, parsed, texts, rows, running)
    return reading


def plain_pages(path: Path) -> list[str]:
    """Return the plain text of each page, as extracted by PDFium."""
    document = pypdfium2.PdfDocument(path)
    try:
        return [page.get_textpage().get_text_range() for page in document]
    finally:
        document.close()


def _placed_pages(path: Path) -> Iterator[list[PlacedWord]]:
    document = pypdfium2.PdfDocument(path)
    try:
        for page in document:
            yield list(words_of_page(page))
    finally:
        document.close()


def visual_rows(words: Sequence[PlacedWord]) -> list[list[str]]:
    """Return the words of a page in rows from top to bottom. Each row runs from left to right across all
    columns.
    """
    rows: list[list[PlacedWord]] = []
    for word in sorted(words, key=lambda word: -word.middle):
        if rows and abs(rows[-1][0].middle - word.middle) <= _SAME_ROW * max(rows[-1][0].height, word.height):
            rows[-1].append(word)
        else:
            rows.append([word])
    return [[word.text for word in sorted(row, key=lambda word: word.left)] for row in rows]


def is_number_row(words: Sequence[str]) -> bool:
    """Return whether a row of words looks like a row in a table of numbers."""
    count = sum(_NUMERIC.match(word) is not None for word in words)
    return count >= max(_MIN_NUMBERS, _MIN_NUMERIC_SHARE * len(words))


def running_rows(pages: Sequence[Sequence[Sequence[str]]]) -> list[list[str]]:
    """Return the running headers, footers and page numbers of each page: rows near an edge of the page that
    recur on other pages.
    """
    edges = [
        [" ".join(row) for row in [*rows[:_EDGE_ROWS], *rows[_EDGE_ROWS:][-_EDGE_ROWS:]]] for rows in pages
    ]
    seen = Counter(key for page in edges for key in {_NUMBER.sub("#", row) for row in page})
    return [
        [
            row
            for place, row in enumerate(page)
            if seen[_NUMBER.sub("#", row)] >= _MIN_REPEATS
            and (
                not is_number_row(row.split())
                or _BARE_NUMBER.match(row)
                # A footer that looks like a row of numbers, such as "Form 10-K 2021 17".
                or seen[_NUMBER.sub("#", row)] >= _FOOTER_SHARE * len(pages)
            )
        ]
        for page in edges
    ]


def tokens(text: str) -> Counter[str]:
    """Return the words and numbers in a text with their counts. Hyphenated words are joined."""
    return Counter(_TOKEN.findall(_MARKED.sub("", text)))


@dataclass(frozen=True)
class _Elements:
    """The texts of a parsed document by page number. Elements without a page have the number 0.

    Attributes:
        whole: every element.
        once: the same, with the cells of tables that repeat a header left out.
        rows: rows of tables.
        headers: first row of each table.
    """

    whole: defaultdict[int, list[str]]
    once: defaultdict[int, list[str]]
    rows: defaultdict[int, list[str]]
    headers: defaultdict[int, list[str]]


def _by_page(reading: Reading, parsed: ParsedDocument) -> _Elements:
    """Group the elements by page, and count the tables of each page in `reading`."""
    pages = _Elements(defaultdict(list), defaultdict(list), defaultdict(list), defaultdict(list))
    for element in parsed.elements:
        number, text = element.page_number or 0, element.text
        is_table = element.kind == "table"
        pages.whole[number].append(text)
        pages.once[number].append(_without_repeats(text) if is_table else text)
        if is_table:
            pages.rows[number] += text.splitlines()
            pages.headers[number].append(text.split("\n", 1)[0])
            reading.tables[number] = reading.tables.get(number, 0) + 1
    return pages


def _compare(
    reading: Reading,
    parsed: ParsedDocument,
    texts: Sequence[str],
    rows: Sequence[Sequence[Sequence[str]]],
    running: Sequence[Sequence[str]],
) -> None:
    pages = _by_page(reading, parsed)
    elements, headings = pages.whole, pages.headers
    for number, text in enumerate(texts, start=1):
        whole = tokens("\n".join(elements[number]))
        headers = tokens("\n".join(headings[number]))
        words = tokens(text)
        edge = tokens("\n".join(running[number - 1]))
        lost = words - edge - whole
        reading.words += (words - edge).total()
        reading.lost += lost.total()
        # Numbers in header rows may be repeated: in each column that a merged cell spans, and in a table that
        # continues from the previous page and repeats its header.
        first = tokens(headings[number][0]) if headings[number] else Counter()
        before = tokens(headings[number - 1][-1]) if headings[number - 1] else Counter()
        continued = first if first == before else Counter[str]()
        said_once = tokens("\n".join(pages.once[number]))
        extra = {word for word in said_once - headers - words if word[0].isdigit()}
        extra |= {word for word in headers - continued if word[0].isdigit() and word not in words}
        reading.numbers_added += len(extra)
        reading.running += len(running[number - 1])
        plain = {" ".join(row.split()) for part in elements[number] for row in part.splitlines()}
        kept_rows = [row for row in running[number - 1] if row in plain]
        reading.running_kept += len(kept_rows)
        edges = running[number - 1]
        inner = [row for row in rows[number - 1] if " ".join(row) not in edges]
        missing = list(_rows_outside_tables(reading, inner, pages.rows[number]))
        if len(reading.examples) < 200:
            reading.examples += [f"{number} row: {row}" for row in missing[:3]]
            reading.examples += [f"{number} kept: {row}" for row in kept_rows[:1]]
            reading.examples += [f"{number} lost: {' '.join(lost)[:100]}"] if lost else []
            reading.examples += [f"{number} added: {' '.join(extra)[:100]}"] if extra else []


def _without_repeats(table: str) -> str:
    """Return the text of a table without the repeated text of merged cells, which occurs in each row or
    column that they span.
    """
    rows = [row.split(" | ") for row in table.splitlines()]
    above: Sequence[Sequence[str]] = [[], *rows[:-1]]
    return "\n".join(
        " ".join(cell for place, cell in enumerate(row) if [cell] != list(before[place : place + 1]))
        for before, row in zip(above, rows, strict=True)
    )


def _rows_outside_tables(
    reading: Reading, rows: Sequence[Sequence[str]], tables: Sequence[str]
) -> Iterator[str]:
    """Count the rows of numbers, and yield those that no single table row contains completely."""
    counters = [tokens(row) for row in tables]
    for row in rows:
        if is_number_row(row):
            row_tokens = tokens(" ".join(row))
            is_tabled = any(row_tokens <= counter for counter in counters)
            reading.rows += 1
            reading.tabled += is_tabled
            if not is_tabled:
                yield " ".join(row)


def reference_similarity(reference: Path) -> float:
    """Return the similarity of a parsed document to its reference text, without Markdown syntax and
    whitespace.
    """
    source = reference.parent.parent / "docs" / reference.name.removesuffix(".md")
    text = "\n".join(element.text for element in parse_pdf(source).elements)
    return similarity(_BARE.sub("", text), _BARE.sub("", reference.read_text(encoding="utf-8")))


def similarity(one: str, other: str) -> float:
    """Return the similarity of two texts from 0 to 1 (normalised Indel): twice the length of their longest
    common subsequence, divided by the sum of their lengths.

    Bit-parallel, after Hyyrö (2004), "Bit-parallel LCS-length computation revisited".
    """
    places: defaultdict[str, int] = defaultdict(int)
    for index, letter in enumerate(one):
        places[letter] |= 1 << index
    whole = (1 << len(one)) - 1
    row = whole
    for letter in other:
        common = row & places[letter]
        row = ((row + common) | (row - common)) & whole
    length = len(one) - row.bit_count()
    return 2 * length / (len(one) + len(other)) if one or other else 1.0


if __name__ == "__main__":
    sys.exit(main())
