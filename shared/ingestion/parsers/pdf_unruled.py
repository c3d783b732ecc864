"""Detection of unruled tables: rows of numbers in aligned columns.

Only the positions of words are used. Each word of a table belongs to one cell, but a header cell across
several columns is repeated in each of them.

The module exceeds 500 lines because rows, columns, headers and the rejection of other text share metrics.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from statistics import median_high
from typing import Literal

from shared.ingestion.parsers.pdf_content import Word
from shared.ingestion.parsers.pdf_geometry import Region
from shared.ingestion.parsers.pdf_lines import Line
from shared.ingestion.parsers.pdf_tables import Table
from shared.tables.units import is_unit

# Vertical tolerance for words in one row, relative to the height of a word. Rows are at least one height
# apart.
_SAME_ROW = 0.5
# Minimum number of lines in running text, and the minimum average number of words per line.
_MIN_PARAGRAPH, _MIN_LINE_WORDS = 4, 3
# Maximum line spacing within a paragraph, relative to the font size.
_LINE_STEP = 2.0
# Minimum gap between two cells, in word heights. Spaces within text are narrower.
_CELL_GAP = 0.75
# Minimum gap between two numbers, in word heights. It is smaller than `_CELL_GAP`, because numbers never
# share a cell.
_FIGURE_GAP = 0.4
# Maximum gap between a number and the sign after it, in word heights.
_SIGN_GAP = 1.2
# Maximum gap between the rows of a table, in word heights.
_ROW_GAP = 2.6
# Maximum gap between the rows of a header, in word heights.
_HEADER_GAP = 2.2
# Maximum gap between the lines of a header cell, in word heights.
_WRAP_GAP = 0.5
_MAX_HEADER_ROWS = 6
# Minimum number of columns in each of two adjacent tables.
_MIN_HALF = 2
# Minimum number of cells in a header row that names every column.
_MIN_NAMED = 3
# Maximum number of consecutive rows without numbers, such as section names and labels that span several
# lines.
_MAX_LABEL_ROWS = 8
# Minimum number of rows with numbers, in a table with several number columns and in a table with only one.
_MIN_ROWS, _MIN_SINGLE_ROWS = 2, 3
_MIN_FIGURES = 3
# Minimum share of filled number cells. The scattered numbers of a chart fill a smaller share.
_MIN_FILLED = 0.4
# Minimum share of rows with a label. The numbers on the axis of a chart have none.
_MIN_LABELLED = 0.5
# Minimum share of amounts of money in a single number column. It excludes lists of page numbers.
_MIN_MONEY = 0.5
# Maximum number of words in a header cell, and minimum number of words in a sentence.
_MAX_HEADER_WORDS, _MIN_SENTENCE_WORDS = 12, 5
# Text with at least this many words that extends into the number columns is prose.
_PROSE_WORDS = 8
# Maximum average length of labels in characters. Longer ones are paragraphs next to numbers.
_MAX_LABEL_CHARS = 160
# Tolerance between the centre of a header and the centre of the columns below it, in points.
_CENTRED = 4.0

_FIGURE = re.compile(
    r"[-+−–—(]*(?:[A-Z]{0,3}[$€£¥₹][-+−–—(]*)?\d[\d.,]*(?:[%x]|bps?|pts?)?\)?%?(?:\([a-z\d]{1,2}\))?[*†‡]*\Z"
)
_NIL = re.compile(r"(?:[$€£¥]?\(?[-–—]+\)?%?|n/?[am]\.?|nil)\Z", re.IGNORECASE)
_YEAR = re.compile(r"(?:19|20)\d\d[EFA]?\Z")
_SIGN_BEFORE = re.compile(r"(?:[A-Z]{0,3}[$€£¥₹]\(?|\(\$?)\Z")
_SIGN_AFTER = re.compile(r"(?:%\)?|\)%?)\Z")
_AMOUNT = re.compile(r"\d[.,]\d|[$€£¥₹%]|\(\d")
_BEFORE_SIGN = re.compile(r" (?=[%)])")
_LEADER = re.compile(r"[.…·_]+\Z")
_LEADERS = re.compile(r"(?<!\s)\s*(?:[.…·_]\s*){3,}")
_UNIT = re.compile(
    r"\(?(?:[\w.,$€£¥₹]+\s+){0,4}in\s+(?:\w+\s+)?(?:thousands?|millions?|billions?|lacs|lakhs|crores?|['’]?000s?)\b"
    r"|\(?(?:[$€£]|eur|usd|gbp|chf)\s*(?:thousands?|millions?|billions?|m|mn|bn|k)\b|\(unaudited\)"
    r"|\(?(?:in\s+)?(?:tausend|millionen|mio|tsd|teur|t€)\b",
    re.IGNORECASE,
)
_CAPTION = re.compile(
    r"(?:table|figure|fig\.|chart|exhibit|tabelle|abbildung|abb\.)\s*[A-Z]?\.?\d", re.IGNORECASE
)


Kind = Literal["figure", "nil", "before", "after", "leader", "text"]


_FIGURES = frozenset(("figure", "nil"))


@lru_cache(maxsize=1 << 14)
def _kind(text: str) -> Kind:
    """Classify a word as a number, placeholder, sign, leader or text. Results are cached, because words
    repeat within a document.
    """
    if _FIGURE.match(text):
        return "figure"
    if _NIL.match(text):
        return "nil"
    if _SIGN_BEFORE.match(text):
        return "before"
    if _SIGN_AFTER.match(text):
        return "after"
    return "leader" if _LEADER.match(text) else "text"


class _Cell:
    """Adjacent words of a row that form a table cell.

    Attributes:
        is_figure: whether the cell is a number or a placeholder for one. Years count as names.
    """

    def __init__(self, words: Sequence[Word]) -> None:
        text = " ".join([word.text for word in words])
        self.words = words
        self.text = _LEADERS.sub(" ", text).strip() if _kind(words[-1].text) == "leader" else text
        self.left = min([word.left for word in words])
        self.right = max([word.right for word in words])
        self.is_year = _YEAR.match(text) is not None
        self.is_figure = not self.is_year and _kind("".join([word.text for word in words])) in _FIGURES
        if self.is_figure and len(words) > 1:
            self.text = _BEFORE_SIGN.sub("", text)

    @property
    def centre(self) -> float:
        return (self.left + self.right) / 2


class _Row:
    """Words on one line of the page, grouped into cells from left to right."""

    def __init__(self, words: Sequence[Word]) -> None:
        self.words = sorted(words, key=_left)
        self.top = max([word.top for word in words])
        self.bottom = min([word.bottom for word in words])
        self.height = self.words[len(words) // 2].height

    @cached_property
    def cells(self) -> list[_Cell]:
        return list(_cells(self.words))

    @cached_property
    def figures(self) -> list[_Cell]:
        if all(_kind(word.text) in ("text", "leader") for word in self.words):
            return []
        first = self.cells[0]
        # In rows such as "2019 $ 1,234", "1 Apples 12" and "- 5 % of sales", the first number is a name or a
        # bullet.
        is_name = len(self.cells) > 1 and not self.cells[1].is_figure
        return [cell for cell in self.cells if cell.is_figure and not (is_name and cell is first)]

    @cached_property
    def texts(self) -> list[_Cell]:
        return [cell for cell in self.cells if cell not in self.figures]

    @cached_property
    def year_count(self) -> int:
        return sum(cell.is_year for cell in self.cells)

    @cached_property
    def is_data(self) -> bool:
        has_digits = any(any(map(str.isdigit, cell.text)) for cell in self.figures)
        return has_digits or len(self.figures) > 1

    @property
    def text(self) -> str:
        return " ".join(cell.text for cell in self.cells)


def unruled_tables(lines: Sequence[Line]) -> Iterator[Table]:
    """Yield the tables among the lines of a page. If the page has columns of text, each column is searched
    separately.
    """
    columns: defaultdict[int, list[Word]] = defaultdict(list)
    paragraphs = _paragraph_lines(lines)
    for place, line in enumerate(lines):
        if place not in paragraphs:
            columns[line.column] += line.words
    for words in columns.values():
        if sum([_kind(word.text) == "figure" for word in words]) >= _MIN_FIGURES:
            yield from _tables(_rows(words))


def _paragraph_lines(lines: Sequence[Line]) -> set[int]:
    """Return the positions of the lines that belong to running text. Running text is recognised by lines that
    start in lower case.

    Such text may be next to a table.
    """
    order = sorted(range(len(lines)), key=lambda place: (round(lines[place].left), -lines[place].top))
    positions: set[int] = set()
    run: list[int] = []
    for place in [*order, None]:
        if place is not None and run and _continues_paragraph(lines[run[-1]], lines[place]):
            run.append(place)
            continue
        first_words = [lines[one].words[0].text for one in run if lines[one].words]
        small = sum(word.isalpha() and word.islower() for word in first_words)
        words = sum(len(lines[one].words) for one in run)
        if len(run) >= _MIN_PARAGRAPH and 2 * small >= len(run) and words >= _MIN_LINE_WORDS * len(run):
            positions.update(run)
        run = [] if place is None else [place]
    return positions


def _continues_paragraph(before: Line, line: Line) -> bool:
    is_below = 0 < before.top - line.top <= _LINE_STEP * line.size
    is_aligned = abs(before.left - line.left) <= line.size and before.size == line.size
    figures = sum(_kind(word.text) in _FIGURES for word in line.words)
    return is_below and is_aligned and 2 * figures < len(line.words) and line.column == before.column


def _rows(words: Sequence[Word]) -> list[_Row]:
    usual = median_high([word.height for word in words])
    rows: list[list[Word]] = []
    row_middle = 0.0
    for middle, height, word in sorted([(word.middle, word.height, word) for word in words], reverse=True):
        if rows and row_middle - middle < _SAME_ROW * max(height, usual):
            rows[-1].append(word)
        elif height > 0:
            rows.append([word])
            row_middle = middle
    return [_Row(row) for row in rows]


def _left(word: Word) -> float:
    return word.left


def _cells(words: Sequence[Word]) -> Iterator[_Cell]:
    """Group the words of a row into cells. Words close to each other form a cell, and so do a number and its
    sign.
    """
    cell: list[Word] = []
    for word in words:
        if cell and not _joins(cell, word):
            yield _Cell(cell)
            cell = []
        cell.append(word)
    yield _Cell(cell)


def _joins(cell: Sequence[Word], word: Word) -> bool:
    before = cell[-1]
    gap = (word.left - before.right) / max(word.height, 0.1)
    kind, kind_before = _kind(word.text), _kind(before.text)
    if kind == "text" and kind_before == "text":
        return gap < _CELL_GAP
    if kind_before == "before" and len(cell) == 1:
        return kind in ("figure", "nil") or gap < _CELL_GAP
    if kind_before == "leader":
        return kind == "leader" or (kind == "text" and gap < _CELL_GAP)
    if kind == "after":
        return gap < _SIGN_GAP
    if kind_before == "figure" and kind == "before":
        return False
    return gap < (_FIGURE_GAP if kind_before == "figure" and kind in ("figure", "nil") else _CELL_GAP)


Span = tuple[float, float]
"""Left and right end of a column."""


@dataclass
class _Block:
    """Consecutive rows that may form a table, starting with the first row of numbers."""

    rows: list[_Row] = field(default_factory=list)
    columns: list[Span] = field(default_factory=list)

    @property
    def label_end(self) -> float:
        """Right edge of the longest label in the first column."""
        return max([row.cells[0].right for row in self.rows if row.texts], default=self.columns[0][0])

    def holds(self, row: _Row) -> bool:
        """Return whether every number of the row is below or above an existing number column."""
        return all(
            any(cell.left < right and cell.right > left for left, right in self.columns)
            for cell in row.figures
        )

    def fits(self, row: _Row) -> bool:
        """Return whether the row can be added to the table without mixing up its columns.

        A column must not get two numbers from one row, and a row without a label must not add a column.
        """
        if not row.texts and not self.holds(row):
            return False
        columns = _joined_spans([*self.columns, *((cell.left, cell.right) for cell in row.figures)])
        if len(columns) == len(self.columns):
            return _is_apart(row, columns)
        return all(_is_apart(other, columns) for other in [*self.rows, row])

    def add(self, row: _Row) -> None:
        self.rows.append(row)
        self.columns = _joined_spans([*self.columns, *((cell.left, cell.right) for cell in row.figures)])


def _joined_spans(spans: Sequence[Span]) -> list[Span]:
    joined: list[Span] = []
    for left, right in sorted(spans):
        if joined and left < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], right))
        else:
            joined.append((left, right))
    return joined


def _is_apart(row: _Row, columns: Sequence[Span]) -> bool:
    places = [_column_of(cell, columns) for cell in row.figures]
    return len(set(places)) == len(places)


def _column_of(cell: _Cell, columns: Sequence[Span]) -> int:
    """Return the index of the column that overlaps most with the cell, or of the nearest column if none
    overlaps.
    """

    def share(place: int) -> tuple[float, float]:
        left, right = columns[place]
        return min(cell.right, right) - max(cell.left, left), -abs((left + right) / 2 - cell.centre)

    return max(range(len(columns)), key=share)


def _tables(rows: Sequence[_Row]) -> Iterator[Table]:
    start = end = 0
    while start < len(rows):
        if not rows[start].is_data:
            start += 1
            continue
        block, after = _block(rows, start)
        if _is_table(block):
            header, labels = _header(rows[end:start], block)
            yield from _whole_or_halves(header, [*labels, *rows[start:after]], block)
            end = after
        start = after


def _block(rows: Sequence[_Row], start: int) -> tuple[_Block, int]:
    """Return the longest block of rows from `start` that may form a table, and the index of the row after
    it.
    """
    block = _Block()
    block.add(rows[start])
    after = start + 1
    for place in range(start + 1, len(rows)):
        row = rows[place]
        is_far = rows[place - 1].bottom - row.top > _ROW_GAP * row.height
        if is_far or place - after > _MAX_LABEL_ROWS:
            break
        if row.figures and (row.is_data or block.holds(row)):
            if row.year_count > len(row.figures) or not block.fits(row):
                break
            block.add(row)
            after = place + 1
        elif _ends_table(row, block):
            break
    if after < len(rows) and _continues_label(rows[after - 1], rows[after]):
        after += 1
    return block, after


def _ends_table(row: _Row, block: _Block) -> bool:
    """Return whether a row without numbers ends the table above it, because the row is prose or the header of
    the next table.
    """
    begin = block.columns[0][0]
    label = min(other.cells[0].left for other in block.rows)
    is_header = (
        len(row.cells) > 1 and row.cells[-1].right > begin and row.cells[0].left > label + 2 * row.height
    )
    if is_header or row.year_count > 1 or _CAPTION.match(row.text):
        return True
    if sum(cell.left > begin for cell in row.cells) > 1:
        return True
    return any(cell.left < begin < cell.right and len(cell.words) >= _PROSE_WORDS for cell in row.cells)


def _continues_label(row: _Row, below: _Row) -> bool:
    """Return whether the row `below` contains nothing but the rest of the label in `row`."""
    is_near = row.bottom - below.top <= 0.6 * below.height
    is_label = len(below.cells) == 1 and not row.cells[0].is_figure and below.words[0].text[0].islower()
    return is_near and is_label and below.cells[0].right < max(row.cells[-1].left, row.cells[0].right + 1)


def _is_table(block: _Block) -> bool:
    rows, width = block.rows, len(block.columns)
    figures = [cell for row in rows for cell in row.figures]
    begin = block.columns[0][0]
    labels = [row.cells[0].text for row in rows if row.cells[0].left < begin and row.texts]
    if len(labels) < _MIN_LABELLED * len(rows) or len(figures) < _MIN_FILLED * len(rows) * width:
        return False
    if sum(map(len, labels)) > _MAX_LABEL_CHARS * len(labels):
        return False
    amounts = sum(_AMOUNT.search(cell.text) is not None for cell in figures)
    if width == 1:
        return len(rows) >= _MIN_SINGLE_ROWS and amounts >= _MIN_MONEY * len(figures)
    return len(rows) >= _MIN_ROWS and sum(len(row.figures) > 1 for row in rows) >= _MIN_ROWS


def _header(above: Sequence[_Row], block: _Block) -> tuple[list[_Row], list[_Row]]:
    """Split the rows above a block. Return the rows that form its header, because they name columns or units,
    and the rows between header and block, which contain section names.
    """
    header: list[_Row] = []
    below = block.rows[0]
    width = max(_MIN_NAMED, *(len(row.cells) for row in block.rows))
    for row in reversed(above[-_MAX_HEADER_ROWS:]):
        if row.bottom - below.top > _HEADER_GAP * below.height or not _is_header(row, block):
            break
        is_apart = row.bottom - below.top > _WRAP_GAP * below.height
        is_over = all(cell.left > block.label_end for cell in row.cells)
        if header and len(below.cells) >= width and is_apart and not _is_unit(row.text) and not is_over:
            # Every column has a name now, so the rows above aren't part of the header.
            break
        header.insert(0, row)
        below = row
        if _is_unit(row.text) and len(row.cells) == 1:
            # The row above the units is the title of the table.
            break
    while header and not _names_columns(header[0], block):
        header.pop(0)
    names = [place for place, row in enumerate(header) if _names_columns(row, block)]
    end = names[-1] + 1 if names else 0
    return header[:end], header[end:]


def _is_header(row: _Row, block: _Block) -> bool:
    if _is_unit(row.text):
        return len(row.words) <= 2 * _MAX_HEADER_WORDS
    begin = block.columns[0][0]
    if _CAPTION.match(row.text) or any(_is_sentence(cell) for cell in row.cells):
        return False
    reach = row.height
    is_over = any(
        cell.left < min(begin - 2 * reach, block.label_end) and cell.right > begin + reach
        for cell in row.cells
    )
    return not is_over and not _is_title(row, block) and (not row.is_data or row.year_count > 1)


def _is_unit(text: str) -> bool:
    return _UNIT.match(text) is not None or is_unit(text)


def _is_sentence(cell: _Cell) -> bool:
    is_ended = cell.text.endswith((".", ";")) and len(cell.words) >= _MIN_SENTENCE_WORDS
    return is_ended or len(cell.words) > _MAX_HEADER_WORDS


def _is_title(row: _Row, block: _Block) -> bool:
    """Return whether a row is a title: a single text that is centred over the whole table, not just over its
    number columns.
    """
    if len(row.cells) > 1:
        return False
    cell, right = row.cells[0], block.columns[-1][1]
    left = min(row.cells[0].left for row in block.rows)
    is_centred = abs((left + right) / 2 - cell.centre) <= 2 * _CENTRED
    return is_centred and abs((block.columns[0][0] + right) / 2 - cell.centre) > 2 * _CENTRED


def _names_columns(row: _Row, block: _Block) -> bool:
    begin = block.columns[0][0] - row.height
    return len(row.cells) > 1 or row.cells[0].centre > begin or _is_unit(row.text)


def _whole_or_halves(header: Sequence[_Row], body: Sequence[_Row], block: _Block) -> Iterator[Table]:
    """Yield the table, or two adjacent tables if the right half has the same column names as the left
    half.
    """
    columns = _all_columns(body, block)
    names = _header_texts(header, columns, block)
    half = len(names) // 2
    is_twin = len(names) % 2 == 0 and half >= _MIN_HALF and names[1:half] == names[half + 1 :]
    if not is_twin or not all(names[1:half]) or columns[half] in block.columns:
        yield _table(header, body, block)
        return
    border = (columns[half - 1][1] + columns[half][0]) / 2
    words = [word for row in [*header, *body] for word in row.words]
    yield from _tables(_rows([word for word in words if word.left < border]))
    yield from _tables(_rows([word for word in words if word.left >= border]))


def _table(header: Sequence[_Row], body: Sequence[_Row], block: _Block) -> Table:
    columns = _all_columns(body, block)
    rows = [_row_texts(row, columns, block) for row in body]
    texts = [_header_texts(header, columns, block), *_with_whole_labels(rows, body)]
    words = [word for row in [*header, *body] for word in row.words]
    box = Region(
        min(word.left for word in words),
        min(word.bottom for word in words),
        max(word.right for word in words),
        max(word.top for word in words),
    )
    return Table(box, tuple(tuple(row) for row in texts), frozenset(words))


def _all_columns(body: Sequence[_Row], block: _Block) -> list[Span]:
    """Return the spans of all columns, numeric or text. The first column usually contains the labels."""
    begin = block.columns[0][0]
    spans = []
    for row in body:
        for cell in row.texts if row.figures else ():
            is_label = cell is row.cells[0] and cell.left < begin
            if is_label or not any(cell.left < right and cell.right > left for left, right in block.columns):
                spans.append((cell.left, min(cell.right, begin) if is_label else cell.right))
    return sorted([*block.columns, *_joined_spans(spans)])


def _row_texts(row: _Row, columns: Sequence[Span], block: _Block) -> list[str]:
    texts = [""] * len(columns)
    for cell in row.cells:
        is_label = cell is row.cells[0] and cell.left < block.columns[0][0] and cell not in row.figures
        place = _label_column(cell, columns) if is_label else _column_of(cell, columns)
        texts[place] = f"{texts[place]} {cell.text}".strip()
    return texts


def _label_column(cell: _Cell, columns: Sequence[Span]) -> int:
    """Return the index of the last column that starts at the same position as the cell or to its left."""
    return max((place for place, (left, _) in enumerate(columns) if left <= cell.left + 1), default=0)


def _with_whole_labels(rows: Sequence[list[str]], body: Sequence[_Row]) -> Iterator[list[str]]:
    """Yield the texts of the rows. A row whose label starts in lower case is merged with the previous row,
    because it continues that row's label.
    """
    pending: list[str] | None = None
    for texts, row in zip(rows, body, strict=True):
        goes_on = texts[0][:1].islower()
        if pending is not None and goes_on and not pending[0].endswith(":"):
            is_label_only = not any(pending[1:]) or not row.figures
            if is_label_only:
                pending = [f"{one} {two}".strip() for one, two in zip(pending, texts, strict=True)]
                continue
        if pending is not None:
            yield pending
        pending = list(texts)
    if pending is not None:
        yield pending


def _header_texts(header: Sequence[_Row], columns: Sequence[Span], block: _Block) -> list[str]:
    texts: list[list[str]] = [[] for _ in columns]
    first = columns.index(block.columns[0])
    spans = list(columns)
    for row in reversed(header):
        for cell, places in zip(row.cells, _header_places(row, spans, first), strict=True):
            for place in places:
                texts[place].insert(0, cell.text)
            # Widen the column to the width of its header, so that headers in the rows above are assigned to
            # it.
            if len(places) == 1:
                left, right = spans[places[0]]
                spans[places[0]] = min(left, cell.left), max(right, cell.right)
    return [" ".join(parts) for parts in texts]


def _header_places(row: _Row, columns: Sequence[Span], first: int) -> list[list[int]]:
    """Return the indexes of the columns that each cell of a header row names.

    A cell names the columns that it overlaps, and adjacent columns if it is centred over all of them.
    """
    covered = [
        [place for place, (left, right) in enumerate(columns) if cell.left < right and cell.right > left]
        for cell in row.cells
    ]
    result = []
    for number, cell in enumerate(row.cells):
        own = covered[number]
        if _UNIT.match(cell.text) or (len(row.cells) == 1 and is_unit(cell.text)):
            result.append([0])
            continue
        if cell.right < columns[first][0]:
            # The name of a column may be to the left of its numbers.
            is_label = not number or not first or _column_of(cell, columns[: first + 1]) < first
            result.append([min(_column_of(cell, columns), first - 1) if first and is_label else first])
            continue
        others = {place for other, places in enumerate(covered) if other != number for place in places}
        ranges = [
            list(range(begin, end + 1))
            for begin in range(first, len(columns))
            for end in range(begin, len(columns))
            if abs((columns[begin][0] + columns[end][1]) / 2 - cell.centre) <= _CENTRED
            and not others & set(range(begin, end + 1))
            and set(own) <= set(range(begin, end + 1))
        ]
        if len(own) == 1 or not ranges:
            result.append(own or [_column_of(cell, columns)])
        else:
            result.append(max(ranges, key=len) if own else min(ranges, key=len))
    return result
