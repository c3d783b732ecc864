"""The pictures of a PDF: its figures as elements among the text, and its scanned pages as text.

A page is a scan when it holds next to no text and something is drawn on it, or when a picture covers it and
its few words are likely a stamp. Recognised words are the page's paragraphs.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shared.documents.models import Element
from shared.ingestion.parsers.context import Workbench
from shared.ingestion.parsers.ocr import DPI, Recognised
from shared.ingestion.parsers.pdf_drawings import Region, has_covering_picture, page_region
from shared.ingestion.parsers.pdf_figures import PageFigure, page_figures, render_region
from shared.ingestion.parsers.pdf_lines import HYPHEN_MARK, HyphenRule, Line
from shared.ingestion.parsers.scanned_drawings import region_of_box
from shared.ingestion.parsers.text import text_paragraphs
from shared.platform.telemetry import get_logger

if TYPE_CHECKING:
    from concurrent.futures import Future

    from PIL.Image import Image

MIN_PAGE_CHARS = 20  # a page with less, and with something drawn on it, is a scan
_STAMP_CHARS = 200  # what a stamp or a running header adds to a scanned page
_MAX_SCAN_SIDE_PX = 4000
_SIZE_SHARE = 0.9  # of a recognised line's height: its font size, near enough to tell lines from gaps


@dataclass
class _Page:
    """What was found on a page. `figures`: each with the line before which it belongs, None = at the end."""

    figures: list[tuple[Line | None, Element]] = field(default_factory=list)
    recognised: "Future[Recognised | None] | None" = None
    text: str | None = None


class PdfPictures:
    """Reads the pictures of one document, page by page."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._pages: defaultdict[int, _Page] = defaultdict(_Page)
        self.unread: list[int] = []

    def read(self, page: Any, page_number: int, lines: Sequence[Line], tables: Sequence[Region]) -> None:
        """Keep the figures of a page that has text, and have one that has none recognised.

        Raises:
            pypdfium2.PdfiumError: the page cannot be rendered.
        """
        chars = sum(len(line.text) for line in lines)
        is_empty = chars < MIN_PAGE_CHARS and _is_drawn(page, has_text=chars > 0)
        may_be_stamp = chars < _STAMP_CHARS and self._bench.reads_pages
        if is_empty or (may_be_stamp and has_covering_picture(page)):
            self._recognise(page, page_number)
        elif not self._bench.figures.is_full:
            self._keep_figures(page, page_number, lines, tables)

    def finish(self, document: Any) -> None:
        """Wait for the recognised pages, and keep their figures. One that shows no words is a figure."""
        for page_number, found in sorted(self._pages.items()):
            if found.recognised is not None:
                recognised = found.recognised.result()
                if recognised is not None:
                    found.text = recognised.text
                    self._keep_of_scan(document, page_number, recognised)
                elif page_number not in self.unread:
                    self.unread.append(page_number)
            elif found.text is not None and len(found.text) < MIN_PAGE_CHARS:
                self._keep_of_scan(document, page_number, Recognised(found.text, (), (), (1, 1)))
        self.unread.sort()

    def texts(self) -> Iterator[str]:
        """What was recognised, with marks where a line ends with a hyphen."""
        return (_marked(found.text) for found in self._pages.values() if found.text)

    def before(self, page_number: int, lines: Sequence[Line], hyphens: HyphenRule) -> Iterator[Element]:
        """The figures that belong before one of these lines; each is given once."""
        found = self._pages.get(page_number)
        if found is None or not found.figures:
            return
        due = [element for anchor, element in found.figures if anchor in lines]
        found.figures = [pair for pair in found.figures if pair[1] not in due]
        yield from (_mended(element, hyphens) for element in due)

    def rest(self, page_number: int, hyphens: HyphenRule) -> Iterator[Element]:
        """What is left of a page: figures that belong to no line, and recognised words."""
        found = self._pages.get(page_number)
        if found is None:
            return
        yield from (_mended(element, hyphens) for _, element in found.figures)
        for paragraph in text_paragraphs(_marked(found.text or "")):
            yield _mended(paragraph, hyphens).model_copy(update={"page_number": page_number})

    def _recognise(self, page: Any, page_number: int) -> None:
        if self._bench.elsewhere is not None:
            text = self._pages[page_number].text = self._bench.elsewhere.text_of(page_number)
            if text is None:
                self.unread.append(page_number)
            return
        if not self._bench.recognition.is_available:
            self.unread.append(page_number)
            return
        width, height = page.get_size()
        scale = min(DPI / 72, _MAX_SCAN_SIDE_PX / max(width, height))
        bitmap = page.render(scale=scale, grayscale=True)
        try:
            self._pages[page_number].recognised = self._bench.recognition.submit(bitmap.to_pil())
        finally:
            bitmap.close()

    def _keep_figures(
        self,
        page: Any,
        page_number: int,
        lines: Sequence[Line],
        tables: Sequence[Region],
        scanned_words: Sequence[Region] | None = None,
    ) -> None:
        import pypdfium2

        try:
            for figure in page_figures(page, lines, tables, scanned_words):
                self._keep(page, page_number, figure, is_read=scanned_words is not None)
        except (pypdfium2.PdfiumError, ValueError):
            # What cannot be drawn costs its page the figures, never the text.
            get_logger().warning("figure.unreadable", page_number=page_number)

    def _keep(self, page: Any, page_number: int, figure: PageFigure, *, is_read: bool) -> None:
        """`is_read`: recognition has seen this part of the page already."""
        image = render_region(page, figure.region)
        picture = self._bench.figures.add(image, is_named=bool(figure.label or figure.words))
        if picture is None:
            return
        words = figure.words if figure.words or is_read else self._words_in(image)
        named = picture.model_copy(update={"words": words})
        element = Element(kind="figure", text=figure.label, page_number=page_number, picture=named)
        found = self._pages[page_number]
        found.figures.append((figure.anchor, element))
        if words and not figure.words:
            spoken = Element(kind="paragraph", text=words, page_number=page_number)
            found.figures.append((figure.anchor, spoken))

    def _words_in(self, image: "Image") -> str:
        """The words of a picture that brings none as text."""
        recognition = self._bench.recognition
        return (recognition.read(image) or "") if recognition.is_available else ""

    def _keep_of_scan(self, document: Any, page_number: int, recognised: Recognised) -> None:
        if self._bench.figures.is_full:
            return
        page = document[page_number - 1]  # it was read before: it can be opened
        try:
            if len(recognised.text) >= MIN_PAGE_CHARS:
                words = [region_of_box(page, box, recognised.size) for box in recognised.words]
                self._keep_figures(page, page_number, _placed_lines(page, page_number, recognised), (), words)
            elif has_covering_picture(page):
                whole = PageFigure(region=page_region(page), label="", words="", anchor=None)
                self._keep(page, page_number, whole, is_read=False)
        finally:
            page.close()


def _is_drawn(page: Any, *, has_text: bool) -> bool:
    """Whether the page shows more than was read: something beside its words, or letters that say nothing."""
    import pypdfium2.raw as pdfium

    count = pdfium.FPDFPage_CountObjects(page)
    kinds = (pdfium.FPDFPageObj_GetType(pdfium.FPDFPage_GetObject(page, place)) for place in range(count))
    return any(kind != pdfium.FPDF_PAGEOBJ_TEXT for kind in kinds) if has_text else count > 0


def _placed_lines(page: Any, page_number: int, recognised: Recognised) -> list[Line]:
    """Recognised lines as if they stood in the file."""
    regions = [region_of_box(page, line.box, recognised.size) for line in recognised.lines]
    return [
        Line(
            text=line.text,
            page_number=page_number,
            size=_SIZE_SHARE * region.height,
            bold=False,
            left=region.left,
            right=region.right,
            top=region.top,
            bottom=region.bottom,
        )
        for line, region in zip(recognised.lines, regions, strict=True)
    ]


def _mended(element: Element, hyphens: HyphenRule) -> Element:
    """Without hyphen marks, in the words of its picture as well."""
    picture = element.picture
    if picture is not None:
        picture = picture.model_copy(update={"words": hyphens.mend(picture.words)})
    return element.model_copy(update={"text": hyphens.mend(element.text), "picture": picture})


def _marked(text: str) -> str:
    """Line ends after a hyphen as PDFium marks them, so that one rule decides on both."""
    return text.replace("-\n", HYPHEN_MARK)
