"""Jobs for the worker process that checks and runs queries over tables, and its replies."""

from pathlib import Path
from typing import Literal

from shared.platform.models import Model
from shared.tables.models import ColumnKind, Dialect

MAX_SQL_CHARS = 4000
MAX_FILES = 10  # the default limit of SQLite for attached files
# Maximum size of all files of a query: about 3 million rows. An instance has 800 MB of disk.
MAX_FILE_BYTES = 200_000_000
MAX_ROWS = 1000  # rows fetched per query
MAX_RESULT_CHARS = 2_000_000
MAX_SOURCE_ROWS = 20
QUERY_TIMEOUT_S = 2.0  # CPU time, checked between the steps of SQLite
KILL_AFTER_S = 5.0  # wall time, because a single step may exceed the limit above

Cell = str | int | float | None


class QueryTable(Model):
    """A table that a query may read.

    Attributes:
        name: name in SQL.
        stored_name: name in the SQLite file or database.
        title: title shown to users.
        kinds: kinds of the columns, in the same order; empty if unknown.
        hidden: columns that `*` omits.
    """

    name: str
    stored_name: str
    title: str
    columns: tuple[str, ...]
    kinds: tuple[ColumnKind, ...] = ()
    hidden: tuple[str, ...] = ()


class QueryFile(Model):
    """A SQLite file on disk with the tables that a query may read."""

    path: Path
    tables: tuple[QueryTable, ...]


class QueryJob(Model):
    """A job that runs `sql` over `files` and writes a QueryReply as JSON to `target`."""

    kind: Literal["query"] = "query"
    target: Path
    sql: str
    files: tuple[QueryFile, ...]


class GuardJob(Model):
    """A job that checks `sql` against the views of a database and writes a QueryReply as JSON to `target`."""

    kind: Literal["guard"] = "guard"
    target: Path
    sql: str
    dialect: Dialect
    schemas: tuple[str, ...]
    views: tuple[QueryTable, ...]


class QueryResult(Model):
    """The result of a query, with a description of the query in words.

    Attributes:
        sql: the executed query, with the SQL names of tables.
        row_count: number of rows fetched, at most MAX_ROWS.
        truncated: whether the query has more rows.
        source_rows: line numbers of the sheet rows behind the result of a query over a single table, at most
            MAX_SOURCE_ROWS.
        constants: literals in the query.
        main_table: SQL name of the table that contains the first row, if a query reads several; "" if
            unclear.
    """

    sql: str
    sql_in_words: str
    sql_in_german: str = ""
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    row_count: int
    truncated: bool = False
    source_rows: tuple[int, ...] = ()
    constants: tuple[str, ...] = ()
    main_table: str = ""


class QueryRefusal(Model):
    """The reason why a query wasn't run or completed. `code` is an error code from
    shared/platform/errors.py.
    """

    code: Literal["InvalidQueryError", "TimeoutError", "BudgetExceededError"]
    reason: str
    hint: str


class QueryReply(Model):
    """The result of a job, or the reason for refusing it.

    Attributes:
        executed: for a GuardJob, the SQL that the database must execute; the result then has no rows.
    """

    result: QueryResult | None = None
    executed: str = ""
    refusal: QueryRefusal | None = None
