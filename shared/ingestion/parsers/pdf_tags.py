"""The headings of a tagged PDF: where the author's program says that they are. Reads; judges nothing.

Structure elements (H1-H6) name marked content, and the page's text objects say to which they belong.
Source: PDF 32000-1, 14.7 and 14.8.4.3.
"""

import re
from collections.abc import Iterator
from ctypes import c_float, create_string_buffer
from dataclasses import dataclass
from typing import Any

from shared.ingestion.parsers.ruled_grid import Box

_HEADING = re.compile(r"H([1-6])?\Z")
_TYPE_BYTES = 64
_MAX_DEPTH = 30
_MAX_ELEMENTS = 20_000
_BLANK = 3.0  # points between words: each may be an object of its own, and its box is tight


@dataclass(frozen=True)
class TaggedHeading:
    """The place of a heading's text, or of a part of it, and its level (1-6)."""

    box: Box
    level: int


def is_tagged(document: Any) -> bool:
    """Whether a pypdfium2 document says that it is tagged."""
    import pypdfium2.raw as pdfium

    return bool(pdfium.FPDFCatalog_IsTagged(document.raw))


def tagged_headings(page: Any) -> list[TaggedHeading]:
    """The headings of a pypdfium2 page."""
    import pypdfium2.raw as pdfium

    tree = pdfium.FPDF_StructTree_GetForPage(page.raw)
    if not tree:
        return []
    try:
        levels = _Tree(pdfium).levels(tree)
    finally:
        pdfium.FPDF_StructTree_Close(tree)
    return list(_places(page.raw, levels)) if levels else []


class _Tree:
    """Walks the structure tree of one page."""

    def __init__(self, pdfium: Any) -> None:
        self._pdfium = pdfium
        self._elements_left = _MAX_ELEMENTS
        self._levels: dict[int, int] = {}

    def levels(self, tree: Any) -> dict[int, int]:
        """Marked content id -> level, for all content that stands in a heading."""
        for index in range(self._pdfium.FPDF_StructTree_CountChildren(tree)):
            self._walk(self._pdfium.FPDF_StructTree_GetChildAtIndex(tree, index), None, 0)
        return self._levels

    def _walk(self, element: Any, level: int | None, depth: int) -> None:
        self._elements_left -= 1
        if not element or depth > _MAX_DEPTH or self._elements_left < 0:
            return
        level = level or self._level(element)
        if level is not None:
            self._note_content(element, level)
        for index in range(self._pdfium.FPDF_StructElement_CountChildren(element)):
            self._walk(self._pdfium.FPDF_StructElement_GetChildAtIndex(element, index), level, depth + 1)

    def _level(self, element: Any) -> int | None:
        buffer = create_string_buffer(_TYPE_BYTES)
        length = self._pdfium.FPDF_StructElement_GetType(element, buffer, _TYPE_BYTES)
        if not 0 < length <= _TYPE_BYTES:
            return None
        name = buffer.raw[: length - 2].decode("utf-16-le", "replace")
        found = _HEADING.match(name)
        return int(found[1] or 1) if found else None

    def _note_content(self, element: Any, level: int) -> None:
        for index in range(self._pdfium.FPDF_StructElement_GetMarkedContentIdCount(element)):
            content_id = self._pdfium.FPDF_StructElement_GetMarkedContentIdAtIndex(element, index)
            if content_id >= 0:
                self._levels[content_id] = level


def _places(page: Any, levels: dict[int, int]) -> Iterator[TaggedHeading]:
    import pypdfium2.raw as pdfium

    left, bottom, right, top = c_float(), c_float(), c_float(), c_float()
    for index in range(pdfium.FPDFPage_CountObjects(page)):
        drawn = pdfium.FPDFPage_GetObject(page, index)
        level = levels.get(pdfium.FPDFPageObj_GetMarkedContentID(drawn))
        is_text = pdfium.FPDFPageObj_GetType(drawn) == pdfium.FPDF_PAGEOBJ_TEXT
        if level is None or not is_text:
            continue
        if pdfium.FPDFPageObj_GetBounds(drawn, left, bottom, right, top):
            box = Box(left.value - _BLANK, bottom.value - 1, right.value + _BLANK, top.value + 1)
            yield TaggedHeading(box, level)
