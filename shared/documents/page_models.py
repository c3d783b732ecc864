"""Models of documents as read by people: one page with its picture, or the whole text in parts."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from shared.documents.models import ElementKind
from shared.evidence.models import PageArea, PageWord
from shared.platform.models import Model

_DIGITS = re.compile(r"[0-9]{1,9}", re.ASCII)


def _plain(text: Any) -> Any:
    """Accept only ASCII digits: Python also parses `1_0`, ` 1` and digits of other scripts."""
    if isinstance(text, str) and not _DIGITS.fullmatch(text):
        raise ValueError("takes a whole number in plain digits")
    return text


Number = Annotated[int, Field(ge=0, le=999_999_999), BeforeValidator(_plain)]


class CitationQuery(Model):
    """Parameters that name a citation. A citation of another user's run marks nothing."""

    run: str = Field(default="", max_length=64, description="Id of the run whose answer cites the page.")
    n: Number = Field(default=0, description="Number of the citation.")


class PageQuery(CitationQuery):
    """Parameters of a page."""

    words: bool = Field(default=False, description="Return the picture's words and their positions as JSON.")


class PictureQuery(Model):
    """Parameters of a page's picture."""

    width: Number = Field(
        default=0,
        description="Minimum width of a reduced WebP: 320, 640 or 960 pixels; omitted = the full PNG.",
    )


class ReadableQuery(CitationQuery):
    """Parameters of the readable view. It starts at the cursor, citation, page or moment, in this order of
    precedence.
    """

    cursor: str = Field(
        default="", pattern=r"^([0-9]{1,7})?$", description="`cursor` or `previous_cursor` of a view."
    )
    page: Number = Field(default=0, description="First page to return.")
    t: Number = Field(default=0, description="Position in a recording from which to start, in seconds.")


class PageSheet(Model):
    """A rendered page: picture size, and words in content order (none for a scan)."""

    width_px: int
    height_px: int
    words: tuple[PageWord, ...] = ()


class Part(Model):
    """A range of elements that views load together.

    Attributes:
        start: index of its first element in the document.
        first_byte, size_bytes: position of its JSON in the stored reading.
        pages: lowest and highest page number of its elements; None without any.
        first_moment: start of its first element in the recording, in seconds.
    """

    start: int
    first_byte: int
    size_bytes: int
    pages: tuple[int, int] | None = None
    first_moment: float | None = None


class Outline(Model):
    """The parts of one version of a document, stored as long as the version."""

    parts: tuple[Part, ...]
    piece_count: int
    page_count: int | None = None

    @property
    def last_page(self) -> int:
        """The highest page number of any element; 0 without any."""
        return max((part.pages[1] for part in self.parts if part.pages), default=0)


class TextMark(Model):
    """Marked characters of a text, from `start` up to but excluding `end`."""

    start: int = Field(description="Start offset, in characters.")
    end: int = Field(description="End offset, in characters.")


class ViewedFigure(Model):
    """A picture among the text.

    Attributes:
        path: its URL in our API, which requires an identity.
        image_url: signed for at least an hour; None if signing failed.
        caption: None without one.
        by_model: whether a model wrote the caption, which then proves nothing.
    """

    path: str
    image_url: str | None = Field(default=None, repr=False)
    caption: str | None = None
    by_model: bool = False


class ViewedElement(Model):
    """One element of a document.

    Attributes:
        text: plain text; a table is a Markdown table, header row first.
        level: 1-6 for headings, otherwise None.
        marks: the cited passage in `text`.
        figure: the picture of a figure; None without one.
    """

    kind: ElementKind = Field(description="Kind of element.")
    text: str
    page_number: int | None = Field(
        default=None, description="Page, slide or sheet, counted from 1; null if the document has none."
    )
    level: int | None = None
    start_seconds: float | None = Field(
        default=None, description="Position in a recording, in seconds; null otherwise."
    )
    marks: tuple[TextMark, ...] = ()
    figure: ViewedFigure | None = None


class CitedPassage(Model):
    """The citation with which a view was opened.

    Attributes:
        page_number: None for documents without pages.
        is_marked: whether the passage was found and marked in this view.
    """

    run_id: str = Field(description="The run.")
    n: int = Field(description="Number of the citation in the text.")
    quote: str = Field(description="Quotation, in the document's own words.")
    verified: bool = Field(description="Whether the document contains the quotation.")
    page_number: int | None = None
    is_marked: bool = False


class ViewedPicture(Model):
    """The picture of a page.

    Attributes:
        path: its URL in our API, which requires an identity.
        image_url: signed for at least an hour; None until the picture is rendered.
        width_px, height_px: None until it is rendered.
        marks: positions of the cited passage.
        words: all words in content order, if requested; none for a scan.
    """

    path: str
    image_url: str | None = Field(default=None, repr=False)
    width_px: int | None = None
    height_px: int | None = None
    marks: tuple[PageArea, ...] = ()
    words: tuple[PageWord, ...] = ()


class DocumentText(Model):
    """Common fields of a document's views.

    Attributes:
        source_url: where the document came from, if known.
        cited: None if no citation was requested, or the caller has no such citation of this document.
        content_url: URL of the file.
    """

    doc_id: str = Field(description="Id of the document.")
    filename: str = Field(description="File name.")
    title: str = Field(description="Title.")
    language: str | None = Field(default=None, description="ISO 639-1 code of the document's language.")
    source_url: str | None = Field(
        default=None, description="URL of the document's origin, or of the recording."
    )
    elements: tuple[ViewedElement, ...] = Field(
        default=(), description="Elements of the page, in reading order."
    )
    cited: CitedPassage | None = Field(
        default=None, description="The marked citation; null if none was requested."
    )
    content_url: str = Field(description="URL of the original file.")


class PageView(DocumentText):
    """Response of GET /api/documents/{doc_id}/pages/{page}.

    Attributes:
        page_number: counted from 1; slide or sheet of a presentation or workbook. A document without pages is
            divided into parts, which are counted the same way.
        has_pages: whether the format has pages, rather than parts.
        picture: None for formats without page pictures.
        readable_url: URL of the whole text.
    """

    page_number: int
    page_count: int = Field(description="Number of pages; null if the format has none.")
    has_pages: bool
    picture: ViewedPicture | None = None
    readable_url: str


class ReadableView(DocumentText):
    """Response of GET /api/documents/{doc_id}/readable: a part of the document's text.

    Attributes:
        cursor: leads to the next part; None at the end.
        previous_cursor: leads to the previous part; None at the beginning.
    """

    page_count: int | None = Field(default=None, description="Number of pages; null if the format has none.")
    cursor: str | None = None
    previous_cursor: str | None = None
