"""One PostgreSQL database, read only: what its views hold, and the rows of a query that the guard checked.

The guard is the first line of defence. Here are the others: the role, which can only select from the views;
a transaction that can only read; a cursor, which takes one SELECT by the extended protocol and no other
statement; and limits on time, rows and the size of a row. Each query has its own connection: it is as rare as
a question, and nothing of one person's session is left for the next.

Source: psycopg 3.3; PostgreSQL 15, DECLARE and statement_timeout.
"""

# For annotations alone: the start of the app need not build every model.
from __future__ import annotations

import asyncio
import importlib
import json
import math
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from shared.platform.calls import DATABASE, azure_errors, call_span, refused, timed_out, unreachable
from shared.platform.connections import Credentials
from shared.platform.database_sources import DatabaseSource
from shared.platform.errors import CallTimeoutError, InvalidQueryError
from shared.tables.models import Column, ColumnKind, Dialect, Table
from shared.tables.queries import MAX_RESULT_CHARS, MAX_ROWS, Cell

if TYPE_CHECKING:
    import psycopg
    from psycopg import AsyncConnection
    from psycopg.rows import TupleRow

_CONNECT_TIMEOUT_S = 5
_STATEMENT_TIMEOUT_MS = 5_000
_TIMEOUT_S = 20.0  # with the connection
_MAX_ROW_CHARS = 1_000_000
_ROWS_AT_ONCE = 20  # so many of the largest rows fit into memory
_SAMPLED_ROWS = 200
_SAMPLES = 5
_MAX_SAMPLE_CHARS = 60
_MAX_NUMBER_CHARS = 300
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}", re.ASCII)  # what SQL writes without quotes
_KINDS: Mapping[str, ColumnKind] = {
    **dict.fromkeys(("int2", "int4", "int8"), "integer"),
    **dict.fromkeys(("numeric", "float4", "float8"), "number"),
    **dict.fromkeys(("date", "timestamp", "timestamptz"), "date"),
}
_COLUMNS = """
SELECT a.attname, t.typname, coalesce(pg_catalog.col_description(a.attrelid, a.attnum), ''),
       coalesce(pg_catalog.obj_description(a.attrelid, 'pg_class'), '')
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE n.nspname = %s AND c.relname = %s AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""
_SETTINGS = f"""
SELECT set_config('statement_timeout', '{_STATEMENT_TIMEOUT_MS}', true),
       set_config('lock_timeout', '1000', true),
       set_config('idle_in_transaction_session_timeout', '{int(_TIMEOUT_S * 1000)}', true),
       set_config('search_path', 'pg_catalog', true),
       set_config('standard_conforming_strings', 'on', true),
       set_config('datestyle', 'ISO', true)
"""

_SCOPE = "https://ossrdbms-aad.database.windows.net/.default"

Token = Callable[[], Awaitable[str]]
Rows = tuple[tuple[Cell, ...], ...]


def database_token(credentials: Credentials) -> Token:
    """The app's own token for Azure Database for PostgreSQL, which takes it as a password."""

    async def token() -> str:
        with azure_errors(DATABASE):
            return (await credentials.for_directory().get_token(_SCOPE)).token

    return token


class PostgresEngine:
    """The database of one source; `token` is asked for where it has no password."""

    dialect: Dialect = "postgres"

    def __init__(self, source: DatabaseSource, token: Token) -> None:
        self._source = source
        self._token = token

    async def tables(self) -> list[Table]:
        """The views, with five frequent values of each text column among the first rows.

        Raises:
            DependencyError: the database cannot be reached, or refuses.
        """
        async with self._connected() as connection:
            found = [
                await self._table(connection, number, view)
                for number, view in enumerate(self._source.views, start=1)
            ]
        return [table for table in found if table.columns]

    async def rows(self, sql: str, column_count: int) -> tuple[Rows, bool]:
        """The first rows of a query, and whether there are more.

        Args:
            sql: as the guard generated it.

        Raises:
            InvalidQueryError: the database refuses the query.
            DependencyError: the database cannot be reached, or takes too long.
        """
        async with self._connected() as connection:
            return await _fetched(connection, sql, column_count, MAX_ROWS)

    async def _table(self, connection: AsyncConnection[TupleRow], number: int, view: str) -> Table:
        schema, _, name = view.partition(".")
        cursor = await connection.execute(_COLUMNS, (schema, name))
        listed = [row for row in await cursor.fetchall() if _NAME.fullmatch(row[0])]
        if not listed:  # it is gone, or not one of its columns can be named
            return Table(number=number, stored_name=name, title=name, row_count=0, columns=())
        place = f'"{schema}"."{name}"'
        # Both names are of the setting, which takes none with quotes; so are the columns'.
        names = ", ".join(f'"{row[0]}"' for row in listed)
        sampled = f"SELECT {names} FROM {place} LIMIT {_SAMPLED_ROWS}"  # noqa: S608
        values, _ = await _fetched(connection, sampled, len(listed), _SAMPLED_ROWS)
        plan = await (
            await connection.execute(f"EXPLAIN (FORMAT JSON) SELECT FROM {place}".encode())
        ).fetchone()
        return Table(
            number=number,
            stored_name=name,
            title=name.replace("_", " "),
            row_count=int(plan[0][0]["Plan"]["Plan Rows"]) if plan else 0,
            columns=tuple(
                _column(row, [line[position] for line in values]) for position, row in enumerate(listed)
            ),
            description=str(listed[0][3])[:500],
        )

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[AsyncConnection[TupleRow]]:
        """A connection in a transaction that can only read; it ends with the block."""
        await asyncio.to_thread(importlib.import_module, "psycopg")
        import psycopg

        source = self._source
        password = source.password or await self._token()
        try:
            with call_span(DATABASE, "query"):
                async with asyncio.timeout(_TIMEOUT_S):
                    connection = await psycopg.AsyncConnection.connect(
                        host=source.host,
                        port=source.port,
                        dbname=source.database,
                        user=source.user,
                        password=password,
                        connect_timeout=_CONNECT_TIMEOUT_S,
                        application_name="groundwork",
                        client_encoding="UTF8",
                        prepare_threshold=None,
                        **_encryption(source),
                    )
                    try:
                        await connection.set_read_only(True)
                        await connection.execute(_SETTINGS.encode())
                        yield connection
                    finally:
                        await connection.close()
        except (TimeoutError, psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable):
            raise CallTimeoutError(
                "The query takes too much time.", "Filter or group more, and join fewer rows."
            ) from None
        except psycopg.errors.ConnectionTimeout:
            raise timed_out(DATABASE) from None
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidAuthorizationSpecification):
            raise refused(DATABASE) from None
        except psycopg.OperationalError:  # its text names the host and the user
            raise unreachable(DATABASE) from None
        except psycopg.Error as failed:
            raise InvalidQueryError(f"PostgreSQL refuses the query: {_said(failed)}", "Correct it.") from None


def _said(failed: psycopg.Error) -> str:
    """What is wrong: the server's words on the query itself. On values only the kind of error, since a value
    may be of a row that the view leaves out: the server may calculate before it filters."""
    said = failed.diag.message_primary
    return said[:200] if said and (failed.sqlstate or "").startswith("42") else type(failed).__name__


def _encryption(source: DatabaseSource) -> dict[str, Any]:
    """The server proves its name, wherever a password leaves this machine."""
    if source.is_local:
        return {}
    import certifi

    return {"sslmode": "verify-full", "sslrootcert": certifi.where()}


async def _fetched(
    connection: AsyncConnection[TupleRow], sql: str, column_count: int, most: int
) -> tuple[Rows, bool]:
    """The first rows. Each comes as JSON and cut off by the server: what is larger never gets here."""
    names = ", ".join(f"c{number}" for number in range(column_count))
    limited = (
        f"SELECT pg_catalog.left(pg_catalog.to_json(r)::pg_catalog.text, {_MAX_ROW_CHARS + 1}) "  # noqa: S608
        f"FROM ({sql}) AS r({names})"
    )
    rows: list[tuple[Cell, ...]] = []
    size = 0
    async with connection.cursor("query") as cursor:
        await cursor.execute(limited.encode())
        while found := await cursor.fetchmany(_ROWS_AT_ONCE):
            for (line,) in found:
                size += len(line)
                if len(line) > _MAX_ROW_CHARS:
                    raise InvalidQueryError("A row of the result is too long.", "Select fewer columns.")
                if len(rows) == most or size > MAX_RESULT_CHARS:
                    return tuple(rows), True
                rows.append(_cells(line))
    return tuple(rows), False


def _cells(line: str) -> tuple[Cell, ...]:
    values = json.loads(line, parse_int=_integer, parse_float=_number)
    return tuple(_cell(value) for value in values.values())


def _integer(digits: str) -> Cell:
    return int(digits) if len(digits) < _MAX_NUMBER_CHARS else digits


def _number(digits: str) -> Cell:
    value = float(digits)
    return value if math.isfinite(value) else digits


def _cell(value: object) -> Cell:
    if isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False)
    return value if isinstance(value, str | int | float) else None


def _column(row: TupleRow, values: Sequence[Cell]) -> Column:
    name, type_name, comment, _ = row
    kind = _KINDS.get(str(type_name), "text")
    common = Counter(
        value for value in values if isinstance(value, str) and 0 < len(value) <= _MAX_SAMPLE_CHARS
    )
    samples = tuple(value for value, _ in common.most_common(_SAMPLES)) if kind == "text" else ()
    return Column(name=name, label=name, kind=kind, samples=samples, description=str(comment)[:500])
