"""Models of a document's tables, with their ids and SQL names. Pure."""

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
    """A column of a table or view.

    Attributes:
        name: name in SQL.
        label: heading in the file.
        kind: type of every non-empty cell, except for remarks. A percentage is stored as a fraction, a date
            as ISO 8601.
        unit: currency of a money column.
        has_raw: whether `{name}__raw` contains the cells as written in the file.
        samples: most common values of a text column.
        lowest, highest: range of any other column.
        remarks: most common cells of any other column that have no value and are NULL, such as "on request".
        remark_count: number of such cells.
        description, synonyms: given by the file's owner.
    """

    name: str
    label: str
    kind: ColumnKind
    unit: str = ""
    has_raw: bool = False
    samples: tuple[str, ...] = ()
    lowest: str = ""
    highest: str = ""
    remarks: tuple[str, ...] = ()
    remark_count: int = 0
    description: str = ""
    synonyms: tuple[str, ...] = ()


class ApprovedQuestion(Model):
    """A question with SQL that the file's owner has verified. In a catalog, its SQL contains placeholders for
    tables.
    """

    question: str
    sql: str


class TotalRow(Model):
    """A row of a sheet that is the total of other rows, given by its line and its first text."""

    line: int
    label: str


class Table(Model):
    """A table of a document, or a view of a database.

    Attributes:
        number: position among the tables of the document, from 1.
        stored_name: name in the SQLite file.
        unit: unit of all its numbers according to a line above the table, such as "in thousand EUR".
        sheet: name of the sheet; None for other files, such as CSV.
        page_number: number of its sheet, from 1.
        totals: total rows of the sheet, which were not loaded into the table.
        description, synonyms, approved: given by the file's owner.
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
        """SQL columns that `*` omits: the line in the sheet, and cells as written in the file."""
        return (ROW, *(f"{column.name}{RAW}" for column in self.columns if column.has_raw))


class TableCatalog(Model):
    """The tables of one version of a document.

    Attributes:
        size_bytes: size of the SQLite file.
    """

    tables: tuple[Table, ...]
    size_bytes: int = 0


def table_id(doc_id: str, number: int) -> str:
    """Return the id of a table, as used in tool calls."""
    return f"{doc_id}.{number}"


def parts_of(table_id: str) -> tuple[str, int] | None:
    """Split a table id into document id and table number. Return None if the id is malformed."""
    matched = _ID.fullmatch(table_id)
    return (matched[1], int(matched[2])) if matched else None


def sql_name(doc_id: str, table: Table) -> str:
    """Return the SQL name of a table: the words of its title and a hash, which distinguishes tables with the
    same title.
    """
    return f"{identifier(table.title, 'table')}_{digest(table_id(doc_id, table.number))[:5]}"


def placeholder(number: int) -> str:
    """Return the placeholder that stands for a table of the same document in verified SQL."""
    return f"__table_{number}__"


def with_names(doc_id: str, tables: Sequence[Table]) -> list[Table]:
    """Return the tables with the placeholders in their verified SQL replaced by the tables' SQL names."""
    names = {placeholder(table.number): sql_name(doc_id, table) for table in tables}

    def with_sql_names(question: ApprovedQuestion) -> ApprovedQuestion:
        sql = question.sql
        for mark, name in names.items():
            sql = sql.replace(mark, name)
        return question.model_copy(update={"sql": sql})

    return [
        table.model_copy(update={"approved": tuple(map(with_sql_names, table.approved))}) for table in tables
    ]


def identifier(text: str, default: str) -> str:
    """Convert text to an unquoted SQL identifier of lower-case letters, digits and single underscores."""
    words = re.sub(r"[\W_]+", "_", text.casefold())[:_MAX_NAME_CHARS].strip("_")
    if not words:
        return default
    return f"c_{words}" if words[0].isdigit() else words
