"""Returns the sources behind citations, if the user's current permissions allow it.

Every request checks the index and the document's state, so revoked permissions apply at once. Citations of
other users' runs return nothing, and the response doesn't reveal the reason.
"""

import re
from collections.abc import Sequence

from shared.access.models import UserContext
from shared.answering.services import AnsweringServices
from shared.answering.shown_answer import shown_citations
from shared.documents.figures import readable_documents
from shared.evidence.models import Cell, Citation
from shared.platform.blobs import BlobStore
from shared.platform.errors import GroundworkError, NotFoundError
from shared.platform.telemetry import get_logger
from shared.retrieval.block_reading import BlockLookup
from shared.retrieval.secured_index import SecuredIndex
from shared.runs.events import events_of
from shared.runs.journal import committed_answer
from shared.runs.models import ID_PATTERN, RunRecord
from shared.runs.run_log import RunLog
from shared.tables.models import RAW, ROW
from shared.tools.registry import Binding, run_query_of


async def own_citation(
    run_id: str, n: int, doc_id: str, user: UserContext, services: AnsweringServices
) -> Citation | None:
    """Return citation `n` of the user's own run, or None if it doesn't exist or the user may not see it."""
    if not n or not re.fullmatch(ID_PATTERN, run_id):
        return None
    record = await services.runs.get(run_id)
    if record is None or record.owner_id != user.user_id:
        return None
    try:
        citations = await _citations(record, services.blobs, services.run_log)
    except NotFoundError:  # the thread and its answers were deleted
        return None
    matches = (item for item in citations if item.n == n and item.doc_id == doc_id and item.quote)
    citation = next(matches, None)
    return citation if citation and await _may_see([citation], user, services) else None


async def check_readable(record: RunRecord, user: UserContext, services: AnsweringServices) -> None:
    """Raise `NotFoundError` unless the user may still read every table behind the run's citations.

    Raises:
        NotFoundError: a table is no longer readable; the message claims that the events have expired.
    """
    citations = shown_citations(events_of(await services.run_log.read(record.run_id)))
    if not await _may_see(citations, user, services):
        raise NotFoundError("The events of this run are no longer kept.", "Ask again.")


async def _may_see(citations: Sequence[Citation], user: UserContext, services: AnsweringServices) -> bool:
    """Return whether the user may read all documents with tables that the citations were computed from.

    The view itself checks access to other kinds of citations.
    """
    doc_ids = {doc_id for citation in citations if citation.kind == "table" for doc_id in citation.doc_ids}
    return not doc_ids or doc_ids <= await readable_documents(doc_ids, user, services)


async def block_text(block_id: str, user: UserContext, services: AnsweringServices) -> str:
    """Return the text or image caption of a block, or "" if the block doesn't exist or the user can't read
    it.
    """
    index = SecuredIndex(services.content_index, user, services.documents)
    blocks = await BlockLookup(index).get_many([block_id])
    return (blocks[0].content or blocks[0].image_caption or "") if blocks else ""


async def source_rows(
    citation: Citation, user: UserContext, services: AnsweringServices
) -> tuple[tuple[str, ...], ...]:
    """Return the table rows from which a cited value was calculated, each without its empty cells.

    Returns:
        An empty tuple if the citation has no source rows or the document has been replaced since.
    """
    if not citation.source_rows or not citation.table_id:
        return ()
    binding = Binding(services, user)
    try:
        (table,) = await binding.tables.get_many([citation.table_id])
        if table.content_hash != citation.content_hash:
            return ()
        column_names = (
            f"{column.name}{RAW}" if column.has_raw else column.name for column in table.table.columns
        )
        columns = ", ".join(f'"{name}"' for name in column_names)
        lines = ", ".join(map(str, citation.source_rows))
        sql = f'SELECT {columns} FROM "{table.name}" WHERE {ROW} IN ({lines})'  # noqa: S608 - of the catalog
        result = await run_query_of(binding)(sql, [table])
    except GroundworkError as failed:
        get_logger().warning("table.rows_failed", doc_id=citation.doc_id, error_type=failed.code)
        return ()
    return tuple(tuple(_cell_text(cell) for cell in row if cell is not None) for row in result.rows)


def _cell_text(cell: Cell) -> str:
    return f"{cell:.15g}" if isinstance(cell, float) else str(cell)


async def _citations(record: RunRecord, blobs: BlobStore, run_log: RunLog) -> list[Citation]:
    """Return the citations of a run's answer, or those streamed so far if the run isn't completed."""
    if record.status == "completed":
        return list((await committed_answer(record.run_id, blobs, run_log)).citations)
    return shown_citations(events_of(await run_log.read(record.run_id)))
