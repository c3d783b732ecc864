"""Citations: what an answer shows, and what is needed to prove it."""

from pydantic import Field

from shared.models.base import Model


class Citation(Model):
    """A numbered quotation.

    `verified` is true only if `quote` stands verbatim in a block of the document's own text. A quotation from
    a caption is not: a model wrote it to describe a picture.
    """

    n: int
    doc_id: str
    block_id: str
    filename: str
    page_number: int | None = None
    start_seconds: float | None = None
    quote: str
    verified: bool
    url: str


class Conflict(Model):
    """Citations, by their numbers, of two documents that give different figures for the same thing."""

    first: int
    second: int


class QuoteRepair(Model):
    """Structured output of the repair call: a verbatim quotation for the claim, or null if none."""

    quote: str | None = Field(description="Copied letter by letter from one block, or null.")
