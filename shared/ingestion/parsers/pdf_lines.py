"""Lines of text on PDF pages, and their grouping into columns and paragraphs.

A line break is kept if the first word of the next line would have fitted, as in addresses, lists and table
rows. Line breaks from word wrap are removed.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median

from shared.documents.models import Element
from shared.ingestion.parsers.pdf_content import HYPHEN_MARK, TextLine, Word
from shared.ingestion.parsers.pdf_geometry import Region

_WORD = re.compile(r"\w+(?:-\w+)*")
_BROKEN = re.compile(rf"((?<!\w)\w+|){HYPHEN_MARK}\s*(\w*)")
# U+F000 to U+F0FF are characters of symbol fonts, which Word uses for bullets.
BULLETS = "•·▪◦‣●○■□➢❖✓\uf0b7\uf0a7\uf076\uf0d8\uf0fc\uf0a8\uf02d\uf0e0"
_BULLET = re.compile(rf"(?:[{BULLETS}]|[*–—-](?=\s)|\(?(?:\d{{1,2}}|[a-z]|[ivx]{{1,4}})[.)](?=\s))\s*")
_ORDINAL = re.compile(r"(\d{1,2})\.(?=\s)")
_SIGN = re.compile(rf"\A[{BULLETS}*–—-]\s*")
_NUMERIC = re.compile(r"[$€£%()\-–—+.,:/]*\d[$€£%()\-–—+.,:/\d]*\Z|[$€£%—–-]\Z")
_SENTENCE_END = re.compile(r"[.!?…:][\"'”’»)\]]*\Z")
_ROW_NUMBERS = 2
# Minimum share of numbers among the words of a table row.
_ROW_SHARE = 0.3
# Minimum gap that may separate columns, relative to the font size. Spaces in justified text are narrower.
_WIDE_GAP = 0.9
# Minimum space between columns, relative to the font size.
_MIN_GUTTER = 0.6
# Minimum number of adjacent lines in a column. Fewer may be a heading with a date.
_MIN_COLUMN_LINES = 3
# Maximum line spacing in a column, relative to the font size.
_COLUMN_SPACING = 2.5
# Maximum indent of the first line of a paragraph, relative to the font size.
_MAX_INDENT = 6.0
# A paragraph is prose if it has at least this many lines and at least this share of them starts in lower
# case.
_MIN_EDGE_LINES, _SMALL_SHARE = 4, 0.3
# Maximum relative difference between the font sizes of a paragraph.
_SIZE_SHARE = 0.1
# Maximum height of a superscript or subscript, relative to the larger letters, and the minimum share of its
# height that overlaps their line.
_RAISED_SIZE, _RAISED_SHARE = 0.85, 0.5
# Maximum distance between a superscript or subscript and the larger letters, relative to the height of the
# larger letters.
_RAISED_GAP = 0.4
# Minimum width of a line that is wrapped, relative to the font size. Lines of short lists are narrower.
_WRAPPED_WIDTH = 20.0
# Minimum number of words in a line of prose. Table cells have fewer.
_MIN_COLUMN_WORDS = 3


@dataclass(frozen=True)
class Line:
    """A line of text on a page. Lengths are in points, and y grows upwards.

    Attributes:
        left, top: upper left corner of the first word.
        right, bottom: lower right corner of the last word.
        words: words in text order; empty if their positions are unknown.
        column: column number if the page has two columns here, otherwise 0.
    """

    text: str
    page_number: int
    size: float
    bold: bool
    left: float
    right: float
    top: float
    bottom: float
    words: tuple[Word, ...] = field(default=(), compare=False, repr=False)
    column: int = field(default=0, compare=False)

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


def page_lines(lines: Iterable[TextLine], page_number: int) -> list[Line]:
    """Return the lines of a page, column by column."""
    return in_columns(_with_raised([line_of(line, page_number) for line in lines]))


def _with_raised(lines: Iterable[Line]) -> list[Line]:
    """Rejoin the parts of lines that PDFium has split at a superscript or subscript: "systems", "6" and "It
    also" become one line.
    """
    joined: list[Line] = []
    for line in lines:
        before = joined[-1] if joined else None
        if before is None or not _meets_raised(before.words[-1], line.words[0]):
            joined.append(line)
            continue
        look = max(before, line, key=lambda one: len(one.text))
        words = (*before.words, *line.words)
        joined[-1] = line_of(TextLine(words, look.size, look.bold), line.page_number)
    return joined


def _meets_raised(before: Word, word: Word) -> bool:
    """Return whether one of two words is a superscript or subscript directly next to the other word."""
    lower, higher = sorted((before.height, word.height))
    shared = min(before.top, word.top) - max(before.bottom, word.bottom)
    is_beside = -_RAISED_GAP * higher <= word.left - before.right <= _RAISED_GAP * higher
    return 0 < lower <= _RAISED_SIZE * higher and shared >= _RAISED_SHARE * lower and is_beside


def line_of(line: TextLine, page_number: int) -> Line:
    """Convert a `TextLine` to a `Line` of the given page."""
    first, last = line.words[0], line.words[-1]
    return Line(
        text=" ".join([word.text for word in line.words]),
        page_number=page_number,
        size=line.size,
        bold=line.is_bold,
        left=first.left,
        right=last.right,
        top=first.top,
        bottom=last.bottom,
        words=line.words,
    )


def line_region(line: Line) -> Region:
    """Return the bounds of a line. The sides are sorted, because they are swapped in rotated text."""
    return Region(
        min(line.left, line.right),
        min(line.bottom, line.top),
        max(line.left, line.right),
        max(line.bottom, line.top),
    )


def with_words(line: Line, words: Sequence[Word]) -> Line:
    """Return a copy of the line that contains only these words."""
    cut = line_of(TextLine(tuple(words), line.size, line.bold), line.page_number)
    return replace(cut, column=line.column)


def in_columns(lines: Sequence[Line]) -> list[Line]:
    """Split the lines that extend across two columns, and return all lines column by column.

    Programs may write a page line by line, or alternate between columns. Columns are detected where several
    adjacent lines of prose leave the same vertical strip empty.
    """
    ordered = list(lines)
    for number, band in enumerate(_bands(ordered), start=1):
        ordered = _column_by_column(ordered, _grow_band(band, ordered), number)
    return ordered


@dataclass(frozen=True)
class _Band:
    """Area with two columns of text, described by the empty strip between them."""

    left: float
    right: float
    top: float
    bottom: float


def _bands(lines: Sequence[Line]) -> Iterator[_Band]:
    """Yield the two-column areas of a page, each described by the empty strip between its columns."""
    open_bands: list[tuple[_Band, list[str]]] = []
    for strip, size, sides in sorted(_strips(lines), key=lambda item: -item[0].top):
        for place, (band, texts) in enumerate(open_bands):
            left, right = max(band.left, strip.left), min(band.right, strip.right)
            is_near = band.bottom - strip.top < (_COLUMN_SPACING - 1) * size
            if is_near and right - left >= _MIN_GUTTER * size:
                open_bands[place] = (_Band(left, right, band.top, strip.bottom), [*texts, *sides])
                break
        else:
            open_bands.append((strip, [*sides]))
    yield from (
        band for band, texts in open_bands if len(texts) >= 2 * _MIN_COLUMN_LINES and _is_wrapped(texts)
    )


def _is_wrapped(texts: Sequence[str]) -> bool:
    """Return whether any text starts in lower case and so continues a sentence, as in columns of text but not
    in table cells.
    """
    return any(text[0].isalpha() and not text[0].isupper() for text in texts)


def _grow_band(band: _Band, lines: Sequence[Line]) -> _Band:
    """Extend a two-column area to the lines above and below that don't cross the empty strip between the
    columns.

    The result starts with a line of the left column and ends with one of the right column. Other lines, such
    as a date at the top right or the next heading at the bottom left, keep their position.
    """
    top, bottom = band.top, band.bottom
    grown_top, grown_bottom = top, bottom
    for line in sorted(lines, key=lambda one: one.bottom):
        if line.middle > band.top:
            if line.bottom - grown_top > _COLUMN_SPACING * line.size or not _leaves_free(line, band):
                break
            grown_top = max(grown_top, line.top)
            top = grown_top if line.left < band.left else top
    for line in sorted(lines, key=lambda one: -one.top):
        if line.middle < band.bottom:
            if grown_bottom - line.top > _COLUMN_SPACING * line.size or not _leaves_free(line, band):
                break
            grown_bottom = min(grown_bottom, line.bottom)
            bottom = grown_bottom if line.right > band.right else bottom
    return replace(band, top=top, bottom=bottom)


def _leaves_free(line: Line, band: _Band) -> bool:
    return all(part.right <= band.left or part.left >= band.right for part in _split_at_strip(line, band))


def _strips(lines: Sequence[Line]) -> Iterator[tuple[_Band, float, tuple[str, str]]]:
    """Yield the gaps with prose on both sides, which occur within a line or between two consecutive lines at
    the same height.

    Each gap comes with the font size of its line and the texts on both sides.
    """
    for before, line in zip([None, *lines], lines, strict=False):
        if len(line.words) >= 2 * _MIN_COLUMN_WORDS:
            yield from _strips_within(line)
        is_next_to = before is not None and _on_one_line(before, line) and line.left > before.right
        if before is not None and is_next_to and _is_prose(before.text) and _is_prose(line.text):
            band = _Band(before.right, line.left, line.top, line.bottom)
            yield band, line.size, (before.text, line.text)


def _strips_within(line: Line) -> Iterator[tuple[_Band, float, tuple[str, str]]]:
    least = _WIDE_GAP * line.size
    words = line.words
    gaps = [place for place in range(1, len(words)) if words[place].left - words[place - 1].right > least]
    borders = [0, *gaps, len(words)]
    for position, place in enumerate(gaps):
        sides = words[borders[position] : place], words[place : borders[position + 2]]
        before, behind = (" ".join([word.text for word in side]) for side in sides)
        if _is_prose(before) and _is_prose(behind):
            yield (
                _Band(words[place - 1].right, words[place].left, line.top, line.bottom),
                line.size,
                (before, behind),
            )


def _is_prose(text: str) -> bool:
    words = text.split()
    letters = sum(character.isalpha() for character in text)
    return len(words) >= _MIN_COLUMN_WORDS and letters >= len(text) / 2 and not is_row(text)


def _on_one_line(one: Line, other: Line) -> bool:
    return abs(one.bottom - other.bottom) < 0.3 * other.size


def _column_by_column(lines: Sequence[Line], band: _Band, number: int) -> list[Line]:
    """Return the lines of a page, reordered so that the left column of a two-column area precedes its right
    column.
    """
    inside = [place for place, line in enumerate(lines) if band.bottom <= line.middle <= band.top]
    parts = [part for place in inside for part in _split_at_strip(lines[place], band)]
    if any(part.left < band.left and part.right > band.right for part in parts):
        # A line extends across the strip, so the area has no columns.
        return list(lines)
    left = [replace(part, column=2 * number) for part in parts if part.left < band.left]
    right = [replace(part, column=2 * number + 1) for part in parts if part.left >= band.left]
    positions = set(inside)
    before = [line for place, line in enumerate(lines) if place < inside[0]]
    after = [line for place, line in enumerate(lines) if place > inside[0] and place not in positions]
    return [*before, *left, *right, *after]


def _split_at_strip(line: Line, band: _Band) -> Iterator[Line]:
    """Yield the parts of a line to the left and right of the strip, or the whole line if it has no gap at the
    strip.
    """
    for place, (before, word) in enumerate(pairwise(line.words), start=1):
        if (
            word.left - before.right > _WIDE_GAP * line.size
            and before.right <= band.left <= band.right <= word.left
        ):
            yield with_words(line, line.words[:place])
            yield with_words(line, line.words[place:])
            return
    yield line


class HyphenRule:
    """Rule that decides whether to keep or remove a hyphen at a line end, based on the other words of the
    document.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        """Collect the words of `texts`, which must contain all text of the document, including hyphen
        marks.
        """
        whole = _BROKEN.sub(" ", "\n".join(texts))
        self._words = set(_WORD.findall(whole.lower()))
        self._words.update([part for word in self._words if "-" in word for part in word.split("-")])

    def resolve_marks(self, text: str) -> str:
        """Rejoin the halves of each word at a hyphen mark, and replace the mark with a hyphen or nothing."""
        return _BROKEN.sub(self._decide, text) if HYPHEN_MARK in text else text

    def _decide(self, broken: re.Match[str]) -> str:
        left, right = broken[1], broken[2]
        joined, hyphenated = left + right, f"{left}-{right}"
        if not left or not right or not left[-1].isalpha() or not right[0].isalpha():
            return hyphenated
        if joined.lower() in self._words:
            return joined
        halves_known = left.lower() in self._words and right.lower() in self._words
        if hyphenated.lower() in self._words or halves_known or right[0].isupper():
            return hyphenated
        return joined


def paragraph_element(text: str, page_number: int | None) -> Element:
    """Return a list item if the text starts with a bullet, number or list letter, otherwise a paragraph.

    Bullets are replaced by "-". Numbers are kept, because the text may refer to them.
    """
    if not starts_item(text):
        return Element(kind="paragraph", text=text, page_number=page_number)
    bare = _SIGN.sub("", text)
    text = f"- {bare}" if bare != text else text
    return Element(kind="list_item", text=text, page_number=page_number)


def starts_item(text: str) -> bool:
    """Return whether a text starts with a bullet, list number or list letter."""
    return _BULLET.match(text) is not None


def is_row(text: str) -> bool:
    """Return whether a text looks like a row of a numeric table."""
    words = text.split()
    numbers = sum(_NUMERIC.match(word) is not None for word in words)
    return numbers >= _ROW_NUMBERS and numbers >= _ROW_SHARE * len(words)


class ParagraphRule:
    """Paragraph detection based on the line spacing and columns of one page."""

    def __init__(self, lines: Sequence[Line]) -> None:
        gaps = [before.bottom - line.top for before, line in pairwise(lines) if line.top < before.top]
        self._usual_gap = median(gaps) if gaps else 0.0
        self._lines = lines

    def same_row(self, before: Line, line: Line) -> bool:
        """Return whether `line` is to the right of `before` on the same baseline, like cells of a row.

        Prose on both sides of a wide gap doesn't count, since it belongs to two columns or boxes.
        """
        if not _on_one_line(before, line) or line.left < before.right:
            return False
        is_near = line.left - before.right <= _COLUMN_SPACING * line.size
        return is_near or not (_is_prose(before.text) and _is_prose(line.text))

    def starts_paragraph(self, before: Line, line: Line) -> bool:
        """Return whether `line` starts a new paragraph after `before`."""
        if before.text[-1] == HYPHEN_MARK:
            # A hyphenated word may continue anywhere on the page.
            return False
        if _differs_in_size(before, line) or (starts_item(line.text) and not self._is_wrapped(before, line)):
            return True
        # The line is at the top of the next column, where a sentence may continue.
        if line.top > before.top:
            goes_on = line.text[0].islower() and not _SENTENCE_END.search(before.text)
            return not goes_on or line.left < before.right or not self._tops_column(line)
        if _on_one_line(before, line) and line.left - before.right > _COLUMN_SPACING * line.size:
            return True
        is_lower = line.top < before.bottom + 0.2 * line.size
        is_beside = line.left >= before.right or before.left - line.right > _COLUMN_SPACING * line.size
        if is_lower and (is_beside or _falls_back(before, line)):
            # Text in another box, lower and to the right or left, doesn't continue this line.
            return True
        room = min(max(0.6 * line.size, 1.4 * self._usual_gap + 0.1 * line.size), 1.6 * line.size)
        return before.bottom - line.top > room

    def glue(self, before: Line, line: Line, right: float | None = None) -> str:
        """Return the separator between two lines of a paragraph: a space if the text was wrapped, or a line
        feed if the line break is intentional.

        Args:
            right: right edge of the paragraph; None = derive it from the other lines of the page.
        """
        if self._is_wrapped(before, line):
            return " "
        if is_row(before.text) or is_row(line.text):
            return "\n"
        if line.text[0].islower():
            return " "
        return "\n" if self._would_fit(before, line, right) else " "

    def _would_fit(self, before: Line, line: Line, right: float | None = None) -> bool:
        """Return whether the line before has room for the first word of `line`."""
        first_word = line.text.split(maxsplit=1)[0]
        letter_width = (line.right - line.left) / max(len(line.text), 1)
        edge = self._right_edge(before) if right is None else right
        return before.right + letter_width * (len(first_word) + 1) < edge

    def _is_wrapped(self, before: Line, line: Line) -> bool:
        """Return whether the number at the start of `line` belongs to the sentence before, such as a date,
        rather than to a list.

        The line before then is long, has no room for the number, doesn't end a sentence, isn't indented more,
        and isn't the list item with the preceding number.
        """
        number, number_before = _ORDINAL.match(line.text), _ORDINAL.match(before.text)
        if number is None or _SENTENCE_END.search(before.text):
            return False
        if number_before is not None and int(number[1]) == int(number_before[1]) + 1:
            return False
        is_long = before.right - before.left >= _WRAPPED_WIDTH * before.size
        is_indented_less = line.left < before.left - 0.5 * line.size
        return is_long and not is_indented_less and not self._would_fit(before, line)

    def _tops_column(self, line: Line) -> bool:
        """Return whether no other line is directly above `line`."""
        return not any(
            0 <= other.bottom - line.top + 0.3 * line.size <= line.size
            and min(other.right, line.right) > max(other.left, line.left)
            for other in self._lines
            if other is not line
        )

    def _right_edge(self, line: Line) -> float:
        """Return the right edge of the lines that start at about the same horizontal position as `line`."""
        return max(other.right for other in self._lines if abs(other.left - line.left) <= 2 * line.size)


def _differs_in_size(before: Line, line: Line) -> bool:
    """Return whether two lines differ in both font size and word height.

    Neither is enough: the font size is measured at one letter, which may be a small capital, and the height
    also depends on the typeface.
    """
    if abs(before.size - line.size) <= _SIZE_SHARE * line.size:
        return False
    heights = [median([word.height for word in one.words]) for one in (before, line) if one.words]
    return len(heights) < 2 or abs(heights[0] - heights[1]) > _SIZE_SHARE * heights[1]


def _falls_back(before: Line, line: Line) -> bool:
    """Return whether `line` starts far to the left of `before` and isn't centred below it."""
    is_centred = abs((before.left + before.right) - (line.left + line.right)) <= 2 * line.size
    return before.left - line.left > _MAX_INDENT * line.size and not is_centred


def split_groups(lines: Sequence[Line], rule: ParagraphRule) -> Iterator[list[Line]]:
    """Group lines into paragraphs, and yield the lines of each."""
    group: list[Line] = []
    for line in lines:
        if group and not rule.same_row(group[-1], line):
            row_left = min(one.left for one in group if _on_one_line(one, group[-1]))
            if rule.starts_paragraph(replace(group[-1], left=row_left), line):
                yield group
                group = []
        group.append(line)
    if group:
        yield group


def paragraph_text(group: Sequence[Line], rule: ParagraphRule) -> str:
    """Join the lines of a paragraph into one text. Hyphen marks at line ends are kept."""
    text = group[0].text
    small = sum(line.text[0].islower() for line in group[1:])
    is_prose = len(group) >= _MIN_EDGE_LINES and small >= _SMALL_SHARE * len(group)
    for before, line in pairwise(group):
        # Measure the right edge in one column only, because the paragraph may continue in the next one. In
        # rotated text, no line qualifies.
        ends = [one.right for one in group if one.left < before.right]
        right = max(ends) if ends and is_prose else None
        text += (" " if rule.same_row(before, line) else rule.glue(before, line, right)) + line.text
    return text
