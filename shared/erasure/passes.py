"""Erasure of a person's data in passes, 15 minutes apart, until a pass finds nothing new.

Each store is searched for the person's id directly instead of following references. This also finds data
whose thread or record was lost through a crash, a bug or an earlier deletion. Ids of runs and threads begin
with a digest of their owner (`owner_ids`), so other people's runs are neither listed nor read.

A step that is active during the first pass may still write, and a person with a valid token may ask again;
later passes find that. Findings are stored and counted before anything is deleted, so an interrupted pass can
simply be repeated.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from shared.access.models import UserContext
from shared.access.owner_ids import owner_prefix
from shared.answering.agent_sessions import SESSIONS
from shared.conversations.memory import Memories, forget_all
from shared.conversations.models import Thread
from shared.documents.ids import CONVERSATION_FILES, document_of_blob, is_sidecar
from shared.documents.state import DocumentState
from shared.erasure.findings import ErasureFindings
from shared.erasure.folders import folders_of
from shared.erasure.models import ErasedCounts, ErasureRecord, RunPlace
from shared.erasure.policy import MAX_PASSES, is_alone, own_documents, sum_counts
from shared.erasure.requests import find_record, keep_record, send_on
from shared.erasure.services import ErasureServices
from shared.erasure.threads import LAST_PASS_AFTER_S, change_thread, erase_run, erase_turns
from shared.ingestion.uploads import uploads_of
from shared.platform.blobs import BlobStore
from shared.platform.concurrency import run_together
from shared.platform.instances import StopRun
from shared.platform.names import DOCUMENTS, WORK
from shared.platform.odata import quote
from shared.platform.search import SearchRequest
from shared.platform.telemetry import get_logger, pseudonym
from shared.quality.recording import key_of
from shared.teams.store import activities_of
from shared.tools.workspace import forget_workspace

One = TypeVar("One")
Made = TypeVar("Made")

# Time limit per queue message. The platform ends a function, and its worker, after 600 s.
_WORKING_S = 300.0
# Number of runs erased concurrently (unmeasured; each takes about ten calls).
_AT_ONCE = 8
# Tolerance for clock skew between the queue and the app.
_EARLY_S = 5.0
# The prefix that `RunFiles` gives to its blobs.
_RUNS = "runs/"
# The name that answering/children.py gives to the list of sub-agents.
_CHILDREN = "children.json"


@dataclass(frozen=True)
class EraseDependencies:
    """Operations on orchestrations and documents that an erasure needs, and the time limit for one queue
    message.

    Attributes:
        stop: terminates an orchestration.
        forget: terminates an orchestration and purges its history.
        delete_document: starts the deletion of a document and everything derived from it.
    """

    stop: StopRun
    forget: StopRun
    delete_document: Callable[[DocumentState], Awaitable[None]]
    until: float = field(default_factory=lambda: time.monotonic() + _WORKING_S)

    @property
    def is_late(self) -> bool:
        """Whether the time limit has passed, so that the next queue message should continue."""
        return time.monotonic() > self.until

    def require_time(self) -> None:
        """Raise `_TimeIsUpError` if the time limit has passed."""
        if self.is_late:
            raise _TimeIsUpError


class _TimeIsUpError(Exception):
    """Raised if the time limit has passed. The next queue message continues the pass."""


async def advance(erasure_id: str, services: ErasureServices, deps: EraseDependencies) -> None:
    """Run the pass of an erasure that is due. Messages that are early, late or duplicates are ignored."""
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
    findings = await _find(record, services)
    record = await _store_findings(record, findings, services.blobs)
    if findings.is_empty and record.passes:
        # Stored first, so that finishing continues after the time limit instead of running another pass.
        record = await _keep(record, services.blobs, is_finishing=True)
        await _finish(record, services, deps)
        return
    if record.passes == MAX_PASSES:
        await _end(record, "failed", services.blobs)
        return
    record = await _erase(findings, record, services, deps)
    counts = sum_counts(record.counts, await _forget_rows(record.user_id, services))
    now = datetime.now(UTC)
    due = now + timedelta(seconds=LAST_PASS_AFTER_S)
    progress = {"passes": record.passes + 1, "counts": counts, "not_before": due}
    record = await _keep(record, services.blobs, **progress)
    await send_on(record, services.queues)


async def _store_findings(
    record: ErasureRecord, findings: ErasureFindings, blobs: BlobStore
) -> ErasureRecord:
    """Store the findings of a pass before anything is deleted, so that a pass repeated after an interruption
    counts nothing twice.
    """
    is_repeated = record.counted > record.passes
    runs = {one.run_id: one for one in (*record.runs, *findings.runs)}
    updates = {
        "counts": record.counts
        if is_repeated
        else sum_counts(record.counts, findings.counts(record.deleting)),
        "counted": record.passes + 1,
        "kept_documents": findings.kept_documents,
        "threads": _merge_unique(record.threads, [one.thread_id for one in findings.threads]),
        "runs": tuple(runs.values()),
        "instances": _merge_unique(record.instances, findings.instances),
        "deleting": _merge_unique(record.deleting, findings.deleting),
    }
    return await keep_record(blobs, record.model_copy(update=updates))


def _merge_unique(before: Sequence[str], more: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*before, *more)))


async def _erase(
    findings: ErasureFindings, record: ErasureRecord, services: ErasureServices, deps: EraseDependencies
) -> ErasureRecord:
    """Delete the data that a pass has found. Return the record with the counts that are known only during
    deletion.
    """
    # Threads come first, because a deleted thread accepts no further questions.
    for thread in findings.threads:
        deps.require_time()
        await _erase_thread(thread, services, deps)
    for start in range(0, len(findings.runs), _AT_ONCE):
        deps.require_time()
        first = await _process_batch(findings.runs[start:], lambda one: _erase_run(one, services, deps.stop))
        # Counts are stored after each batch, because a continued pass does not find these runs again.
        counts = sum_counts(record.counts, ErasedCounts(quality_records=sum(first)))
        record = await _keep(record, services.blobs, counts=counts)
    for name in (*findings.messages, *findings.sessions):
        await services.blobs.delete(WORK, name)
    for instance_id in findings.instances:
        deps.require_time()
        await deps.forget(instance_id)
    await forget_all(UserContext(user_id=record.user_id), services.memory_index, services.threads)
    for state in findings.documents:
        deps.require_time()
        await deps.delete_document(state)
    for name in findings.sidecars:
        await services.blobs.delete(DOCUMENTS, name)
    return record


async def _erase_thread(thread: Thread, services: ErasureServices, deps: EraseDependencies) -> None:
    """Hide a thread and erase its turns. Their empty rows are kept until the erasure finishes."""
    hidden = {"is_deleted": True, "title": "", "summary": ""}
    current = await change_thread(thread, lambda one: one.model_copy(update=hidden), services.threads)
    if current is not None:
        through, may_go_on = current.turn_count, deps.require_time
        await erase_turns(current, through, services, deps.stop, is_last=False, require_time=may_go_on)


async def _erase_run(
    one: RunPlace, services: ErasureServices, stop: StopRun, *, is_last: bool = False
) -> int:
    """Erase a run with its quality records, and return the number of these records. They are found by time
    and key, because they don't contain the run id.
    """
    await erase_run(one.run_id, services, stop, is_last=is_last)
    return await services.quality.forget(one.at, key_of(one.run_id))


async def _finish(record: ErasureRecord, services: ErasureServices, deps: EraseDependencies) -> None:
    """Delete the remaining rows, histories and late writes, after a pass that found nothing new.

    Finished items are removed from the record in batches, so that the next message continues after them.
    """
    async for thread in services.threads.of_owner(record.user_id):
        through, may_go_on = thread.turn_count, deps.require_time
        await erase_turns(thread, through, services, deps.forget, is_last=True, require_time=may_go_on)
    while record.runs:
        deps.require_time()
        last = await _process_batch(
            record.runs, lambda one: _erase_run(one, services, deps.forget, is_last=True)
        )
        counts = sum_counts(record.counts, ErasedCounts(quality_records=sum(last)))
        record = await _keep(record, services.blobs, runs=record.runs[_AT_ONCE:], counts=counts)
    while record.instances:
        deps.require_time()
        await _process_batch(record.instances, deps.forget)
        record = await _keep(record, services.blobs, instances=record.instances[_AT_ONCE:])
    counts = sum_counts(record.counts, await _forget_rows(record.user_id, services))
    await services.threads.remove_owner(record.user_id)
    progress = {"counts": counts, "passes": record.passes + 1}
    await _end(record.model_copy(update=progress), "completed", services.blobs)


async def _process_batch(some: Sequence[One], act: Callable[[One], Awaitable[Made]]) -> list[Made]:
    """Apply `act` to the first batch of items concurrently, and return the results."""
    return list(await run_together(*(act(one) for one in some[:_AT_ONCE])))


async def _keep(record: ErasureRecord, blobs: BlobStore, **changes: object) -> ErasureRecord:
    return await keep_record(blobs, record.model_copy(update=changes))


async def _end(record: ErasureRecord, status: str, blobs: BlobStore) -> None:
    """End an erasure. Its record is reduced to a report without the person's id and without references to
    their data.
    """
    subject = pseudonym(record.user_id)
    ended = {"status": status, "finished_at": datetime.now(UTC), "user_id": ""}
    lists = ("threads", "runs", "instances", "deleting")
    emptied: dict[str, object] = dict.fromkeys(lists, ())
    await keep_record(blobs, record.model_copy(update={**ended, **emptied}))
    counts = record.counts.model_dump()
    get_logger().info(
        "user_erasure.ended", subject=subject, status=status, documents=record.documents, erased=counts
    )


async def _forget_rows(user_id: str, services: ErasureServices) -> ErasedCounts:
    """Delete all rows and files stored under the person's id, and replace the id by a pseudonym in the audit
    trail.
    """
    await services.audit.pseudonymise(user_id)
    conversations = 0 if services.bot_turns is None else await services.bot_turns.forget(user_id)
    return ErasedCounts(
        conversations=conversations,
        idempotency_keys=await services.idempotency.forget(user_id),
        limits=await services.user_limits.forget(user_id),
        workspace_files=await forget_workspace(user_id, services.blobs),
        queue_messages=await services.poison.remove_of(user_id),
    )


async def _find(record: ErasureRecord, services: ErasureServices) -> ErasureFindings:
    """Search every store for data about the person. Runs of other people are neither listed nor read."""
    user_id, blobs = record.user_id, services.blobs
    prefix = owner_prefix(user_id, services.settings.identity.owner_id_key)
    # An interrupted pass may not have reached the threads that it had found.
    is_repeated = record.counted > record.passes
    done = frozenset(() if is_repeated else record.threads)
    threads = [one async for one in services.threads.of_owner(user_id) if one.thread_id not in done]
    found_runs = await _find_runs(record, prefix, services)
    messages = await activities_of(prefix, blobs)
    own_memories = Memories(services.memory_index, UserContext(user_id=user_id))
    memories = await own_memories.search(SearchRequest(select=("memory_id",), top=1, count=True))
    sessions = [one.name async for one in blobs.list_blobs(WORK, SESSIONS + prefix)]
    states = [one async for one in services.documents.of_owner(user_id)]
    alone = tuple(one for one in states if is_alone(one, user_id))
    of_threads = tuple(one for one in alone if one.thread_id)
    uploads = (uploads_of(user_id), f"{CONVERSATION_FILES}/{prefix}")
    return ErasureFindings(
        threads=tuple(threads),
        runs=found_runs.places,
        at_work=found_runs.at_work,
        summary_count=found_runs.summary_count,
        memory_count=memories.count or 0,
        messages=tuple(messages),
        sessions=tuple(sessions),
        documents=alone if record.documents == "delete" else of_threads,
        sidecars=tuple([name for start in uploads async for name in _unused_sidecars(start, blobs)]),
        kept_documents=own_documents(
            (one for one in states if not one.thread_id),
            user_id,
            named_count=await _count_named(user_id, services),
        ),
    )


@dataclass(frozen=True)
class _FoundRuns:
    """A person's runs.

    Attributes:
        at_work: number of active runs that answer a question.
    """

    places: tuple[RunPlace, ...]
    at_work: int
    summary_count: int


async def _find_runs(record: ErasureRecord, prefix: str, services: ErasureServices) -> _FoundRuns:
    """Find the person's runs by their records and by their folders, since some have files but no record."""
    records = [one async for one in services.runs.of_owner(record.user_id, prefix)]
    folders = await folders_of(services.blobs, _RUNS, prefix, record.user_id)
    # A folder with only the list of sub-agents is not new: the list is kept until the erasure finishes.
    recorded = {one.run_id for one in record.runs}
    runs = {
        run_id: folder.began_at
        for run_id, folder in folders.items()
        if run_id not in recorded or folder.names != {_CHILDREN}
    }
    runs.update((one.run_id, one.created_at) for one in records)
    summaries = {one.run_id for one in records if one.profile == "document_summary"}
    summaries |= {
        run_id
        for run_id, one in folders.items()
        if one.request is not None and one.request.summary is not None
    }
    return _FoundRuns(
        places=tuple(RunPlace(run_id=run_id, at=at) for run_id, at in runs.items()),
        at_work=sum(one.finished_at is None for one in records if one.profile == "answer"),
        summary_count=len(summaries & runs.keys()),
    )


async def _count_named(user_id: str, services: ErasureServices) -> int:
    """Return the number of other people's documents whose access lists name the person."""
    condition = f"access_control_list/any(acl: acl eq {quote(user_id)}) and owner_id ne {quote(user_id)}"
    request = SearchRequest(filter=condition, select=("doc_id",), top=1, count=True)
    return (await services.documents_index.search(request)).count or 0


async def _unused_sidecars(prefix: str, blobs: BlobStore) -> AsyncIterator[str]:
    names = {one.name async for one in blobs.list_blobs(DOCUMENTS, prefix)}
    for name in sorted(names):
        if is_sidecar(name) and document_of_blob(name) not in names:
            yield name
