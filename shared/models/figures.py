"""A figure as an answer shows it."""

from datetime import datetime

from pydantic import Field

from shared.models.base import Model


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
