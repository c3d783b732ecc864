"""Makes good what events missed: starts the ingestion of every document that does not agree with its file.

Bounded per run; what is left, the next run finds again. A document that is being worked on is left alone.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from shared.core.document_audit import SeenDocument, compare, is_stuck
from shared.errors import GroundworkError
from shared.ingestion import index_rows
from shared.ingestion.accepting import pipeline
from shared.ingestion.changing import try_again
from shared.ingestion.claims import now
from shared.ingestion.inventory import take_inventory
from shared.ingestion.prepare import ensure_ready
from shared.ingestion.quarantine import is_quarantined
from shared.models.audit import ReconcileReport
from shared.services import Services
from shared.telemetry import get_logger

MAX_STARTS = 100  # a run every five minutes: 1,200 documents an hour, which leaves the model room for answers
SETTLED = timedelta(minutes=2)  # the search service shows what was written a moment ago with some delay
RETRY_AFTER = timedelta(minutes=15)  # a failed one; by then a service that was down may be back

StartIngestion = Callable[[str, str], Awaitable[object]]
"""Takes a blob's name and the occasion; the same pair twice is one instance while it is at work."""


async def reconcile(services: Services, start: StartIngestion) -> ReconcileReport:
    """Compare all documents with their files, states and rows, and start what is missing."""
    await ensure_ready(services)
    inventory = await take_inventory(services)
    moment = now()
    due = [(seen, kind) for seen in inventory.seen.values() if (kind := _due(seen, services, moment))]
    started: Counter[str] = Counter()
    for seen, kind in due[:MAX_STARTS]:
        if await _start(seen, kind, services, start):
            started[kind] += 1
    orphans = list(inventory.orphaned)[:MAX_STARTS]
    removed = sum([await _remove_orphan(doc_id, services) for doc_id in orphans])
    left = len(due) - started.total() + len(inventory.orphaned) - removed
    get_logger().info("documents.reconciled", started=dict(started), removed=removed, left=left)
    return ReconcileReport(started=dict(started), removed_orphans=removed, left=left)


def _due(seen: SeenDocument, services: Services, moment: datetime) -> str | None:
    """Why its ingestion is to be started; None if it is not."""
    difference = compare(seen, pipeline(services.settings))
    state = seen.state
    if difference is None:
        return "failed" if state is not None and _deserves_another_try(seen, moment) else None
    if state is None:
        return difference.kind
    if difference.kind == "in_work":
        return "stuck" if is_stuck(state, moment) and moment - state.updated_at > SETTLED else None
    if difference.kind in ("row_missing", "row_differs") and moment - state.updated_at < SETTLED:
        return None
    return difference.kind


def _deserves_another_try(seen: SeenDocument, moment: datetime) -> bool:
    state = seen.state
    if state is None or state.status != "failed" or is_quarantined(state):
        return False
    return moment - state.updated_at > RETRY_AFTER


async def _start(seen: SeenDocument, kind: str, services: Services, start: StartIngestion) -> bool:
    revision = seen.state.revision if seen.state is not None else seen.etag
    try:
        if kind in ("row_missing", "row_differs") and seen.state is not None:
            await try_again(seen.state, services)  # else its state would say that there is nothing to do
        await start(seen.name, f"{seen.name} reconciled {revision}")
    except GroundworkError as failed:
        get_logger().warning("documents.not_reconciled", error_type=failed.code)
        return False
    return True


async def _remove_orphan(doc_id: str, services: Services) -> bool:
    """Remove rows that nothing stands behind; False if something does by now."""
    if await services.documents.get(doc_id) is not None:
        return False
    await services.documents_index.delete([doc_id])
    while keys := await index_rows.block_ids(services.content_index, doc_id):
        await services.content_index.delete(keys)
    return True
