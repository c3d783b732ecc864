"""Jobs and replies of the worker process that runs queries over tables."""

from pathlib import Path
from typing import Literal

from shared.platform.models import Model
from shared.tables.models import Dialect

MAX_SQL_CHARS = 4000
MAX_FILES = 10  # SQLite's limit of attached files
MAX_FILE_BYTES = 200_000_000  # all files together, about three million rows; an instance has 800 MB of disk
MAX_ROWS = 1000  # fetched
MAX_RESULT_CHARS = 2_000_000
MAX_SOURCE_ROWS = 20
QUERY_TIMEOUT_S = 2.0  # CPU time; SQLite checks the clock only between its steps
KILL_AFTER_S = 5.0  # wall time, for single steps that exceed the limit above

Cell = str | int | float | None


class QueryTable(Model):
    """A table that the query may read.

    Attributes:
        name: its name in SQL.
        stored_name: its name in the file.
        title: its title for users.
        hidden: columns that `*` omits.
    """

    name: str
    stored_name: str
    title: str
    columns: tuple[str, ...]
    hidden: tuple[str, ...] = ()


class QueryFile(Model):
    """A SQLite file on disk and its permitted tables."""

    path: Path
    tables: tuple[QueryTable, ...]


class QueryJob(Model):
    """A request to run `sql` over `files` and to write a QueryReply as JSON to `target`."""

    kind: Literal["query"] = "query"
    target: Path
    sql: str
    files: tuple[QueryFile, ...]


class GuardJob(Model):
    """A request to check `sql` against views of a database and to write a QueryReply as JSON to `target`."""

    kind: Literal["guard"] = "guard"
    target: Path
    sql: str
    dialect: Dialect
    schemas: tuple[str, ...]
    views: tuple[QueryTable, ...]


class QueryResult(Model):
    """The result of a query.

    Attributes:
        sql: as executed, without file names.
        row_count: rows fetched, at most MAX_ROWS; `truncated` if there are more.
        source_rows: lines of the sheet for a query over a single table, at most MAX_SOURCE_ROWS.
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
    """The reason why a query wasn't run or completed; `code` is an error code (shared/platform/errors.py)."""

    code: Literal["InvalidQueryError", "TimeoutError", "BudgetExceededError"]
    reason: str
    hint: str


class QueryReply(Model):
    """A result or a refusal.

    Attributes:
        executed: the query for a database to run; then the result has no rows yet.
    """

    result: QueryResult | None = None
    executed: str = ""
    refusal: QueryRefusal | None = None
