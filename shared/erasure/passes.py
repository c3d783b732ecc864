"""Erases a person in passes, 15 minutes apart, until a pass finds nothing new.

A step that runs while the first pass erases may write once more, and a person whose token is still valid may
ask once more: a later pass finds that. Findings are stored and counted before anything is deleted, so a pass
that breaks off anywhere is simply repeated.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from shared.access.models import UserContext
from shared.conversations.memory import forget_all
from shared.conversations.models import Thread
from shared.documents.state import DocumentState
from shared.erasure.inventory import ErasureFindings, find, look_on
from shared.erasure.models import ErasedCounts, ErasureRecord, RunPlace
from shared.erasure.policy import MAX_PASSES, added
from shared.erasure.requests import find_record, keep_record, send_on
from shared.erasure.services import ErasureServices
from shared.erasure.threads import LAST_PASS_AFTER_S, erase_run, erase_turns
from shared.platform.blobs import BlobStore
from shared.platform.concurrency import run_together
from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.instances import StopRun
from shared.platform.names import DOCUMENTS, WORK
from shared.platform.telemetry import get_logger, pseudonym
from shared.quality.recording import key_of
from shared.summaries.store import SummaryStore
from shared.summaries.summaries import delete_summary

One = TypeVar("One")
Made = TypeVar("Made")

_WORKING_S = 300.0  # of one message; the platform ends a function after 600 s, and its whole worker with it
_AT_ONCE = 8  # runs that are erased at the same time (unmeasured; each takes some ten calls)
_EARLY_S = 5.0  # by which queues and clocks may differ


@dataclass(frozen=True)
class EraseDependencies:
    """How erasing stops orchestrations and deletes documents, and how much time it has.

    Attributes:
        stop: ends an orchestration.
        forget: ends it and removes its history.
        delete_document: begins to delete a document and everything made from it.
    """

    stop: StopRun
    forget: StopRun
    delete_document: Callable[[DocumentState], Awaitable[None]]
    until: float = field(default_factory=lambda: time.monotonic() + _WORKING_S)

    @property
    def is_late(self) -> bool:
        """Whether the next message should continue."""
        return time.monotonic() > self.until

    def require_time(self) -> None:
        """Raise if it is late."""
        if self.is_late:
            raise _TimeIsUpError


class _TimeIsUpError(Exception):
    """The pass continues with the next message."""


async def advance(erasure_id: str, services: ErasureServices, deps: EraseDependencies) -> None:
    """Make the pass that is due; early, late and duplicate messages change nothing."""
    record = await find_record(services.blobs, erasure_id)
    if record is None or record.status != "running":
        return
    if record.not_before > datetime.now(UTC) + timedelta(seconds=_EARLY_S):
        return
    try:
        await _advance(record, services, deps)
    except _TimeIsUpError:
        get_logger().info("user_erasure.goes_on", subject=pseudonym(record.user_id))
        await send_on(record, services.queues)


async def _advance(record: ErasureRecord, services: ErasureServices, deps: EraseDependencies) -> None:
    if record.is_finishing:
        await _finish(record, services, deps)
        return
    async for looked in look_on(record, services.blobs):
        record = looked
        if deps.is_late:
            await keep_record(services.blobs, record)
            raise _TimeIsUpError
    found = await find(record, services)
    record = await _noted(record, found, services.blobs)
    if found.is_empty and record.passes:
        # Noted first: a finish that runs out of time goes on, and is no pass that has found something.
        record = await _keep(record, services.blobs, is_finishing=True)
        await _finish(record, services, deps)
        return
    if record.passes == MAX_PASSES:
        await _end(record, "failed", services.blobs)
        return
    record = await _erase(found, record, services, deps)
    counts = added(record.counts, await _forget_rows(record.user_id, services))
    now = datetime.now(UTC)
    due = now + timedelta(seconds=LAST_PASS_AFTER_S)
    made = {"passes": record.passes + 1, "counts": counts, "not_before": due}
    record = await _keep(record, services.blobs, **made, looked_to="", working=())
    await send_on(record, services.queues)


async def _noted(record: ErasureRecord, found: ErasureFindings, blobs: BlobStore) -> ErasureRecord:
    """Store what this pass found, before anything is deleted; a repeated pass counts nothing."""
    is_repeated = record.counted > record.passes
    runs = {one.run_id: one for one in (*record.runs, *found.runs)}
    noted = {
        "counts": record.counts if is_repeated else added(record.counts, found.counts(record.deleting)),
        "counted": record.passes + 1,
        "kept_documents": found.kept,
        "threads": _merged(record.threads, [one.thread_id for one in found.threads]),
        "runs": tuple(runs.values()),
        "summaries": _merged(record.summaries, [one.summary_id for one in found.summaries]),
        "instances": _merged(record.instances, found.instances),
        "deleting": _merged(record.deleting, found.deleting),
    }
    return await keep_record(blobs, record.model_copy(update=noted))


def _merged(known: Sequence[str], more: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*known, *more)))


async def _erase(
    found: ErasureFindings, record: ErasureRecord, services: ErasureServices, deps: EraseDependencies
) -> ErasureRecord:
    """Delete what was found; the record, with what can be counted only while it is deleted."""
    # Threads first: no question is added to one that is being deleted.
    for thread in found.threads:
        deps.require_time()
        await _erase_thread(thread, services, deps)
    for start in range(0, len(found.runs), _AT_ONCE):
        deps.require_time()
        first = await _gathered(found.runs[start:], lambda one: _erase_run(one, services, deps.stop))
        # Stored at once: a pass that continues does not find them again.
        counts = added(record.counts, ErasedCounts(quality_records=sum(first)))
        record = await _keep(record, services.blobs, counts=counts)
    for summary in found.summaries:
        deps.require_time()
        await delete_summary(summary, services.settings, services.blobs, services.user_limits, deps.forget)
    for name in (*found.messages, *found.sessions):
        await services.blobs.delete(WORK, name)
    for instance_id in found.instances:
        deps.require_time()
        await deps.forget(instance_id)
    await forget_all(UserContext(user_id=record.user_id), services.memory_index, services.threads)
    for state in found.documents:
        deps.require_time()
        await deps.delete_document(state)
    for name in found.sidecars:
        await services.blobs.delete(DOCUMENTS, name)
    return record


async def _erase_thread(thread: Thread, services: ErasureServices, deps: EraseDependencies) -> None:
    """Hide the thread and erase what its turns made; its emptied rows are removed at the end."""
    current: Thread | None = thread
    while current is not None and not current.is_deleted:
        try:
            deleted = current.model_copy(update={"is_deleted": True, "title": "", "summary": ""})
            current = await services.threads.replace(current, deleted)
        except (ConflictError, NotFoundError):
            current = await services.threads.get(thread.owner_id, thread.thread_id)
    if current is not None:
        through, may_go_on = current.turn_count, deps.require_time
        await erase_turns(current, through, services, deps.stop, is_last=False, require_time=may_go_on)


async def _erase_run(
    one: RunPlace, services: ErasureServices, stop: StopRun, *, is_last: bool = False
) -> int:
    """Erase a run; how many of its quality records there were, which name no run."""
    await erase_run(one.run_id, services, stop, is_last=is_last)
    return await services.quality.forget(one.at, key_of(one.run_id))


async def _finish(record: ErasureRecord, services: ErasureServices, deps: EraseDependencies) -> None:
    """Nothing new was found: remove rows, histories, and what steps wrote in between.

    Finished items are removed from the record in batches, so that the next message continues after them.
    """
    async for thread in services.threads.of_owner(record.user_id):
        through, may_go_on = thread.turn_count, deps.require_time
        await erase_turns(thread, through, services, deps.forget, is_last=True, require_time=may_go_on)
    while record.runs:
        deps.require_time()
        last = await _gathered(record.runs, lambda one: _erase_run(one, services, deps.forget, is_last=True))
        counts = added(record.counts, ErasedCounts(quality_records=sum(last)))
        record = await _keep(record, services.blobs, runs=record.runs[_AT_ONCE:], counts=counts)
    while record.summaries:
        deps.require_time()
        await _gathered(record.summaries, lambda one: SummaryStore(services.blobs, one).delete())
        record = await _keep(record, services.blobs, summaries=record.summaries[_AT_ONCE:])
    while record.instances:
        deps.require_time()
        await _gathered(record.instances, deps.forget)
        record = await _keep(record, services.blobs, instances=record.instances[_AT_ONCE:])
    counts = added(record.counts, await _forget_rows(record.user_id, services))
    await services.threads.remove_owner(record.user_id)
    made = {"counts": counts, "passes": record.passes + 1}
    await _end(record.model_copy(update=made), "completed", services.blobs)


async def _gathered(some: Sequence[One], act: Callable[[One], Awaitable[Made]]) -> list[Made]:
    """Process the first batch concurrently."""
    return list(await run_together(*(act(one) for one in some[:_AT_ONCE])))


async def _keep(record: ErasureRecord, blobs: BlobStore, **made: object) -> ErasureRecord:
    return await keep_record(blobs, record.model_copy(update=made))


async def _end(record: ErasureRecord, status: str, blobs: BlobStore) -> None:
    """Keep only the report: the person's id and everything that leads to their data is removed."""
    subject = pseudonym(record.user_id)
    ended = {"status": status, "finished_at": datetime.now(UTC), "user_id": ""}
    lists = ("threads", "runs", "summaries", "instances", "deleting", "working")
    emptied: dict[str, object] = dict.fromkeys(lists, ())
    await keep_record(blobs, record.model_copy(update={**ended, **emptied, "looked_to": ""}))
    counts = record.counts.model_dump()
    get_logger().info(
        "user_erasure.ended", subject=subject, status=status, documents=record.documents, erased=counts
    )


async def _forget_rows(user_id: str, services: ErasureServices) -> ErasedCounts:
    """Remove the rows that are found only by the person's id."""
    conversations = 0 if services.bot_turns is None else await services.bot_turns.forget(user_id)
    return ErasedCounts(
        conversations=conversations,
        idempotency_keys=await services.idempotency.forget(user_id),
        limits=await services.user_limits.forget(user_id),
        queue_messages=await services.poison.remove_of(user_id),
    )
