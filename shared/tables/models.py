"""A table of a document: its columns, and what it is called in SQL. Pure."""

import re
from collections.abc import Sequence
from typing import Literal

from shared.platform.hashing import digest
from shared.platform.models import Model

ColumnKind = Literal["text", "integer", "number", "percent", "money", "date"]
Dialect = Literal["sqlite", "postgres"]
DATABASE, CATALOG = "tables.sqlite", "tables.json"
RAW = "__raw"
ROW = "_row"
_MAX_NAME_CHARS = 40
_ID = re.compile(r"([A-Za-z0-9_-]{1,100})\.([1-9][0-9]{0,2})", re.ASCII)


class Column(Model):
    """One column.

    Attributes:
        name: in SQL.
        label: in the file.
        kind: what every filled cell is. A percentage is stored as a fraction, a date as ISO 8601.
        unit: the currency of money.
        has_raw: whether `{name}__raw` holds the cells as they are written in the file.
        samples: the commonest values of a text column.
        lowest, highest: of every other kind.
        description, synonyms: what the file's owner says of it.
    """

    name: str
    label: str
    kind: ColumnKind
    unit: str = ""
    has_raw: bool = False
    samples: tuple[str, ...] = ()
    lowest: str = ""
    highest: str = ""
    description: str = ""
    synonyms: tuple[str, ...] = ()


class ApprovedQuestion(Model):
    """A question with SQL that the file's owner has checked; tables are placeholders in a catalog."""

    question: str
    sql: str


class TotalRow(Model):
    """A row of a sheet that adds up others: its line, and its first words."""

    line: int
    label: str


class Table(Model):
    """One table of a document.

    Attributes:
        number: among the document's tables, from 1.
        stored_name: in the SQLite file.
        unit: what a line above the table says of all its numbers, such as "in thousand EUR".
        sheet: None for a file of separated values.
        page_number: of its sheet, 1-based.
        totals: rows of the sheet that are totals of others, and no rows of the table.
        description, synonyms, approved: what the file's owner says of it.
    """

    number: int
    stored_name: str
    title: str
    unit: str = ""
    sheet: str | None = None
    page_number: int | None = None
    row_count: int
    columns: tuple[Column, ...]
    totals: tuple[TotalRow, ...] = ()
    description: str = ""
    synonyms: tuple[str, ...] = ()
    approved: tuple[ApprovedQuestion, ...] = ()

    @property
    def hidden_columns(self) -> tuple[str, ...]:
        """Columns that `*` does not show: the line in the sheet, and cells as written."""
        return (ROW, *(f"{column.name}{RAW}" for column in self.columns if column.has_raw))


class TableCatalog(Model):
    """The tables of one version of a document.

    Attributes:
        size_bytes: of the SQLite file.
    """

    tables: tuple[Table, ...]
    size_bytes: int = 0


def table_id(doc_id: str, number: int) -> str:
    """The id of a table, for tools."""
    return f"{doc_id}.{number}"


def parts_of(table_id: str) -> tuple[str, int] | None:
    """The document and the number that a table's id names; None if it is no such id."""
    matched = _ID.fullmatch(table_id)
    return (matched[1], int(matched[2])) if matched else None


def sql_name(doc_id: str, table: Table) -> str:
    """What SQL calls the table: words of its title, and enough of a hash to tell equal titles apart."""
    return f"{identifier(table.title, 'table')}_{digest(table_id(doc_id, table.number))[:5]}"


def placeholder(number: int) -> str:
    """What stands for a table of the same document in approved SQL."""
    return f"__table_{number}__"


def with_names(doc_id: str, tables: Sequence[Table]) -> list[Table]:
    """The tables of a catalog, their approved SQL with the names that they have in this document."""
    names = {placeholder(table.number): sql_name(doc_id, table) for table in tables}

    def named(question: ApprovedQuestion) -> ApprovedQuestion:
        sql = question.sql
        for mark, name in names.items():
            sql = sql.replace(mark, name)
        return question.model_copy(update={"sql": sql})

    return [table.model_copy(update={"approved": tuple(map(named, table.approved))}) for table in tables]


def identifier(text: str, default: str) -> str:
    """Lower-case letters, digits and single underscores, as SQL takes them without quotes."""
    words = re.sub(r"[\W_]+", "_", text.casefold())[:_MAX_NAME_CHARS].strip("_")
    if not words:
        return default
    return f"c_{words}" if words[0].isdigit() else words
