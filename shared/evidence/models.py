"""Models for citations, query results, figures, web pages, and areas of a page."""

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
    """A table that a query read, and the version of its document at that time.

    Attributes:
        doc_id, filename: for a database view, the id and name of its database.
        page_number: number of its sheet, from 1; None for CSV and the like.
        content_hash: for a view, a hash of its definition, since its rows change.
    """

    table_id: str = Field(description="Id of the table that the query read.")
    doc_id: str
    filename: ShownName
    page_number: int | None = None
    content_hash: str


class LeftOutCells(Model):
    """The cells of a queried column that contain a remark such as "< 0,5" instead of a value.

    Attributes:
        table: title of the table.
        remarks: the most frequent ones.
    """

    table: str
    column: str
    count: int
    remarks: tuple[str, ...]

    def in_words(self, *, in_german: bool = False) -> str:
        """Return a sentence that tells readers that calculations leave the cells out."""
        remarks = "; ".join(self.remarks)
        if in_german:
            one, several = ("Zelle", "hat keinen Wert und zählt"), ("Zellen", "haben keinen Wert und zählen")
            cells, rest = one if self.count == 1 else several
            return f"{self.count} {cells} von „{self.column}“ in „{self.table}“ {rest} nicht mit: {remarks}."
        cells, rest = (
            ("cell", "has no value and is") if self.count == 1 else ("cells", "have no value and are")
        )
        return f"{self.count} {cells} of “{self.column}” in “{self.table}” {rest} not counted: {remarks}."


class TableResult(Model):
    """The result of a query over tables, with all details that a citation of it needs.

    Attributes:
        result_id: id by which the model cites it, unique within a run.
        sql: as executed.
        labels: headings of the columns for readers, such as "Price EUR" for price_eur.
        rows: those shown to the model.
        row_count: total; a minimum if `truncated`.
        source_rows: first lines of the sheet that the result is calculated from, if it is a single table.
        constants: literals of the SQL.
        headings: titles and unit lines of the tables, such as "in thousand EUR". They give the numbers their
            scale and are not shown to readers.
        left_out: by column, the cells without a value.
    """

    result_id: str = ""
    sql: str
    sql_in_words: str
    sql_in_german: str = ""
    columns: tuple[str, ...]
    labels: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...]
    row_count: int
    truncated: bool = False
    source_rows: tuple[int, ...] = ()
    constants: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    left_out: tuple[LeftOutCells, ...] = ()
    tables: tuple[QueriedTable, ...]


class Citation(Model):
    """A numbered source of an answer: a quotation, metadata, a query result or a web page.

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

    n: int = Field(description="Number of the citation in the text of the answer.")
    kind: Literal["quote", "metadata", "table", "web"] = "quote"
    doc_id: str = Field(description="Id of the cited document; empty for a web page.")
    block_id: str = Field(
        description=(
            "Id of the cited block, which changes only with its content; empty if no block is cited."
        )
    )
    filename: ShownName = Field(description="Name of the file, or the host name of a web page.")
    page_number: int | None = Field(
        default=None, description="Page, slide or sheet, counted from 1; null if the document has no pages."
    )
    start_seconds: float | None = Field(
        default=None, description="Position in the recording in seconds; null for other documents."
    )
    published_by: str | None = None
    quote: str
    verified: bool
    url: str = Field(description="URL that shows the cited place.")
    source_url: Omittable[str] = Field(
        default=None, description="URL of the original document, such as its SharePoint address."
    )
    table_id: Omittable[str] = Field(default=None, description="Id of the table that was queried.")
    content_hash: Omittable[str] = Field(
        default=None, description="SHA-256 of the file that contains the table."
    )
    sql: Omittable[str] = Field(default=None, description="The query in the SQL dialect of SQLite.")
    sql_in_words: Omittable[str] = Field(
        default=None, description="Description of the query in natural language."
    )
    columns: Omittable[tuple[str, ...]] = Field(default=None, description="Column headings of the result.")
    rows: Omittable[tuple[tuple[Cell, ...], ...]] = Field(
        default=None, description=("Rows of the result that the model was shown.")
    )
    row_count: Omittable[int] = Field(
        default=None, description=("Number of rows in the result; a minimum if the result was truncated.")
    )
    source_rows: Omittable[tuple[int, ...]] = Field(
        default=None, description="Numbers of the file rows from which the result was computed."
    )
    tables: Omittable[tuple[QueriedTable, ...]] = Field(
        default=None, description="All tables that the query read."
    )

    final_url: Omittable[str] = None
    fetched_at: Omittable[datetime] = None
    context: Omittable[str] = None

    @property
    def places(self) -> tuple[tuple[str, int | None], ...]:
        """File name and page number of each source: the sheets that a query read, or else the cited page."""
        sheets = dict.fromkeys((table.filename, table.page_number) for table in self.tables or ())
        return tuple(sheets) or ((self.filename, self.page_number),)

    @property
    def doc_ids(self) -> tuple[str, ...]:
        """The ids of all documents that the citation depends on, without duplicates: the cited one and those
        of the queried tables.
        """
        doc_ids = (self.doc_id, *(table.doc_id for table in self.tables or ()))
        return tuple(dict.fromkeys(filter(None, doc_ids)))


class WebPage(Model):
    """The text of a downloaded web page, which proves quotations that cite the page.

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
        """The id that a model uses to cite the page. It can't coincide with the id of a document."""
        return f"web-{hashlib.sha256(self.final_url.encode()).hexdigest()[:12]}"


class AnswerFigure(Model):
    """A picture shown in an answer, with its caption and its address.

    Attributes:
        path: permanent address in our API, as in the answer's text. Access is checked at each request.
        image_url: signed address that needs no identity and is valid for at least an hour after the answer is
            read. None when stored or streamed, if the reader may no longer read the document, or if signing
            failed.
        image_url_expires_at: expiry of `image_url`.
    """

    block_id: str = Field(description="Id of the image block, which changes only with its content.")
    doc_id: str = Field(description="Id of the document that contains the picture.")
    filename: ShownName = Field(description="Name of the file that contains the picture.")
    page_number: int | None = Field(
        default=None, description="Page, slide or sheet, counted from 1; null if the document has no pages."
    )
    caption: str = Field(description="Caption that describes the picture.")
    path: str
    image_url: str | None = Field(default=None, repr=False)
    image_url_expires_at: datetime | None = None


class PageArea(Model):
    """A rectangle on a page. Its edges are fractions of the page's width or height, measured from the upper
    left corner.
    """

    left: float = Field(description="Left edge, as a fraction of the page width.")
    top: float = Field(description="Upper edge, as a fraction of the page height.")
    right: float = Field(description="Right edge, as a fraction of the page width.")
    bottom: float = Field(description="Lower edge, as a fraction of the page height.")


class PageWord(Model):
    """A word on a rendered page and the area that it covers."""

    text: str = Field(description="Text of the word.")
    area: PageArea = Field(description="Area that the word covers on the page.")
