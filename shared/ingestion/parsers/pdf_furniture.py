"""Removal of running headers, footers and page numbers, which repeat at the edges of PDF pages. Pure."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from shared.ingestion.parsers.pdf_lines import Line

_MIN_PAGES = 4
# Minimum share of pages on which a running line occurs. Headers that alternate with others occur on half of
# the pages.
_MIN_SHARE = 0.4
# Maximum number of lines between the edge of a page and the gap that separates running lines from the text.
_EDGE_LINES = 4
# Number of rows to check at the top and at the bottom of a page.
_EDGE_ROWS = 2
# A running line may contain this many numbers that stay the same from page to page, such as a chapter number.
# Rows of tables contain more.
_MAX_INNER_NUMBERS = 1
# Maximum number of words in a running line that contains numbers and isn't in the outermost row.
_MAX_INNER_WORDS = 10
# Vertical tolerance when comparing the positions of a running line, in points.
_SAME_PLACE = 3.0
# Maximum number of pages between repeats of a chapter's header, which may alternate with another one.
_NEAR_PAGES = 4
_MIN_REPEATS = 3
_NUMBER = re.compile(r"\d+")
_ROMAN = re.compile(r"[-–— ]*[ivxl]{1,7}[-–— ]*\Z")
_PAGE_NUMBER = re.compile(r"(?:page |seite |p\. ?)?[-–— ]*#[-–— ]*(?:(?:of|von|/) ?#)?\Z", re.IGNORECASE)

Place = tuple[int, int]
"""Index of a page, and of a line on it."""


def without_furniture(pages: Sequence[list[Line]]) -> list[list[Line]]:
    """Return the pages without page numbers and without lines that repeat at page edges. The first occurrence
    of each repeated line is kept.
    """
    if len(pages) < _MIN_PAGES:
        return list(pages)
    places = _lines_apart(pages) | _lines_in_place(pages) | _page_numbers(pages)
    seen: set[str] = set()
    result = []
    for page, lines in enumerate(pages):
        body = []
        for position, line in enumerate(lines):
            key = _masked(line)
            if (page, position) in places and (key in seen or _PAGE_NUMBER.match(key)):
                continue
            seen.add(key)
            body.append(line)
        result.append(body)
    return result


def _masked(line: Line) -> str:
    return "#" if _ROMAN.match(line.text) else _NUMBER.sub("#", line.text)


def _lines_apart(pages: Sequence[Sequence[Line]]) -> set[Place]:
    """Return the places of running lines that repeat on many pages and that a gap separates from the text.
    Their height on the page may vary.
    """
    edges = [list(_edge(lines)) for lines in pages]
    keys = [{_masked(pages[page][position]) for position in edge} for page, edge in enumerate(edges)]
    seen = Counter(key for page in keys for key in page)
    least = max(_MIN_PAGES - 1, _MIN_SHARE * len(pages))
    return {
        (page, position)
        for page, edge in enumerate(edges)
        for position in edge
        if seen[_masked(pages[page][position])] >= least
    }


def _edge(lines: Sequence[Line]) -> Iterator[int]:
    by_height = sorted(range(len(lines)), key=lambda position: -lines[position].top)
    for order in (by_height, by_height[::-1]):
        yield from order[: _until_gap([lines[position] for position in order])]


def _until_gap(lines: Sequence[Line]) -> int:
    """Return the number of lines between the edge of the page and the first gap that is at least as high as a
    line; 0 if there is none.
    """
    for count, (outer, inner) in enumerate(pairwise(lines[: _EDGE_LINES + 1]), start=1):
        upper, lower = (outer, inner) if outer.top >= inner.top else (inner, outer)
        if upper.bottom - lower.top >= outer.size:
            return count
    return 0


def _page_numbers(pages: Sequence[Sequence[Line]]) -> set[Place]:
    """Return the places of page numbers: single numbers in the outermost row that increase with the pages.
    Their height on the page may vary.
    """
    offsets: defaultdict[int, list[Place]] = defaultdict(list)
    for page, lines in enumerate(pages):
        for position, row in _outermost(lines).items():
            numbers = _NUMBER.findall(lines[position].text)
            if row == 1 and len(numbers) == 1 and _PAGE_NUMBER.match(_masked(lines[position])):
                offsets[int(numbers[0]) - page].append((page, position))
    return {place for places in offsets.values() if len(places) >= _MIN_REPEATS for place in places}


def _lines_in_place(pages: Sequence[Sequence[Line]]) -> set[Place]:
    """Return the places of running lines in the outer rows that repeat on nearby pages at the same height and
    with the same words.

    Their numbers must also be equal or increase with the pages. Otherwise the lines are rows of a table.
    """
    groups: defaultdict[tuple[str, int], list[tuple[Place, int]]] = defaultdict(list)
    for page, lines in enumerate(pages):
        for position, row in _outermost(lines).items():
            line = lines[position]
            groups[_masked(line), round(line.size)].append(((page, position), row))
    places: set[Place] = set()
    for group in groups.values():
        for place, row in group if len(group) >= _MIN_REPEATS else ():
            if sum(_comes_again(pages, place, other, row) for other, _ in group) >= _MIN_REPEATS - 1:
                places.add(place)
    return places


def _outermost(lines: Sequence[Line]) -> dict[int, int]:
    """Return the row number of each line in the outer rows of a page, keyed by the line's position. Rows are
    counted from the nearest edge.
    """
    by_height = sorted(range(len(lines)), key=lambda position: -lines[position].top)
    rows: dict[int, int] = {}
    for order in (by_height, by_height[::-1]):
        row = 0
        for before, position in zip([None, *order], order, strict=False):
            row += before is None or abs(lines[before].bottom - lines[position].bottom) > _SAME_PLACE
            if row > _EDGE_ROWS:
                break
            rows.setdefault(position, row)
    return rows


def _comes_again(pages: Sequence[Sequence[Line]], place: Place, other: Place, row: int) -> bool:
    distance = other[0] - place[0]
    if not 0 < abs(distance) <= _NEAR_PAGES:
        return False
    line, again = pages[place[0]][place[1]], pages[other[0]][other[1]]
    numbers = [int(number) for number in _NUMBER.findall(line.text)[:_EDGE_LINES] if len(number) < 10]
    later = [int(number) for number in _NUMBER.findall(again.text)[:_EDGE_LINES] if len(number) < 10]
    steps = {two - one for one, two in zip(numbers, later, strict=False)}
    is_short = len(line.text.split()) <= _MAX_INNER_WORDS
    is_counted = is_short and (distance in steps or len(numbers) <= _MAX_INNER_NUMBERS)
    is_named = row == 1 or not numbers or is_counted
    return abs(line.top - again.top) <= _SAME_PLACE and steps <= {0, distance} and is_named
