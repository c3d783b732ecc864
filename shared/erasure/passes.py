"""Erases a person in passes, 15 minutes apart, until a pass finds nothing new.

Each store is searched for the person's id, never by way of another record. So a pass also finds what a crash,
a bug or an earlier deletion left without its thread or record. Ids of runs, threads and summaries begin with
a digest of their owner (`owner_ids`), so nobody else's runs and summaries are listed or read.

A step that runs while the first pass erases may write again, and a person whose token is still valid may
ask again: a later pass finds that. Findings are stored and counted before anything is deleted, so a pass
that breaks off anywhere is simply repeated.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from shared.access.limits import release
from shared.access.models import UserContext
from shared.access.owner_ids import owner_prefix
from shared.answering.agent import WaitingRun
from shared.conversations.memory import Memories, forget_all
from shared.conversations.models import Thread
from shared.documents.ids import document_of_blob, is_sidecar
from shared.documents.state import DocumentState
from shared.erasure.findings import ErasureFindings
from shared.erasure.folders import folders_of, instances_of, read_all
from shared.erasure.models import ErasedCounts, ErasureRecord, RunPlace
from shared.erasure.policy import MAX_PASSES, added, own_documents, relation_to
from shared.erasure.requests import find_record, keep_record, send_on
from shared.erasure.services import ErasureServices
from shared.erasure.threads import LAST_PASS_AFTER_S, changed, erase_run, erase_turns
from shared.ingestion.uploads import uploads_of
from shared.platform.blobs import BlobStore
from shared.platform.concurrency import run_together
from shared.platform.instances import StopRun
from shared.platform.models import Stored
from shared.platform.names import DOCUMENTS, WORK
from shared.platform.search import SearchRequest
from shared.platform.telemetry import get_logger, pseudonym
from shared.quality.recording import key_of
from shared.runs.models import RunRequest
from shared.summaries.models import SummaryRequest
from shared.summaries.own_list import forget_list
from shared.summaries.store import FOLDER as SUMMARIES
from shared.summaries.store import SummaryStore
from shared.summaries.summaries import delete_summary
from shared.teams.models import TakenActivity
from shared.teams.parsing import owner_of
from shared.teams.store import TAKEN_FOLDER
from shared.tools.workspace import forget_workspace

One = TypeVar("One")
Made = TypeVar("Made")

_WORKING_S = 300.0  # of one message; the platform ends a function after 600 s, and its whole worker with it
_AT_ONCE = 8  # runs that are erased at the same time (unmeasured; each takes some ten calls)
_EARLY_S = 5.0  # by which queues and clocks may differ
_RUNS = "runs/"  # as RunFiles names its blobs
_CHILDREN = "children.json"  # as answering/artifacts.py does
_SESSIONS = "sessions/"  # as answering/agent.py does


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
        get_logger().info("user_erasure.continued", subject=pseudonym(record.user_id))
        await send_on(record, services.queues)


async def _advance(record: ErasureRecord, services: ErasureServices, deps: EraseDependencies) -> None:
    if record.is_finishing:
        await _finish(record, services, deps)
        return
    found = await _find(record, services)
    record = await _noted(record, found, services.blobs)
    if found.is_empty and record.passes:
        # Noted first: a finish that runs out of time continues, and is no pass that has found something.
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
    record = await _keep(record, services.blobs, **made)
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
        "summaries": _merged(
            record.summaries, [*(one.summary_id for one in found.summaries), *found.damaged_summaries]
        ),
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
    await _erase_summaries(found, record.user_id, services, deps)
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


async def _erase_summaries(
    found: ErasureFindings, user_id: str, services: ErasureServices, deps: EraseDependencies
) -> None:
    for summary in found.summaries:
        deps.require_time()
        await delete_summary(summary, services.settings, services.blobs, services.user_limits, deps.forget)
    for summary_id, instance_ids in found.damaged_summaries.items():
        deps.require_time()
        for instance_id in instance_ids:
            await deps.forget(instance_id)
        await SummaryStore(services.blobs, summary_id).delete()
        await release(user_id, summary_id, services.settings, services.user_limits)


async def _erase_thread(thread: Thread, services: ErasureServices, deps: EraseDependencies) -> None:
    """Hide the thread and erase what its turns made; its emptied rows are removed at the end."""
    hidden = {"is_deleted": True, "title": "", "summary": ""}
    current = await changed(thread, lambda one: one.model_copy(update=hidden), services.threads)
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
    lists = ("threads", "runs", "summaries", "instances", "deleting")
    emptied: dict[str, object] = dict.fromkeys(lists, ())
    await keep_record(blobs, record.model_copy(update={**ended, **emptied}))
    counts = record.counts.model_dump()
    get_logger().info(
        "user_erasure.ended", subject=subject, status=status, documents=record.documents, erased=counts
    )


async def _forget_rows(user_id: str, services: ErasureServices) -> ErasedCounts:
    """Remove the rows that are found only by the person's id; the audit trail keeps a pseudonym."""
    await services.audit.pseudonymise(user_id)
    await forget_list(user_id, services.blobs)
    conversations = 0 if services.bot_turns is None else await services.bot_turns.forget(user_id)
    return ErasedCounts(
        conversations=conversations,
        idempotency_keys=await services.idempotency.forget(user_id),
        limits=await services.user_limits.forget(user_id),
        workspace_files=await forget_workspace(user_id, services.blobs),
        queue_messages=await services.poison.remove_of(user_id),
    )


async def _find(record: ErasureRecord, services: ErasureServices) -> ErasureFindings:
    """Look through every store. Of runs and summaries nothing of anybody else is listed or read."""
    user_id, blobs = record.user_id, services.blobs
    prefix = owner_prefix(user_id, services.settings.identity.owner_id_key)
    is_repeated = record.counted > record.passes  # it may have broken off before it came to them
    done = frozenset(() if is_repeated else record.threads)
    threads = [one async for one in services.threads.of_owner(user_id) if one.thread_id not in done]
    records = [one async for one in services.runs.of_owner(user_id, prefix)]
    # Some runs have a folder and no record.
    folders = await folders_of(blobs, _RUNS, prefix, RunRequest, user_id)
    # The names of a run's sub-agents stay until the last pass.
    noted = {one.run_id for one in record.runs}
    runs = {
        run_id: folder.began_at
        for run_id, folder in folders.items()
        if run_id not in noted or folder.names != {_CHILDREN}
    }
    runs.update((one.run_id, one.created_at) for one in records)
    summaries = await folders_of(blobs, SUMMARIES, prefix, SummaryRequest, user_id)
    messages = await _theirs(blobs, TAKEN_FOLDER, TakenActivity, lambda one: _wrote(one, user_id))
    own_memories = Memories(services.memory_index, UserContext(user_id=user_id))
    memories = await own_memories.search(SearchRequest(select=("memory_id",), top=1, count=True))
    # By the run alone, which an earlier try of this pass may have erased already.
    theirs = {*runs, *(one.run_id for one in record.runs)}
    sessions = await _theirs(blobs, _SESSIONS, WaitingRun, lambda one: one.run_id in theirs)
    # Of all documents only those that have to do with the person are held: there may be a million others.
    states = [one async for one in services.documents.all() if relation_to(one, user_id)]
    alone = tuple(one for one in states if relation_to(one, user_id) == "alone")
    return ErasureFindings(
        threads=tuple(threads),
        runs=tuple(RunPlace(run_id=run_id, at=at) for run_id, at in runs.items()),
        at_work=sum(one.finished_at is None for one in records),
        summaries=tuple(one.request for one in summaries.values() if one.request is not None),
        damaged_summaries={
            summary_id: instances_of(summary_id, folder.names)
            for summary_id, folder in summaries.items()
            if folder.request is None
        },
        memory_count=memories.count or 0,
        messages=tuple(name for name, _ in messages),
        sessions=tuple(name for name, _ in sessions),
        documents=alone if record.documents == "delete" else (),
        sidecars=tuple([name async for name in _unused_sidecars(user_id, blobs)]),
        kept=own_documents(states, user_id),
    )


def _wrote(taken: TakenActivity, user_id: str) -> bool:
    """Whether the person wrote it, also where several read along; or the owner is such a conversation."""
    said = taken.said
    if said is None:
        return False
    return user_id in (said.sender.object_id, owner_of(said.conversation, said.sender))


async def _theirs(
    blobs: BlobStore, folder: str, kind: type[Stored], is_theirs: Callable[[Stored], bool]
) -> list[tuple[str, Stored]]:
    """Return blobs of the work container that are the person's, with what they hold.

    Args:
        folder: begins the names of all blobs that are read.
    """
    names = [one.name async for one in blobs.list_blobs(WORK, folder)]
    return [(name, one) for name, one in await read_all(blobs, names, kind) if is_theirs(one)]


async def _unused_sidecars(user_id: str, blobs: BlobStore) -> AsyncIterator[str]:
    names = {one.name async for one in blobs.list_blobs(DOCUMENTS, uploads_of(user_id))}
    for name in sorted(names):
        if is_sidecar(name) and document_of_blob(name) not in names:
            yield name
