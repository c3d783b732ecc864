"""Insertion of form values and typed notes into the lines of text of a PDF page.

PDF stores them apart from the page's text. A value is appended to the line next to its field; without such a
line, it becomes a separate line with the name of the field.
"""

from collections.abc import Sequence
from dataclasses import replace

from shared.ingestion.parsers.pdf_content import TICKED, FormField, Word
from shared.ingestion.parsers.pdf_lines import Line

# Maximum distance between a tick box and its label, in points.
_MAX_GAP_POINTS = 60.0


def with_filled(lines: Sequence[Line], filled: Sequence[FormField], page_number: int) -> list[Line]:
    """Insert the values of form fields, and notes, into the lines of a page at their positions."""
    placed = list(lines)
    for one in sorted(filled, key=lambda entry: (-entry.middle, entry.box.left)):
        position = _label(placed, one)
        if position is not None:
            placed[position] = _joined(placed[position], one)
        elif one.kind != "tick" or (one.text == TICKED and one.name):
            placed.insert(_place(placed, one), _own_line(placed, one, page_number))
    return placed


def _label(lines: Sequence[Line], one: FormField) -> int | None:
    """Return the index of the line that labels a form field: the line to the right of a tick box, or to the
    left of any other field. Return None if there is none.
    """
    level = [place for place, line in enumerate(lines) if line.bottom <= one.middle <= line.top]
    behind = [place for place in level if 0 <= lines[place].left - one.box.right + 2 <= _MAX_GAP_POINTS]
    before = [place for place in level if lines[place].right <= one.box.left + 2]
    if one.kind == "tick":
        return min(behind, key=lambda place: lines[place].left, default=None)
    if one.kind == "note":
        return None
    return max(before, key=lambda place: lines[place].right, default=None)


def _joined(line: Line, one: FormField) -> Line:
    word = Word(one.text, one.box.left, one.box.bottom, one.box.right, one.box.top)
    if one.kind == "tick":
        return replace(line, words=(word, *line.words), text=f"{one.text} {line.text}", left=one.box.left)
    return replace(line, words=(*line.words, word), text=f"{line.text} {one.text}", right=one.box.right)


def _place(lines: Sequence[Line], one: FormField) -> int:
    """Return the index at which to insert a form field: after the lowest line above it."""
    higher = [place for place, line in enumerate(lines) if line.bottom >= one.middle]
    return min(higher, key=lambda place: lines[place].bottom) + 1 if higher else 0


def _own_line(lines: Sequence[Line], one: FormField, page_number: int) -> Line:
    sizes = sorted(line.size for line in lines)
    return Line(
        text=f"{one.name.rstrip(': ')}: {one.text}" if one.name else one.text,
        page_number=page_number,
        size=sizes[len(sizes) // 2] if sizes else 10.0,
        bold=False,
        left=one.box.left,
        right=one.box.right,
        top=one.box.top,
        bottom=one.box.bottom,
    )
