"""Models of documents as people read them: a single page with its picture, or the continuous text in
parts.
"""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from shared.documents.models import ElementKind
from shared.evidence.models import PageArea, PageWord
from shared.platform.models import Model

_DIGITS = re.compile(r"[0-9]{1,9}", re.ASCII)


def _plain(text: Any) -> Any:
    """Reject texts that int() accepts but that aren't plain digits, such as `1_0`, ` 1` and digits of other
    scripts.
    """
    if isinstance(text, str) and not _DIGITS.fullmatch(text):
        raise ValueError("must be a whole number, written with the digits 0 to 9")
    return text


Number = Annotated[int, Field(ge=0, le=999_999_999), BeforeValidator(_plain)]


class CitationQuery(Model):
    """Query parameters that name a citation to highlight. If the run belongs to another user, nothing is
    highlighted.
    """

    run: str = Field(default="", max_length=64, description="Id of the run whose answer cites the document.")
    n: Number = Field(default=0, description="Number of the citation to highlight, as shown in the answer.")


class PageQuery(CitationQuery):
    """Query parameters of a page view."""

    words: bool = Field(
        default=False,
        description="Whether the JSON reply includes all words of the page picture with their positions.",
    )


class PictureQuery(Model):
    """Query parameters of a page picture."""

    width: Number = Field(
        default=0,
        description=(
            "Minimum width in pixels. The picture is then a WebP file that is 320, 640 or 960 pixels "
            "wide. By default, it is the full PNG."
        ),
    )


class ReadableQuery(CitationQuery):
    """Query parameters of the readable view. The view starts at the cursor, the cited passage, the page or
    the time in the recording; the first of these that is given applies.
    """

    cursor: str = Field(
        default="",
        pattern=r"^([0-9]{1,7})?$",
        description=(
            "Cursor of the part at which the view starts: `cursor` or `previous_cursor` of another view."
        ),
    )
    page: Number = Field(default=0, description="Page number at which the view starts.")
    t: Number = Field(default=0, description="Time in the recording at which the view starts, in seconds.")


class PageSheet(Model):
    """A rendered page: the size of its picture and its words in reading order. A scan has no words."""

    width_px: int
    height_px: int
    words: tuple[PageWord, ...] = ()


class Part(Model):
    """Range of consecutive elements of a document. A view loads a part as a whole.

    Attributes:
        start: index of its first element in the document.
        first_byte, size_bytes: position of its JSON in the stored reading.
        pages: lowest and highest page number of its elements; None if they have none.
        first_moment: start of its first element in the recording, in seconds.
    """

    start: int
    first_byte: int
    size_bytes: int
    pages: tuple[int, int] | None = None
    first_moment: float | None = None


class Outline(Model):
    """Table of contents of a stored reading view: which part contains which elements and pages."""

    parts: tuple[Part, ...]
    piece_count: int
    page_count: int | None = None

    @property
    def last_page(self) -> int:
        """The highest page number of any element, or 0 if none has one."""
        return max((part.pages[1] for part in self.parts if part.pages), default=0)


class TextMark(Model):
    """A range of highlighted characters, from `start` up to but excluding `end`."""

    start: int = Field(description="Offset of the first highlighted character, counted from 0.")
    end: int = Field(description="Offset after the last highlighted character.")


class ViewedFigure(Model):
    """A picture within the text of a document.

    Attributes:
        path: path of the picture in this API, which requires authentication.
        image_url: signed for at least an hour; None if signing failed.
        caption: caption of the picture; None if it has none.
        by_model: whether a model wrote the caption, so that it can't serve as evidence.
        width_px, height_px: size in pixels.
    """

    path: str
    image_url: str | None = Field(default=None, repr=False)
    width_px: int
    height_px: int
    caption: str | None = None
    by_model: bool = False


class ViewedElement(Model):
    """An element of a document, as shown in a view.

    Attributes:
        text: plain text; a table is a Markdown table, header row first.
        level: 1-6 for headings, otherwise None.
        marks: the parts of `text` that belong to the cited passage.
        figure: the picture of a figure; None if there is none.
    """

    kind: ElementKind = Field(description="Kind of the element.")
    text: str
    page_number: int | None = Field(
        default=None,
        description="Page, slide or sheet number, counted from 1, or null if the document has no pages.",
    )
    level: int | None = None
    start_seconds: float | None = Field(
        default=None,
        description="Start of the element in the recording, in seconds; null otherwise.",
    )
    marks: tuple[TextMark, ...] = ()
    figure: ViewedFigure | None = None


class CitedPassage(Model):
    """The citation that a view was requested to highlight, and whether it is highlighted there.

    Attributes:
        page_number: None for documents without pages.
        is_marked: whether the passage was found and marked in this view.
    """

    run_id: str = Field(description="Id of the run whose answer contains the citation.")
    n: int = Field(description="Number of the citation in the answer.")
    quote: str = Field(description="Words that the answer quotes from the document.")
    verified: bool = Field(description="Whether the document contains exactly the quoted words.")
    page_number: int | None = None
    is_marked: bool = False


class ViewedPicture(Model):
    """Picture of a page, with the areas to highlight.

    Attributes:
        path: path of the picture in this API, which requires authentication.
        image_url: signed for at least an hour; None until the picture is rendered.
        width_px, height_px: size in pixels; None until the picture is rendered.
        marks: areas of the picture that show the cited passage.
        words: all words in content order, if requested; none for a scan.
    """

    path: str
    image_url: str | None = Field(default=None, repr=False)
    width_px: int | None = None
    height_px: int | None = None
    marks: tuple[PageArea, ...] = ()
    words: tuple[PageWord, ...] = ()


class DocumentText(Model):
    """Fields that all views of a document share.

    Attributes:
        source_url: where the document came from, if known.
        cited: None if no citation was requested, or the caller has no such citation of this document.
        content_url: URL of the file.
    """

    doc_id: str = Field(description="Id of the document.")
    filename: str = Field(description="File name of the document.")
    title: str = Field(description="Title of the document.")
    language: str | None = Field(default=None, description="Language of the document, as an ISO 639-1 code.")
    source_url: str | None = Field(
        default=None, description="URL of the web page or recording from which the document comes."
    )
    elements: tuple[ViewedElement, ...] = Field(
        default=(), description="Elements of this page or part, in reading order."
    )
    cited: CitedPassage | None = Field(
        default=None,
        description="The requested citation; null if none was requested or it doesn't exist.",
    )
    content_url: str = Field(description="URL of the original file.")


class PageView(DocumentText):
    """Reply of GET /api/documents/{doc_id}/pages/{page}: a single page with its picture and text.

    Attributes:
        page_number: counted from 1; slide or sheet of a presentation or workbook. A document without pages is
            divided into parts, which are counted the same way.
        has_pages: whether the format has pages, rather than parts.
        picture: None for formats without page pictures.
        readable_url: URL of the continuous text.
    """

    page_number: int
    page_count: int = Field(description="Number of pages, or of parts if the format has no pages.")
    has_pages: bool
    picture: ViewedPicture | None = None
    readable_url: str


class ReadableView(DocumentText):
    """Reply of GET /api/documents/{doc_id}/readable: one part of the document's continuous text.

    Attributes:
        cursor: cursor of the next part; None in the last part.
        previous_cursor: cursor of the previous part; None in the first part.
    """

    page_count: int | None = Field(
        default=None, description="Number of pages, or null if the format has none."
    )
    cursor: str | None = None
    previous_cursor: str | None = None
