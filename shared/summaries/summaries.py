"""The life cycle of a summary for its callers: start, view, cancel, delete, purge."""

import re
import uuid
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import get_args

from shared.access.limits import hold, release, slot_of_summary
from shared.access.models import UserContext
from shared.access.owner_ids import owned_id
from shared.access.user_limit_store import UserLimitStore
from shared.platform.blobs import BlobStore
from shared.platform.concurrency import run_together
from shared.platform.errors import ConflictError, NotFoundError, RunCancelledError
from shared.platform.names import WORK
from shared.platform.settings import Settings
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.secured_index import SecuredIndex
from shared.runs.models import ID_PATTERN
from shared.summaries.models import (
    ChildView,
    DocumentOutcome,
    SummaryEnd,
    SummaryOrder,
    SummaryRequest,
    SummaryStart,
    SummaryView,
)
from shared.summaries.own_list import add_to_list, all_entries, remove_from_list
from shared.summaries.result import without_documents
from shared.summaries.services import SummaryServices
from shared.summaries.store import FOLDER, SummaryStore

Forget = Callable[[str], Awaitable[None]]
"""Ends an orchestration and removes its history."""

_RESERVE = 0.25  # maximum share of the total time for each of the two reduces (unmeasured)


async def begin_summary(
    order: SummaryOrder, user: UserContext, services: SummaryServices, summary_id: str | None = None
) -> SummaryRequest:
    """Store the request. The caller then starts the orchestration unless it exists.

    Args:
        summary_id: of a summary that may exist already; None = a new one.
    """
    order = order.model_copy(update={"doc_ids": tuple(dict.fromkeys(order.doc_ids))})
    request = _request(order, user, services, summary_id)
    stored = await SummaryStore(services.blobs, request.summary_id).keep_request(request)
    await add_to_list(stored, services.blobs)
    return stored


async def renew_summary(
    request: SummaryRequest, user: UserContext, services: SummaryServices
) -> SummaryRequest:
    """Reset the deadlines of a summary that was stored but never started, and return the stored request.

    Its idempotency key may be repeated a day later, when the deadline has passed, the slot is taken by
    another run, and the user's permissions may have changed.
    """
    renewed = _request(request.order, user, services, request.summary_id)
    await SummaryStore(services.blobs, request.summary_id).put_request(renewed)
    await add_to_list(renewed, services.blobs)
    await remove_from_list(request, services.blobs)
    await hold(
        user.user_id,
        slot_of_summary(request.summary_id, services.settings),
        services.settings,
        services.user_limits,
    )
    return renewed


def start_of(request: SummaryRequest, settings: Settings) -> SummaryStart:
    """Return the input of the orchestration."""
    return SummaryStart(
        summary_id=request.summary_id,
        document_count=len(request.order.doc_ids),
        at_once=settings.summaries.documents_at_once,
        map_until=request.map_until,
        children_until=request.children_until,
    )


async def owned_summary(summary_id: str, user: UserContext, blobs: BlobStore) -> SummaryRequest:
    """Return the request of a summary.

    Raises:
        NotFoundError: it is missing or belongs to somebody else, indistinguishably.
    """
    missing = NotFoundError(
        f"There is no summary {summary_id[:64]!r}.", "Check the id; only a summary's owner can see it."
    )
    if not re.fullmatch(ID_PATTERN, summary_id):
        raise missing
    try:
        request = await SummaryStore(blobs, summary_id).request()
    except NotFoundError:
        raise missing from None
    if request.user.user_id != user.user_id:
        raise missing
    return request


async def has_ended(summary_id: str, blobs: BlobStore) -> bool:
    """Return whether the summary has ended."""
    return await SummaryStore(blobs, summary_id).end() is not None


async def view_summary(
    request: SummaryRequest, services: SummaryServices, reader: UserContext
) -> SummaryView:
    """Return the summary's current state, without documents that the reader can no longer read."""
    store = SummaryStore(services.blobs, request.summary_id)
    search = DocumentSearch(SecuredIndex(services.documents_index, reader, services.documents))
    end, children, readable = await run_together(
        store.end(), _children(request, store), search.get_many(request.order.doc_ids)
    )
    result = end.result if end else None
    return SummaryView(
        summary_id=request.summary_id,
        status=end.status if end else "running",
        focus=request.order.focus,
        language=request.order.language,
        created_at=request.created_at,
        finished_at=end.finished_at if end else None,
        progress=1.0 if end else _progress(children),
        children=tuple(
            child if child.doc_id in readable else ChildView(doc_id=child.doc_id, status="not_found")
            for child in children
        ),
        result=without_documents(result, frozenset(request.order.doc_ids) - readable.keys())
        if result
        else None,
        error=end.error if end else None,
        error_type=end.error_type if end else None,
        status_url=f"/api/summaries/{request.summary_id}",
    )


async def cancel_summary(request: SummaryRequest, services: SummaryServices) -> None:
    """End the summary without a result. Idempotent. Raise ConflictError if it ended differently."""
    end = await _close(request, "cancelled", "The summary was cancelled.", RunCancelledError.code, services)
    if end.status != "cancelled":
        raise ConflictError("The summary has already ended.", "See its result.")


async def close_dead_summary(request: SummaryRequest, services: SummaryServices) -> None:
    """End a summary whose orchestration ended without storing an end."""
    await _close(request, "failed", "The summary was stopped before it finished.", "InternalError", services)


async def delete_summary(
    request: SummaryRequest, settings: Settings, blobs: BlobStore, user_limits: UserLimitStore, forget: Forget
) -> None:
    """Delete a summary and everything derived from it."""
    await forget_instances(request, forget)
    await remove_from_list(request, blobs)
    await SummaryStore(blobs, request.summary_id).delete()
    await release(request.user.user_id, request.summary_id, settings, user_limits)


async def forget_instances(request: SummaryRequest, forget: Forget) -> None:
    """Terminate the parent first, so that it starts no more children, then the children."""
    await forget(request.summary_id)
    await run_together(
        *(forget(f"{request.summary_id}:d{index}") for index in range(len(request.order.doc_ids)))
    )


async def purge_old_summaries(
    now: datetime, settings: Settings, blobs: BlobStore, user_limits: UserLimitStore, forget: Forget
) -> int:
    """Delete summaries older than RUN_RETENTION_DAYS and leftovers of deleted ones. Return the number of
    summaries.
    """
    limit = now - timedelta(days=settings.conversations.run_retention_days)
    purged = 0
    entries = await all_entries(blobs)  # read first, because a summary's entry is written last
    names = [blob.name async for blob in blobs.list_blobs(WORK, FOLDER)]
    requested = {name.split("/")[1] for name in names if name.endswith("/request.json")}
    for name, summary_id in entries.items():
        if summary_id not in requested:
            await blobs.delete(WORK, name)
    for summary_id in dict.fromkeys(name.removeprefix(FOLDER).partition("/")[0] for name in names):
        store = SummaryStore(blobs, summary_id)
        try:
            request = await store.request()
        except NotFoundError:
            await store.delete()  # the request is written first and deleted first, so the rest is orphaned
            continue
        if request.created_at < limit:
            await delete_summary(request, settings, blobs, user_limits, forget)
            purged += 1
    return purged


def _request(
    order: SummaryOrder, user: UserContext, services: SummaryServices, summary_id: str | None
) -> SummaryRequest:
    settings = services.settings
    now = datetime.now(UTC)
    deadline = now + timedelta(seconds=settings.summaries.timeout_s)
    reserve = timedelta(
        seconds=min(1.5 * settings.summaries.call_timeout_s, _RESERVE * settings.summaries.timeout_s)
    )
    return SummaryRequest(
        summary_id=summary_id or owned_id(user.user_id, settings.identity.owner_id_key, uuid.uuid4().hex),
        user=user,
        order=order,
        created_at=now,
        map_until=deadline - 2 * reserve,
        children_until=deadline - reserve,
        deadline=deadline,
    )


async def _children(request: SummaryRequest, store: SummaryStore) -> Sequence[ChildView]:
    names = await store.names()
    return await run_together(
        *(_child(doc_id, index, names, store) for index, doc_id in enumerate(request.order.doc_ids))
    )


async def _child(doc_id: str, index: int, names: frozenset[str], store: SummaryStore) -> ChildView:
    folder = f"d{index:02d}/"
    # Blobs may have been deleted since their names were listed.
    plan = await store.plan(index) if f"{folder}plan" in names else None
    result = await store.result(index) if f"{folder}result" in names else None
    if result is not None and result.status == "not_found":
        return ChildView(doc_id=doc_id, status="not_found")
    return ChildView(
        doc_id=doc_id,
        filename=plan.filename if plan else "",
        status=result.status if result else "running" if plan else "waiting",
        windows=len(plan.windows) if plan else 0,
        windows_done=sum(name.startswith(f"{folder}w") for name in names),
    )


def _progress(children: Sequence[ChildView]) -> float:
    """Return the mean over the documents, so that a long one doesn't hide the others."""
    shares = [
        child.windows_done / child.windows
        if child.windows
        else float(child.status in get_args(DocumentOutcome))
        for child in children
    ]
    return round(sum(shares) / len(shares), 3)


async def _close(
    request: SummaryRequest, status: str, error: str, error_type: str, services: SummaryServices
) -> SummaryEnd:
    end = SummaryEnd.model_validate(
        {"status": status, "finished_at": datetime.now(UTC), "error": error, "error_type": error_type}
    )
    stored = await SummaryStore(services.blobs, request.summary_id).put_end(end)
    await release(request.user.user_id, request.summary_id, services.settings, services.user_limits)
    return stored
