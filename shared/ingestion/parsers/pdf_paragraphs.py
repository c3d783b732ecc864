"""Lines into paragraphs: what belongs together, and where a line end means something.

A line end is kept where the next line's first word would have fitted: addresses, lists, rows of a table. It
is dropped where the typesetter wrapped the text.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from shared.ingestion.parsers.pdf_lines import Line

_BULLET = re.compile(r"(?:[•·▪◦‣●○■□]|[*–—-](?=\s)|\(?(?:\d{1,2}|[a-z]|[ivx]{1,4})[.)](?=\s))\s*")
_NUMERIC = re.compile(r"[$€£%()\-–—+.,:/\d]*\d[$€£%()\-–—+.,:/\d]*[%)]?\Z|[$€£%—–-]\Z")
_SENTENCE_END = re.compile(r"[.!?…:][\"'”’»)\]]*\Z")
_ROW_NUMBERS = 2
_ROW_SHARE = 0.3  # of a row's words are numbers


def is_list_item(text: str) -> bool:
    """Whether the line begins with a bullet, a number or a letter of a list."""
    return _BULLET.match(text) is not None


def without_bullet(text: str) -> str:
    """A list item's text; numbers stay, they may be referred to."""
    return re.sub(r"\A[•·▪◦‣●○■□*–—-]\s*", "", text)


def is_row(text: str) -> bool:
    """Whether the line is a row of a table of numbers."""
    words = text.split()
    numbers = sum(_NUMERIC.match(word) is not None for word in words)
    return numbers >= _ROW_NUMBERS and numbers >= _ROW_SHARE * len(words)


class ParagraphRule:
    """Knows the line spacing and the columns of one page."""

    def __init__(self, lines: Sequence[Line]) -> None:
        gaps = [before.bottom - line.top for before, line in pairwise(lines) if line.top < before.top]
        self._usual_gap = median(gaps) if gaps else 0.0
        self._lines = lines

    def same_row(self, before: Line, line: Line) -> bool:
        """Whether `line` stands to the right of `before` on the same base line: cells of one row."""
        return abs(before.bottom - line.bottom) < 0.3 * line.size and line.left >= before.right

    def starts_paragraph(self, before: Line, line: Line) -> bool:
        """Whether `line` belongs to another paragraph than the line before it."""
        if is_list_item(line.text) or abs(before.size - line.size) > 0.1 * line.size:
            return True
        if line.top > before.top:  # the next column: a sentence may go on there
            return bool(_SENTENCE_END.search(before.text)) or not line.text[0].islower()
        room = min(max(0.6 * line.size, 1.4 * self._usual_gap + 0.1 * line.size), 1.6 * line.size)
        return before.bottom - line.top > room

    def glue(self, before: Line, line: Line) -> str:
        """A blank where the text was wrapped, a line break where the line end says something."""
        if is_row(before.text) or is_row(line.text):
            return "\n"
        if line.text[0].islower():
            return " "
        first_word = line.text.split(maxsplit=1)[0]
        letter_width = (line.right - line.left) / max(len(line.text), 1)
        would_fit = before.right + letter_width * (len(first_word) + 1) < self._right_edge(before)
        return "\n" if would_fit else " "

    def _right_edge(self, line: Line) -> float:
        """The right edge of the column in which `line` stands."""
        return max(other.right for other in self._lines if abs(other.left - line.left) <= 2 * line.size)


def split_groups(lines: Sequence[Line], rule: ParagraphRule) -> Iterator[list[Line]]:
    """The lines of each paragraph."""
    group: list[Line] = []
    for line in lines:
        if group and not rule.same_row(group[-1], line) and rule.starts_paragraph(group[-1], line):
            yield group
            group = []
        group.append(line)
    if group:
        yield group


def paragraph_text(group: Sequence[Line], rule: ParagraphRule) -> str:
    """The text of a paragraph's lines, hyphen marks left in."""
    text = group[0].text
    for before, line in pairwise(group):
        text += (" " if rule.same_row(before, line) else rule.glue(before, line)) + line.text
    return text
