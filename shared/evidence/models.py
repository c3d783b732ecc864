"""Models of citations, figures, web pages, and areas of a page."""

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
    """A table that a query read, in its document's version at that time.

    Attributes:
        doc_id, filename: for a database view, the id and name of its database.
        page_number: number of its sheet, from 1; None for CSV and the like.
        content_hash: for a view, a hash of its definition, since its rows change.
    """

    table_id: str = Field(description="The table that was queried.")
    doc_id: str
    filename: ShownName
    page_number: int | None = None
    content_hash: str


class TableResult(Model):
    """A citable result of a query over tables.

    Attributes:
        result_id: id by which the model cites it, unique within a run.
        sql: as executed.
        rows: those shown to the model.
        row_count: total; a minimum if `truncated`.
        source_rows: first lines of the sheet that the result is calculated from, if it is a single table.
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
    """A numbered quotation, or a result of a query over tables.

    Attributes:
        kind: "metadata" cites a document's metadata and has no block. "table" is *computed*: the query
            returned the same rows when repeated, and each number of the statement is among them. `tables`
            lists the tables read; the other fields describe the first. Fields from `table_id` to `tables`
            belong to this kind only. "web" is a page outside the documents, without document and block;
            `filename` is its host.
        quote: the block's own words, one line per fragment, with `OMISSION` for gaps. Empty if the model's
            words don't occur in the document, so the statement isn't proved. For a table, its first rows.
        published_by: name of the person who added the document, if known.
        verified: whether `quote` occurs in the document's own text. A caption doesn't count, because a model
            wrote it. For a web page: whether it occurs in the text read at `fetched_at`, which is kept with
            the run; the page at `url` may have changed since.
        final_url, fetched_at, context: for web pages only; `context` is the text around the quotation.
    """

    n: int = Field(description="The citation's number in the text.")
    kind: Literal["quote", "metadata", "table", "web"] = "quote"
    doc_id: str = Field(description="The document.")
    block_id: str = Field(description="The block; its id changes only with its content.")
    filename: ShownName = Field(description="Name of the file.")
    page_number: int | None = Field(
        default=None, description="Page, slide or sheet, counted from 1; null if the document has none."
    )
    start_seconds: float | None = Field(
        default=None, description="Position in a recording, in seconds; null otherwise."
    )
    published_by: str | None = None
    quote: str
    verified: bool
    url: str = Field(description="URL of the cited place.")
    source_url: Omittable[str] = Field(
        default=None, description="Original address of the document, such as the one in SharePoint."
    )
    table_id: Omittable[str] = Field(default=None, description="The table that was queried.")
    content_hash: Omittable[str] = Field(default=None, description="SHA-256 of the file.")
    sql: Omittable[str] = Field(default=None, description="The query, SQLite's SQL.")
    sql_in_words: Omittable[str] = Field(default=None, description="The query in natural language.")
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
        """The documents that the citation depends on, including all tables of a query."""
        doc_ids = (self.doc_id, *(table.doc_id for table in self.tables or ()))
        return tuple(dict.fromkeys(filter(None, doc_ids)))


class WebPage(Model):
    """The text of a web page as fetched, against which quotations from it are proved.

    Attributes:
        final_url: after redirects.
        published_at: according to the page, ISO 8601.
        sha256: of the received bytes.
        truncated: whether the page is longer.
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
        """The id by which a model cites the page. No document has such an id."""
        return f"web-{hashlib.sha256(self.final_url.encode()).hexdigest()[:12]}"


class AnswerFigure(Model):
    """A picture of an answer. An answer lists its pictures in text order.

    Attributes:
        path: permanent address in our API, as in the answer's text. Access is checked at each request.
        image_url: signed address that needs no identity and is valid for at least an hour after the answer is
            read. None when stored or streamed, if the reader may no longer read the document, or if signing
            failed.
        image_url_expires_at: expiry of `image_url`.
    """

    block_id: str = Field(description="The block; its id changes only with its content.")
    doc_id: str = Field(description="The document.")
    filename: ShownName = Field(description="Name of the file.")
    page_number: int | None = Field(
        default=None, description="Page, slide or sheet, counted from 1; null if the document has none."
    )
    caption: str = Field(description="Description of the picture.")
    path: str
    image_url: str | None = Field(default=None, repr=False)
    image_url_expires_at: datetime | None = None


class PageArea(Model):
    """A rectangle in fractions of the page's width and height, with the origin in the upper left corner."""

    left: float = Field(description="Left edge.")
    top: float = Field(description="Upper edge.")
    right: float = Field(description="Right edge.")
    bottom: float = Field(description="Lower edge.")


class PageWord(Model):
    """A word of a rendered page and its area."""

    text: str = Field(description="The word.")
    area: PageArea = Field(description="Its position.")
