"""Citations, figures of an answer, pages of the web, and areas of a page."""

import hashlib
from datetime import datetime
from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, Field

from shared.evidence.untrusted_text import shown_name
from shared.platform.models import Model

ShownName = Annotated[str, AfterValidator(shown_name)]
"""A file name that clients may show as it is: it hides nothing and looks like no citation."""

Cell = str | int | float | None

T = TypeVar("T")
Omittable: TypeAlias = Annotated[T | None, Field(exclude_if=lambda value: value is None)]
"""A field that is left out of JSON where it is None."""


class QueriedTable(Model):
    """A table that a query read, in the version of its document at that time.

    Attributes:
        doc_id, filename: of a view, its database's id and name.
        page_number: of its sheet, 1-based; None for a file of separated values.
        content_hash: of a view, of what it is made of: its rows change all the time.
    """

    table_id: str = Field(description="The table that was queried.")
    doc_id: str
    filename: ShownName
    page_number: int | None = None
    content_hash: str


class TableResult(Model):
    """What a query over tables gave, as something that an answer can cite.

    Attributes:
        result_id: what the model cites it by, unique in a run.
        sql: as it was run.
        rows: those that the model was shown.
        row_count: of all rows; of the first ones where the result was `truncated`.
        source_rows: lines of the sheet that it was calculated from, the first ones; of one table alone.
        constants: literals of the SQL.
    """

    result_id: str = ""
    sql: str
    sql_in_words: str
    sql_in_german: str = ""
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    row_count: int
    truncated: bool = False
    source_rows: tuple[int, ...] = ()
    constants: tuple[str, ...] = ()
    tables: tuple[QueriedTable, ...]


class Citation(Model):
    """A numbered quotation, or the result of a query over tables.

    Attributes:
        kind: "metadata" = what the document's record says of it, such as its author; it has no block.
            "table" = *computed*: the query gave the same rows when it was run again, and each number of the
            statement is one of them. `tables` are those that it read; the other fields of the citation are of
            the first of them. Fields from `table_id` to `tables` are of this kind alone.
            "web" = a page from outside the documents; without document and block; `filename` is its host.
        quote: the block's own words: a line for each fragment, `OMISSION` where something is left out. Empty
            where the model's words stand nowhere in the document: the statement is not proved. Of a table its
            first rows.
        published_by: name of the person who put the document here, where one did and their name is known.
        verified: whether `quote` stands in a block of the document's own text. A quotation from a caption
            does not: a model wrote it to describe a picture. Of a page of the web: whether it stands in the
            text that was read at `fetched_at` and is kept with the run; `url` may show other words now.
        final_url, fetched_at, context: of a page of the web alone; `context` is the text around the
            quotation as it was read.
    """

    n: int = Field(description="The citation's number in the text.")
    kind: Literal["quote", "metadata", "table", "web"] = "quote"
    doc_id: str = Field(description="The document.")
    block_id: str = Field(description="The block that holds it; it stays the same while its content does.")
    filename: ShownName = Field(description="Name of the file.")
    page_number: int | None = Field(
        default=None, description="Page, slide or sheet, counted from 1; null if the document has none."
    )
    start_seconds: float | None = Field(
        default=None, description="Moment of a recording, in seconds; null otherwise."
    )
    published_by: str | None = None
    quote: str
    verified: bool
    url: str = Field(description="Where the cited place can be read.")
    table_id: Omittable[str] = Field(default=None, description="The table that was queried.")
    content_hash: Omittable[str] = Field(default=None, description="SHA-256 of the file.")
    sql: Omittable[str] = Field(default=None, description="The query, SQLite's SQL.")
    sql_in_words: Omittable[str] = Field(default=None, description="The query in words.")
    columns: Omittable[tuple[str, ...]] = Field(default=None, description="Names of the result's columns.")
    rows: Omittable[tuple[tuple[Cell, ...], ...]] = Field(default=None, description="Documents in the index.")
    row_count: Omittable[int] = Field(default=None, description="Rows of the result.")
    source_rows: Omittable[tuple[int, ...]] = Field(
        default=None, description="Numbers of the rows of the file that the result was computed from."
    )
    tables: Omittable[tuple[QueriedTable, ...]] = Field(
        default=None, description="The tables that the query read."
    )

    final_url: Omittable[str] = None
    fetched_at: Omittable[datetime] = None
    context: Omittable[str] = None

    @property
    def doc_ids(self) -> tuple[str, ...]:
        """The documents that it tells of: of a query over several tables, all of theirs."""
        known = (self.doc_id, *(table.doc_id for table in self.tables or ()))
        return tuple(dict.fromkeys(filter(None, known)))


class WebPage(Model):
    """The text of a page of the web as it was read, which is what quotations from it are proved by.

    Attributes:
        final_url: behind all redirects.
        published_at: as the page says, ISO 8601.
        sha256: of the bytes that were sent.
        truncated: there is more of it.
    """

    final_url: str
    title: str
    text: str
    published_at: str | None = None
    fetched_at: datetime
    sha256: str
    content_type: str
    truncated: bool = False

    @property
    def doc_id(self) -> str:
        """What a model cites it by; no document has such an id."""
        return f"web-{hashlib.sha256(self.final_url.encode()).hexdigest()[:12]}"


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

    block_id: str = Field(description="The block that holds it; it stays the same while its content does.")
    doc_id: str = Field(description="The document.")
    filename: ShownName = Field(description="Name of the file.")
    page_number: int | None = Field(
        default=None, description="Page, slide or sheet, counted from 1; null if the document has none."
    )
    caption: str = Field(description="What the picture shows.")
    path: str
    image_url: str | None = Field(default=None, repr=False)
    image_url_expires_at: datetime | None = None


class PageArea(Model):
    """A rectangle on a page, as fractions of its width and height; the origin is the upper left corner."""

    left: float = Field(description="Left edge.")
    top: float = Field(description="Upper edge.")
    right: float = Field(description="Right edge.")
    bottom: float = Field(description="Lower edge.")


class PageWord(Model):
    """A word of a rendered page, and where it stands."""

    text: str = Field(description="The word.")
    area: PageArea = Field(description="Where it stands.")
