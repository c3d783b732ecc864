"""Operations on summaries: begin, view and list them. A summary is a run without a thread.

It is cancelled, revived, purged and erased as a run: see `run_end`, `revival`, `retention` and `erasure`.
"""

import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import get_args

from shared.access.limits import hold, slot_of_summary
from shared.access.models import UserContext
from shared.access.owner_ids import DATED_ID, dated_id, owner_prefix
from shared.answering.children import DOCUMENTS
from shared.answering.runs import begin_journal
from shared.answering.services import AnsweringServices
from shared.answering.steps import StepResult
from shared.answering.subagent_models import SubagentPlace
from shared.answering.summary_document import order_of
from shared.answering.summary_merge import SUMMARY
from shared.answering.summary_models import (
    ChildView,
    DocumentEnded,
    DocumentOpened,
    DocumentOutcome,
    DocumentPlaces,
    SummaryItem,
    SummaryList,
    SummaryOutcome,
    SummaryView,
    WindowRead,
)
from shared.answering.summary_result import without_documents
from shared.platform.concurrency import run_together
from shared.platform.errors import CallerError, ConflictError, NotFoundError
from shared.platform.telemetry import note_fields
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.secured_index import SecuredIndex
from shared.runs.events import DoneLine
from shared.runs.journal import Journal, current_record, read_journal
from shared.runs.models import RunRecord, RunRequest, SummaryOrder
from shared.runs.run_files import RunFiles
from shared.runs.run_state import fold


def new_summary_id(user: UserContext, services: AnsweringServices) -> str:
    """Return an id for a new summary. In the order of their ids, newer summaries come first."""
    key = services.settings.identity.owner_id_key
    return dated_id(user.user_id, key, datetime.now(UTC), secrets.token_hex(4))


async def begin_summary(
    order: SummaryOrder,
    user: UserContext,
    services: AnsweringServices,
    summary_id: str | None = None,
    origin: str = "",
) -> RunRecord:
    """Store the request, the first event and the record of a summary. The caller then starts the
    orchestration unless it exists.

    Args:
        summary_id: of a summary that may exist already; None = a new one.
        origin: the client's IP address, for the audit trail.
    """
    order = order.model_copy(update={"doc_ids": tuple(dict.fromkeys(order.doc_ids))})
    request = RunRequest(
        run_id=summary_id or new_summary_id(user, services),
        thread_id="",
        user=user,
        question=order.focus,
        doc_ids=order.doc_ids,
        created_at=datetime.now(UTC),
        origin=origin,
        summary=order,
    )
    note_fields(run_id=request.run_id)
    request = await RunFiles(services.blobs, request.run_id).keep_request(request)
    await begin_journal(request, services)
    record = RunRecord(
        run_id=request.run_id,
        thread_id="",
        owner_id=user.user_id,
        question=request.question,
        created_at=request.created_at,
        profile="document_summary",
    )
    try:
        await services.runs.create(record)
    except ConflictError:  # an earlier or concurrent attempt at this request created the record
        return await services.runs.get(request.run_id) or record
    return record


async def renew_summary(record: RunRecord, user: UserContext, services: AnsweringServices) -> None:
    """Restart the time limit of a stored summary that never started, and give it the user's current
    permissions.

    Its idempotency key may be repeated a day later, when its time is over and its slot is taken.
    """
    files = RunFiles(services.blobs, record.run_id)
    request = (await files.request()).with_rights_of(user)
    renewed = request.model_copy(update={"created_at": datetime.now(UTC)})
    await files.put_request(renewed)
    await services.runs.replace(record.model_copy(update={"created_at": renewed.created_at}))
    slot = slot_of_summary(record.run_id, services.settings)
    await hold(user.user_id, slot, services.settings, services.user_limits)


async def view_summary(record: RunRecord, services: AnsweringServices, reader: UserContext) -> SummaryView:
    """Return the current view of a summary, without the contents of documents that the reader can no longer
    read.

    Raises:
        NotFoundError: the summary is being deleted.
    """
    journal = await read_journal(services.run_log, services.blobs, record.run_id)
    order = order_of(await journal.files.request())
    state = fold(journal.events)
    record = state.update(record)
    index = SecuredIndex(services.documents_index, reader, services.documents)
    readable = await DocumentSearch(index).get_many(order.doc_ids)
    children = await _child_views(order, journal)
    lines = journal.value_lines(SUMMARY) if record.status in ("completed", "failed") else []
    outcome = await journal.value(lines[-1], SummaryOutcome) if lines else None
    closed = frozenset(order.doc_ids) - readable.keys()
    return SummaryView.model_validate(
        {
            "summary_id": record.run_id,
            "status": record.status,
            "focus": order.focus,
            "language": order.language,
            "created_at": record.created_at,
            "finished_at": record.finished_at,
            "progress": 1.0 if state.has_ended else _progress(children),
            "children": tuple(
                ChildView(doc_id=child.doc_id, status="not_found") if child.doc_id in closed else child
                for child in children
            ),
            "result": without_documents(outcome.result, closed) if outcome else None,
            "error": record.error,
            "error_type": record.error_type,
            "status_url": _url(record),
        }
    )


async def list_summaries(
    user: UserContext, services: AnsweringServices, limit: int, cursor: str = ""
) -> SummaryList:
    """Return a page of the user's summaries, newest first.

    Args:
        cursor: id of the last summary of the previous page.

    Raises:
        CallerError: the cursor is invalid.
    """
    prefix = owner_prefix(user.user_id, services.settings.identity.owner_id_key)
    if cursor and not (cursor.startswith(prefix) and re.fullmatch(DATED_ID, cursor)):
        raise CallerError("The cursor is invalid.", "Send the cursor of the previous page unchanged.")
    records: list[RunRecord] = []
    async for record in services.runs.dated(user.user_id, prefix, cursor):
        records.append(record)
        if len(records) > limit:
            break
    items = await run_together(*(_list_item(record, services) for record in records[:limit]))
    summaries = tuple(item for item in items if item is not None)
    following = records[limit - 1].run_id if len(records) > limit else None
    return SummaryList(summaries=summaries, count=len(summaries), cursor=following)


async def _list_item(record: RunRecord, services: AnsweringServices) -> SummaryItem | None:
    try:
        request = await RunFiles(services.blobs, record.run_id).request()
    except NotFoundError:  # the summary is being deleted
        return None
    record = await current_record(record, services.run_log)
    order = order_of(request)
    return SummaryItem.model_validate(
        {
            "summary_id": record.run_id,
            "status": record.status,
            "focus": order.focus,
            "language": order.language,
            "document_count": len(order.doc_ids),
            "created_at": record.created_at,
            "finished_at": record.finished_at,
            "error_type": record.error_type,
            "status_url": _url(record),
        }
    )


async def _child_views(order: SummaryOrder, journal: Journal) -> Sequence[ChildView]:
    lines = journal.value_lines(DOCUMENTS)
    if not lines:
        return [ChildView(doc_id=doc_id, status="waiting") for doc_id in order.doc_ids]
    places = (await journal.value(lines[0], DocumentPlaces)).children
    return [_child_view(doc_id, place, journal) for doc_id, place in zip(order.doc_ids, places, strict=True)]


def _child_view(doc_id: str, place: SubagentPlace, journal: Journal) -> ChildView:
    """Return the progress of one document, derived from the completed turns of its child."""
    lines = journal.lines_of_child(place.step, place.index)
    done = [StepResult.from_payload(line.result).observation for line in lines if isinstance(line, DoneLine)]
    opened = next((one for one in done if isinstance(one, DocumentOpened)), None)
    ended = next((one for one in done if isinstance(one, DocumentEnded)), None)
    if ended is not None and ended.status == "not_found":
        return ChildView(doc_id=doc_id, status="not_found")
    return ChildView(
        doc_id=doc_id,
        filename=opened.filename if opened else "",
        status=ended.status if ended else "running" if opened else "waiting",
        windows=opened.window_count if opened else 0,
        windows_done=sum(isinstance(one, WindowRead) for one in done),
    )


def _progress(children: Sequence[ChildView]) -> float:
    """Return the mean progress of the documents, from 0 to 1. Each counts equally, so a long document doesn't
    hide the progress of the others.
    """
    shares = [
        child.windows_done / child.windows
        if child.windows
        else float(child.status in get_args(DocumentOutcome))
        for child in children
    ]
    return round(sum(shares) / len(shares), 3)


def _url(record: RunRecord) -> str:
    return f"/api/summaries/{record.run_id}"
