"""Reads the text of source pages, independently of the app's code. It isn't thread-safe, because PDFium
isn't.
"""

import re
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pypdfium2

from evals.evaluation.page_layout import PageLayout, PlacedWord, words_in_picture, words_of_page
from evals.evaluation.question_set import QuestionSet, SourceFile, name_key
from evals.evaluation.quotations import Page, PlainPage, bare

# A page with less text than this is a scan, so its text is unknown.
MIN_PAGE_CHARS = 20
_PLAIN = frozenset({".txt", ".md", ".markdown", ".csv", ".tsv", ".vtt", ".srt", ".eml"})
_HTML = frozenset({".html", ".htm"})
_OFFICE_PARTS = {
    ".docx": re.compile(r"word/(document|footnotes)\.xml"),
    ".pptx": re.compile(r"ppt/(slides|notesSlides|charts|diagrams)/[^/]+\.xml"),
    ".xlsx": re.compile(r"xl/(sharedStrings|workbook)\.xml|xl/worksheets/[^/]+\.xml"),
}


class SourceTexts:
    """Reader of the pages in a set's documents. Recently read pages are cached."""

    def __init__(self, questions: QuestionSet) -> None:
        self._sources = {source.key: source for source in questions.sources}
        self.page = lru_cache(maxsize=2000)(self._page)

    def _page(self, filename: str, page_number: int | None) -> Page | None:
        """Return a page, or None if its text is unknown: an unsupported format, a scan or a page that doesn't
        exist.
        """
        source = self._sources.get(name_key(filename))
        if source is None:
            return None
        try:
            text = read_page(source, page_number)
        except (OSError, ValueError, zipfile.BadZipFile, pypdfium2.PdfiumError):
            return None
        if text is None or len(text.strip()) < MIN_PAGE_CHARS:
            return None
        if source.path is None or source.path.suffix.lower() != ".pdf" or page_number is None:
            return PlainPage(bare(text))
        return PdfPage(source.path, page_number, bare(text))


@dataclass(frozen=True)
class PdfPage:
    """A PDF page that is searched in three ways: by content order, by word positions, and by text
    recognition.
    """

    path: Path
    page_number: int
    letters: str

    def holds(self, letters: str) -> bool:
        return letters in self.letters or self._layout.holds(letters) or self._picture.holds(letters)

    @cached_property
    def _layout(self) -> PageLayout:
        return PageLayout(self._words(words_of_page))

    @cached_property
    def _picture(self) -> PageLayout:
        return PageLayout(self._words(words_in_picture))

    def _words(self, read: Callable[[Any], Iterable[PlacedWord]]) -> list[PlacedWord]:
        document = pypdfium2.PdfDocument(self.path)
        try:
            return list(read(document[self.page_number - 1]))
        finally:
            document.close()


def read_page(source: SourceFile, page_number: int | None) -> str | None:
    """Return the text of a page, or of the whole file if the format has no pages. Return None for unsupported
    formats.
    """
    if source.text is not None:
        return source.text
    path = source.path or Path(source.filename)
    suffix = path.suffix.lower()
    if suffix == ".pdf":
        return _pdf_page(path, page_number) if page_number is not None else None
    if suffix in _PLAIN:
        return path.read_text(encoding="utf-8", errors="replace")
    if suffix in _HTML:
        return _html_text(path.read_text(encoding="utf-8", errors="replace"))
    return _office_text(path, _OFFICE_PARTS[suffix]) if suffix in _OFFICE_PARTS else None


def _pdf_page(path: Path, page_number: int) -> str | None:
    document = pypdfium2.PdfDocument(path)
    try:
        if not 1 <= page_number <= len(document):
            return None
        page = document[page_number - 1]
        text_page = page.get_textpage()
        try:
            return str(text_page.get_text_range())
        finally:
            text_page.close()
            page.close()
    finally:
        document.close()


def _office_text(path: Path, parts: re.Pattern[str]) -> str:
    """Return the text of the matching parts of an Office file, without tags."""
    with zipfile.ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if parts.fullmatch(name))
        pages = [archive.read(name).decode("utf-8", errors="replace") for name in names]
    return "\n".join(_html_text(page) for page in pages)


class _TextOnly(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)


def _html_text(markup: str) -> str:
    reader = _TextOnly()
    reader.feed(markup)
    reader.close()
    return "".join(reader.pieces)
