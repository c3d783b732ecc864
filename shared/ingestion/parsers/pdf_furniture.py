"""Page furniture: running headers, footers and page numbers. Kept once, dropped wherever they come again."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from shared.ingestion.parsers.pdf_lines import Line

_EDGE_LINES = 4  # at most, at the top and at the bottom of a page
_MIN_PAGES = 4
_MIN_SHARE = 0.4  # of all pages; alternating left and right headers come on half of them
_NUMBER = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(r"(?:page |seite |p\. ?)?[-–— ]*#[-–— ]*(?:(?:of|von|/) ?#)?\Z", re.IGNORECASE)


def without_furniture(pages: Sequence[list[Line]]) -> list[list[Line]]:
    """The pages without page numbers, and without lines at their edges that repeat from page to page."""
    if len(pages) < _MIN_PAGES:
        return list(pages)
    edges = [_edge_lines(lines) for lines in pages]
    seen = Counter(key for page in edges for key in set(page.values()))
    repeated = {key for key, count in seen.items() if count >= max(_MIN_PAGES - 1, _MIN_SHARE * len(pages))}
    kept_once: set[str] = set()
    result = []
    for lines, page in zip(pages, edges, strict=True):
        kept = []
        for position, line in enumerate(lines):
            key = page.get(position)
            if key in repeated and (key in kept_once or _PAGE_NUMBER.match(key)):
                continue
            if key in repeated:
                kept_once.add(key)
            kept.append(line)
        result.append(kept)
    return result


def _edge_lines(lines: Sequence[Line]) -> dict[int, str]:
    """Position -> text with its numbers masked, of the lines that stand apart at the page's edges."""
    by_height = sorted(range(len(lines)), key=lambda position: -lines[position].top)
    edge = _until_gap([lines[position] for position in by_height])
    foot = _until_gap([lines[position] for position in reversed(by_height)])
    positions = by_height[:edge] + (by_height[-foot:] if foot else [])
    return {position: _NUMBER.sub("#", lines[position].text) for position in positions}


def _until_gap(lines: Sequence[Line]) -> int:
    """How many lines from the edge inwards stand before the first gap of a line's height; 0 without one."""
    for count, (outer, inner) in enumerate(pairwise(lines), start=1):
        if count > _EDGE_LINES:
            return 0
        upper, lower = (outer, inner) if outer.top >= inner.top else (inner, outer)
        if upper.bottom - lower.top >= outer.size:
            return count
    return 0
