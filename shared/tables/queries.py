"""A query over tables, as the worker process gets it, and what it answers."""

from pathlib import Path
from typing import Literal

from shared.platform.models import Model
from shared.tables.models import Dialect

MAX_SQL_CHARS = 4000
MAX_FILES = 10  # SQLite attaches no more
MAX_FILE_BYTES = 200_000_000  # of all files together; some three million rows. An instance has 800 MB of disk
MAX_ROWS = 1000  # fetched
MAX_RESULT_CHARS = 2_000_000
MAX_SOURCE_ROWS = 20
QUERY_TIMEOUT_S = 2.0  # of processor time; SQLite looks at the clock between its steps; within one it cannot
KILL_AFTER_S = 5.0  # of the clock, for steps that take longer than all of the above

Cell = str | int | float | None


class QueryTable(Model):
    """A table that the query may read.

    Attributes:
        name: in SQL.
        stored_name: in its file.
        title: for people.
        hidden: columns that `*` does not show.
    """

    name: str
    stored_name: str
    title: str
    columns: tuple[str, ...]
    hidden: tuple[str, ...] = ()


class QueryFile(Model):
    """A SQLite file on the disk, and those of its tables that may be read."""

    path: Path
    tables: tuple[QueryTable, ...]


class QueryJob(Model):
    """Run `sql` over `files`; a QueryReply goes to `target` as JSON."""

    kind: Literal["query"] = "query"
    target: Path
    sql: str
    files: tuple[QueryFile, ...]


class GuardJob(Model):
    """Check `sql` over views of a database; a QueryReply goes to `target` as JSON."""

    kind: Literal["guard"] = "guard"
    target: Path
    sql: str
    dialect: Dialect
    schemas: tuple[str, ...]
    views: tuple[QueryTable, ...]


class QueryResult(Model):
    """What a query gave.

    Attributes:
        sql: as it was run, without the names of files.
        row_count: rows fetched, at most MAX_ROWS; `truncated` if there are more.
        source_rows: lines of the sheet, for a query over one table; at most MAX_SOURCE_ROWS.
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


class QueryRefusal(Model):
    """Why a query was not run, or not to its end; `code` is an error's code (shared/platform/errors.py)."""

    code: Literal["InvalidQueryError", "TimeoutError", "BudgetExceededError"]
    reason: str
    hint: str


class QueryReply(Model):
    """A result or a refusal.

    Attributes:
        executed: for a database, what it is to run; then the result has no rows yet.
    """

    result: QueryResult | None = None
    executed: str = ""
    refusal: QueryRefusal | None = None
