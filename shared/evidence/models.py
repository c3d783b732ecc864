"""Citations, figures of an answer, and areas of a page."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from shared.platform.models import Model


class Citation(Model):
    """A numbered quotation.

    Attributes:
        kind: "metadata" = what the document's record says of it, such as its author; it has no block.
        quote: the block's own words: a line for each fragment, `OMISSION` where something is left out. Empty
            where the model's words stand nowhere in the document: the statement is not proved.
        published_by: name of the person who put the document here, where one did and their name is known.
        verified: whether `quote` stands in a block of the document's own text. A quotation from a caption
            does not: a model wrote it to describe a picture.
    """

    n: int
    kind: Literal["quote", "metadata"] = "quote"
    doc_id: str
    block_id: str
    filename: str
    page_number: int | None = None
    start_seconds: float | None = None
    published_by: str | None = None
    quote: str
    verified: bool
    url: str


class AnswerFigure(Model):
    """One picture of an answer, in the order of the text.

    Attributes:
        path: the picture's address in our own API, as it stands in the answer's text. It stays the same, and
            the caller's right to the document is checked each time it is asked for.
        image_url: a signed address that needs no identity, for at least an hour from the reading of the
            answer. None as stored and as streamed, when the reader may not read the document any more, and
            when nothing could be signed.
        image_url_expires_at: when `image_url` ends.
    """

    block_id: str
    doc_id: str
    filename: str
    page_number: int | None = None
    caption: str
    path: str
    image_url: str | None = Field(default=None, repr=False)
    image_url_expires_at: datetime | None = None


class PageArea(Model):
    """A rectangle on a page, as fractions of its width and height; the origin is the upper left corner."""

    left: float
    top: float
    right: float
    bottom: float


class PageWord(Model):
    """A word of a rendered page, and where it stands."""

    text: str
    area: PageArea
