"""Execution of queries in the worker process: by the guard, then by read-only SQLite over the permitted
files.

SQLite's authorizer alone is not sufficient, because it allows columns of a NATURAL JOIN to be read although
access to their table is denied. So only permitted files are attached to the connection.
"""

import time
from collections.abc import Mapping, Sequence
from urllib.parse import quote

import apsw
from sqlglot import exp

from shared.platform.errors import InvalidQueryError
from shared.tables.models import Dialect
from shared.tables.queries import (
    MAX_RESULT_CHARS,
    MAX_ROWS,
    MAX_SOURCE_ROWS,
    QUERY_TIMEOUT_S,
    Cell,
    GuardJob,
    QueryJob,
    QueryRefusal,
    QueryReply,
    QueryResult,
    QueryTable,
)
from shared.tables.sql_guard import FUNCTION_NAMES, GuardedQuery, guard_query
from shared.tables.sql_words import in_words

_MAX_TEXT_BYTES = 100_000  # per value, because the time limit isn't checked while a value is computed
_HEAP_BYTES = 64 << 20  # larger sorts and joins use temporary files
_STEPS_BETWEEN_LOOKS = 10_000
_MAX_SOUGHT_CELLS = 8
_LIMITS = {
    apsw.SQLITE_LIMIT_LENGTH: _MAX_TEXT_BYTES,
    apsw.SQLITE_LIMIT_SQL_LENGTH: 100_000,  # applies to the generated SQL, in which each `*` is expanded
    apsw.SQLITE_LIMIT_COMPOUND_SELECT: 20,
    apsw.SQLITE_LIMIT_EXPR_DEPTH: 100,
    apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 200,
    apsw.SQLITE_LIMIT_VARIABLE_NUMBER: 0,
    apsw.SQLITE_LIMIT_TRIGGER_DEPTH: 0,
    apsw.SQLITE_LIMIT_WORKER_THREADS: 0,
}

_Places = Mapping[str, tuple[str, QueryTable]]


def answer(job: QueryJob) -> QueryReply:
    """Run a query and return its rows or the reason for refusing it. Neither is logged."""
    places = {
        table.name: (f"f{number}", table) for number, file in enumerate(job.files) for table in file.tables
    }
    try:
        allowed = guard_query(job.sql, places)
        return QueryReply(result=_run(job, allowed, places))
    except InvalidQueryError as refused:
        return _refusal("InvalidQueryError", refused.detail, " ".join(refused.hints))
    except (apsw.InterruptError, apsw.NoMemError, apsw.TooBigError, MemoryError):
        reason = "The query takes too much time or memory."
        return _refusal("TimeoutError", reason, "Filter or group rows, and join fewer of them.")
    except apsw.AuthError:
        return _refusal(
            "InvalidQueryError", "The query reads tables that are not permitted.", "Use other tables."
        )
    except apsw.Error as failed:
        # The tables and columns exist, so SQLite mostly reports a misused function here.
        return _refusal(
            "InvalidQueryError", f"SQLite refuses the query: {str(failed)[:200]}", "Correct the query."
        )


def check_query(job: GuardJob) -> QueryReply:
    """Check a query for a database. Return the SQL to execute, or the reason for refusing it."""
    places = {view.name: (schema, view) for schema, view in zip(job.schemas, job.views, strict=True)}
    try:
        allowed = guard_query(job.sql, places, job.dialect)
    except InvalidQueryError as refused:
        return _refusal("InvalidQueryError", refused.detail, " ".join(refused.hints))
    return QueryReply(result=_result_of(allowed, places, job.dialect), executed=allowed.executed)


def _result_of(allowed: GuardedQuery, places: _Places, dialect: Dialect) -> QueryResult:
    """Return a result with the description of the query but without rows."""
    titles = {name: table.title for name, (_, table) in places.items()}
    return QueryResult(
        sql=allowed.sql,
        sql_in_words=in_words(allowed.tree, titles, dialect),
        sql_in_german=in_words(allowed.tree, titles, dialect, "de"),
        columns=allowed.columns,
        rows=(),
        row_count=0,
        constants=tuple(str(literal.name) for literal in allowed.tree.find_all(exp.Literal)),
    )


def _refusal(code: str, reason: str, hint: str) -> QueryReply:
    return QueryReply(refusal=QueryRefusal.model_validate({"code": code, "reason": reason, "hint": hint}))


def _run(job: QueryJob, allowed: GuardedQuery, places: _Places) -> QueryResult:
    connection = _connect(job, places)
    try:
        cursor = connection.execute(allowed.executed)
        rows: list[tuple[Cell, ...]] = []
        size = 0
        for row in cursor:
            rows.append(tuple(_cell(value) for value in row))
            size += sum(len(value) for value in rows[-1] if isinstance(value, str))
            if len(rows) > MAX_ROWS or size > MAX_RESULT_CHARS:
                break
        is_cut = len(rows) > MAX_ROWS or size > MAX_RESULT_CHARS
        return _result_of(allowed, places, "sqlite").model_copy(
            update={
                "rows": tuple(rows[:MAX_ROWS]),
                "row_count": min(len(rows), MAX_ROWS),
                "truncated": is_cut,
                "source_rows": _source_rows(connection, allowed.source),
                "main_table": _main_table(connection, allowed.tree, places, rows[0]) if rows else "",
            }
        )
    finally:
        connection.close()


def _connect(job: QueryJob, places: _Places) -> apsw.Connection:
    """Open a SQLite connection that can only read the files of a job."""
    apsw.hard_heap_limit(_HEAP_BYTES)
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(":memory:", flags=flags)
    for number, file in enumerate(job.files):
        address = f"file:{quote(str(file.path))}?mode=ro&immutable=1"
        connection.execute(f"ATTACH ? AS f{number}", (address,))
    connection.execute("PRAGMA query_only = ON")
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    for limit, value in _LIMITS.items():
        connection.limit(limit, value)
    connection.limit(apsw.SQLITE_LIMIT_ATTACHED, 0)
    readable = {(place, table.stored_name) for place, table in places.values()}

    def authorize(
        operation: int, first: str | None, second: str | None, file: str | None, _trigger: str | None
    ) -> int:
        is_read = operation == apsw.SQLITE_READ and (file, first) in readable
        is_call = operation == apsw.SQLITE_FUNCTION and (second or "").casefold() in FUNCTION_NAMES
        allowed = operation == apsw.SQLITE_SELECT or is_read or is_call
        verdict: int = apsw.SQLITE_OK if allowed else apsw.SQLITE_DENY
        return verdict

    connection.authorizer = authorize
    ends = time.process_time() + QUERY_TIMEOUT_S  # CPU time, so other processes don't shorten it
    connection.set_progress_handler(lambda: time.process_time() > ends, _STEPS_BETWEEN_LOOKS)
    return connection


def _source_rows(connection: apsw.Connection, source: str) -> tuple[int, ...]:
    """Return line numbers of the sheet rows behind a result; empty if the query for them fails."""
    if not source:
        return ()
    lines: list[int] = []
    try:
        for (line,) in connection.execute(source):
            lines.append(int(line))
            if len(lines) == MAX_SOURCE_ROWS:
                break
    except apsw.Error:
        return ()
    return tuple(lines)


def _main_table(connection: apsw.Connection, tree: exp.Query, places: _Places, row: Sequence[Cell]) -> str:
    """Return the SQL name of the table that contains most cells of a row, if a query reads several tables.

    Returns:
        "" if the query reads one table, several contain equally many cells, or the search takes too long.
    """
    read = {table.name.casefold() for table in tree.find_all(exp.Table)}
    tables = [(name, *place) for name, place in places.items() if name.casefold() in read]
    if len(tables) < 2:
        return ""
    cells = [cell for cell in row[:_MAX_SOUGHT_CELLS] if cell not in (None, "")]
    counts: dict[str, int] = {}
    try:
        for name, file, table in tables:
            columns = ", ".join(f'"{column}"' for column in table.columns)
            counts[name] = sum(
                # Safe to insert: `identifier` made the names of columns, and apsw quotes the values.
                bool(
                    list(
                        connection.execute(
                            f'SELECT 1 FROM "{file}"."{table.stored_name}" '  # noqa: S608
                            f"WHERE {apsw.format_sql_value(cell)} IN ({columns}) LIMIT 1"
                        )
                    )
                )
                for cell in cells
            )
    except apsw.Error:
        return ""
    first, second, *_ = sorted(counts, key=counts.__getitem__, reverse=True)
    return first if counts[first] > counts[second] else ""


def _cell(value: object) -> Cell:
    if isinstance(value, float):
        # Digits beyond the 15th are unreliable, and would show sums as ...99999.
        return float(f"{value:.15g}")
    return value if isinstance(value, str | int | float) or value is None else "(binary)"
