"""Where the values of form fields stand in a page's text.

None of them is part of a page's own text, and all of them are what its readers see first. A value joins the
line that stands beside its field; where none does, it is a line of its own that begins with the field's name.
"""

from collections.abc import Sequence
from dataclasses import replace

from shared.ingestion.parsers.pdf_content import TICKED, FormField, Word
from shared.ingestion.parsers.pdf_lines import Line

_MAX_GAP_POINTS = 60.0  # between a tick and its words


def with_filled(lines: Sequence[Line], filled: Sequence[FormField], page_number: int) -> list[Line]:
    """Return the lines of a page and what was filled in, each where it stands."""
    placed = list(lines)
    for one in sorted(filled, key=lambda found: (-found.middle, found.box.left)):
        position = _label(placed, one)
        if position is not None:
            placed[position] = _joined(placed[position], one)
        elif one.kind != "tick" or (one.text == TICKED and one.name):
            placed.insert(_place(placed, one), _own_line(placed, one, page_number))
    return placed


def _label(lines: Sequence[Line], one: FormField) -> int | None:
    """The line that the field belongs to: words right behind a tick, else the nearest before the field."""
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
    """Behind the lowest line that stands higher."""
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
