"""Page furniture: running headers, footers and page numbers. Kept once, dropped wherever they come again."""

import re
from collections import Counter
from collections.abc import Sequence

from shared.ingestion.parsers.pdf_lines import Line

_EDGE_LINES = 2  # at the top and at the bottom of a page
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
    """Position -> text with its numbers masked, of the highest and the lowest lines of a page."""
    by_height = sorted(range(len(lines)), key=lambda position: -lines[position].top)
    edge = {*by_height[:_EDGE_LINES], *by_height[-_EDGE_LINES:]}
    return {position: _NUMBER.sub("#", lines[position].text) for position in edge}
