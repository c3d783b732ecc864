"""Documents as people read them: one page with its picture, or the whole text in parts."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from shared.documents.models import ElementKind
from shared.evidence.models import PageArea, PageWord
from shared.platform.models import Model

_DIGITS = re.compile(r"[0-9]{1,9}", re.ASCII)


def _plain(text: Any) -> Any:
    """Python reads more as a number than people mean: `1_0`, ` 1`, digits of other scripts."""
    if isinstance(text, str) and not _DIGITS.fullmatch(text):
        raise ValueError("takes a whole number in plain digits")
    return text


Number = Annotated[int, Field(ge=0, le=999_999_999), BeforeValidator(_plain)]


class CitationQuery(Model):
    """Of what a citation leads to. One that is not the caller's own marks nothing."""

    run: str = Field(default="", max_length=64, description="The run whose answer cites it.")
    n: Number = Field(default=0, description="The citation's number.")


class PageQuery(CitationQuery):
    """Of a page."""

    words: bool = Field(default=False, description="Whether the picture's words come with it, as JSON.")


class PictureQuery(Model):
    """Of a page's picture."""

    width: Number = Field(
        default=0,
        description="A smaller WebP of at least this width: 320, 640 or 960 pixels; else the whole PNG.",
    )


class ReadableQuery(CitationQuery):
    """Of the readable view: by cursor, else by citation, page or moment; else from the beginning."""

    cursor: str = Field(
        default="", pattern=r"^([0-9]{1,7})?$", description="`cursor` or `previous_cursor` of a view."
    )
    page: Number = Field(default=0, description="The page to begin at.")
    t: Number = Field(default=0, description="The moment of a recording to begin at, in seconds.")


class PageSheet(Model):
    """A rendered page: the size of its picture, and its words in the order of the page's content.

    `words` is empty for a scan.
    """

    width_px: int
    height_px: int
    words: tuple[PageWord, ...] = ()


class Part(Model):
    """A run of pieces that views read together.

    Attributes:
        start: index of its first piece in the document.
        first_byte, size_bytes: where its JSON stands in the stored reading.
        pages: the lowest and the highest page number of its pieces; None without any.
        first_moment: when the first of its pieces is said, in seconds of the recording.
    """

    start: int
    first_byte: int
    size_bytes: int
    pages: tuple[int, int] | None = None
    first_moment: float | None = None


class Outline(Model):
    """The parts of one version of a document, kept with them as long as the version lives."""

    parts: tuple[Part, ...]
    piece_count: int
    page_count: int | None = None

    @property
    def last_page(self) -> int:
        """The highest page number of any piece; 0 without any."""
        return max((part.pages[1] for part in self.parts if part.pages), default=0)


class TextMark(Model):
    """Characters of a text that are marked: from `start`, up to `end` without it."""

    start: int = Field(description="Where it begins, in characters.")
    end: int = Field(description="Where it ends, in characters.")


class ViewedFigure(Model):
    """A picture among the text.

    Attributes:
        path: its address in our own API, which wants an identity.
        image_url: a signed address that needs none, for at least an hour; None where nothing could be signed.
        caption: None = nobody described it.
        by_model: a model wrote the caption from the picture: it proves nothing.
    """

    path: str
    image_url: str | None = Field(default=None, repr=False)
    caption: str | None = None
    by_model: bool = False


class ViewedElement(Model):
    """One piece of a document.

    Attributes:
        text: plain text; of a table, a Markdown table, header row first.
        level: 1-6 for headings, else None.
        marks: where the cited passage stands in `text`.
        figure: of a figure, its picture; None where there is none.
    """

    kind: ElementKind = Field(description="What it is.")
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
    """The citation that a view was opened with.

    Attributes:
        page_number: where it stands; None = the document has no pages.
        is_marked: it was found in what is shown, and is marked there.
    """

    run_id: str = Field(description="The run.")
    n: int = Field(description="The citation's number in the text.")
    quote: str = Field(description="The document's own words.")
    verified: bool = Field(description="Whether the words stand in the document.")
    page_number: int | None = None
    is_marked: bool = False


class ViewedPicture(Model):
    """The picture of a page.

    Attributes:
        path: its address in our own API, which wants an identity.
        image_url: a signed address that needs none, for at least an hour; None until the picture was made.
        width_px, height_px: None until it was made.
        marks: where the cited passage stands.
        words: all words in the order of the page's content, if they were asked for; none of a scan.
    """

    path: str
    image_url: str | None = Field(default=None, repr=False)
    width_px: int | None = None
    height_px: int | None = None
    marks: tuple[PageArea, ...] = ()
    words: tuple[PageWord, ...] = ()


class DocumentText(Model):
    """What each view of a document tells.

    Attributes:
        source_url: where the document was taken from, if somebody said so.
        cited: None when no citation was asked for, or the caller has no such citation of this document.
        content_url: the file.
    """

    doc_id: str = Field(description="The document.")
    filename: str = Field(description="Name of the file.")
    title: str = Field(description="Title.")
    language: str | None = Field(default=None, description="ISO 639-1 code of its language.")
    source_url: str | None = Field(
        default=None, description="Where the document comes from, or a recording can be seen."
    )
    elements: tuple[ViewedElement, ...] = Field(
        default=(), description="What stands on the page, in reading order."
    )
    cited: CitedPassage | None = Field(
        default=None, description="The citation that is marked; null if none was asked for."
    )
    content_url: str = Field(description="Where the file is.")


class PageView(DocumentText):
    """Answer of GET /api/documents/{doc_id}/pages/{page}.

    Attributes:
        page_number: counted from 1; slide or sheet of a presentation or workbook. A document without pages
            is cut into parts, which are counted the same way.
        has_pages: its own pages, not parts of ours.
        picture: None where the format has no pages to make pictures of.
        readable_url: the whole text.
    """

    page_number: int
    page_count: int = Field(description="How many pages it has; null if it has none.")
    has_pages: bool
    picture: ViewedPicture | None = None
    readable_url: str


class ReadableView(DocumentText):
    """Answer of GET /api/documents/{doc_id}/readable: a part of the document's text.

    Attributes:
        cursor: leads to the next part; None at the end.
        previous_cursor: leads to the part before; None at the beginning.
    """

    page_count: int | None = Field(default=None, description="How many pages it has; null if it has none.")
    cursor: str | None = None
    previous_cursor: str | None = None
