"""Execution of SQL queries over tables that the user may read.

A worker process runs queries over files, and validates queries that a database will run.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from shared.ingestion.fair_turns import FairTurns
from shared.ingestion.parser_process import parsers
from shared.platform.blobs import BlobStore
from shared.platform.concurrency import run_together
from shared.platform.database_sources import is_database_id
from shared.platform.errors import (
    BadDocumentError,
    CallTimeoutError,
    DependencyError,
    InvalidQueryError,
    NotFoundError,
)
from shared.tables.databases import Databases
from shared.tables.queries import (
    KILL_AFTER_S,
    MAX_FILE_BYTES,
    MAX_FILES,
    GuardJob,
    QueryFile,
    QueryJob,
    QueryReply,
    QueryResult,
)
from shared.tables.readable_tables import ReadableTable, tables_in
from shared.tables.table_cache import TableCache

_PATIENCE_S = 20.0  # maximum wait for a worker: enough for three other queries at KILL_AFTER_S
Charge = Callable[[float], Awaitable[None]]
RunQuery = Callable[[str, Sequence[ReadableTable]], Awaitable[QueryResult]]
"""Function that runs SQL over tables on behalf of one user."""
_cached = TableCache()
# Maximum number of concurrent database queries. All clients of a database share about a hundred connections.
_asking = FairTurns(4)


async def run_query(
    sql: str,
    tables: Sequence[ReadableTable],
    *,
    blobs: BlobStore,
    databases: Databases,
    instance_memory_mb: int,
    whose: str,
    charge: Charge,
) -> QueryResult:
    """Run a read-only query over the given tables of files, or of one database, and return its rows.

    Args:
        whose: id of the user.
        charge: called with the seconds for which a worker was used.

    Raises:
        InvalidQueryError: the SQL is forbidden or wrong; the hint says how to correct it.
        CallTimeoutError: the query exceeds the time or memory limit.
        NoPlaceFreeError, DependencyError: a retry may succeed.
    """
    worker = _Worker(instance_memory_mb, whose, charge)
    if any(is_database_id(table.doc_id) for table in tables_in(sql, tables)):
        return await _of_database(sql, tables_in(sql, tables), databases, worker)
    tables = [table for table in tables if not is_database_id(table.doc_id)]
    versions = {table.folder: table.size_bytes for table in tables}
    if len(versions) > MAX_FILES:
        raise InvalidQueryError(
            f"The tables come from {len(versions)} files.", f"Use at most {MAX_FILES} files."
        )
    if (size_bytes := sum(versions.values())) > MAX_FILE_BYTES:
        sizes = f"{size_bytes // 1_000_000} MB; at most {MAX_FILE_BYTES // 1_000_000} MB are read"
        raise InvalidQueryError(f"The files of the tables have {sizes}.", "Name fewer tables.")
    with TemporaryDirectory(prefix="groundwork-") as name:
        folder = Path(name)
        paths = {version: folder / f"{number}.sqlite" for number, version in enumerate(versions)}
        try:
            await run_together(*(_cached.fetch(blobs, version, path) for version, path in paths.items()))
        except NotFoundError:
            raise DependencyError("A table was replaced during the query.", "Try again.") from None
        files = tuple(
            QueryFile(
                path=path,
                tables=tuple(table.query_table for table in tables if table.folder == version),
            )
            for version, path in paths.items()
        )
        job = QueryJob(target=folder / "reply.json", sql=sql, files=files)
        return result_of(await worker.perform(job))


async def _of_database(
    sql: str, tables: Sequence[ReadableTable], databases: Databases, worker: "_Worker"
) -> QueryResult:
    doc_id, *others = dict.fromkeys(table.doc_id for table in tables)
    if others:
        raise InvalidQueryError("A query can read only one database.", "Query each database separately.")
    engine = databases.engine(doc_id)
    with TemporaryDirectory(prefix="groundwork-") as name:
        job = GuardJob(
            target=Path(name) / "reply.json",
            sql=sql,
            dialect=engine.dialect,
            schemas=tuple(databases.schema(doc_id, table.table) for table in tables),
            views=tuple(table.query_table for table in tables),
        )
        reply = await worker.perform(job)
    result = result_of(reply)
    async with _asking.turn(worker.whose):
        rows, is_cut = await engine.rows(reply.executed, len(result.columns))
    return result.model_copy(update={"rows": rows, "row_count": len(rows), "truncated": is_cut})


@dataclass(frozen=True)
class _Worker:
    """Runner of jobs in worker processes. It charges the elapsed time to one user."""

    instance_memory_mb: int
    whose: str
    charge: Charge

    async def perform(self, job: QueryJob | GuardJob) -> QueryReply:
        """Run a job in a worker process and charge the elapsed time, even if the job fails.

        Raises:
            CallTimeoutError: the process was killed or died.
        """
        pool = parsers(self.instance_memory_mb).queries
        async with pool.turn(self.whose, _PATIENCE_S) as run:
            began = time.monotonic()
            try:
                await run(job, KILL_AFTER_S)
            except BadDocumentError:
                raise CallTimeoutError(
                    "The query takes too much time or memory.", "Simplify the query."
                ) from None
            finally:
                await self.charge(time.monotonic() - began)
        return QueryReply.model_validate_json(job.target.read_bytes())


def result_of(reply: QueryReply) -> QueryResult:
    """Return the result in a worker's reply, or raise the error that it reports.

    Raises:
        InvalidQueryError, CallTimeoutError: the query was refused.
    """
    if reply.result is not None:
        return reply.result
    refusal = reply.refusal
    reason, hint = (
        (refusal.reason, refusal.hint) if refusal else ("The query returned nothing.", "Try again.")
    )
    if refusal is not None and refusal.code == InvalidQueryError.code:
        raise InvalidQueryError(reason, hint)
    raise CallTimeoutError(reason, hint)
