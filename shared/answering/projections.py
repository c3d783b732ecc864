"""Copies the end of a run from its journal to other stores: answer, record, thread, slot, memory, quality and
audit.

`project` derives them from the journal alone and may be repeated, by the commit, a cancellation, a revival or
a late attempt at a step. A lost copy is written again as long as the journal exists. A missing record or turn
is not restored: it means that the run was erased.
"""

from collections.abc import Coroutine

from shared.access.limits import release
from shared.access.models import AuditAction
from shared.answering.provenance import keep_provenance, provenance_of
from shared.answering.run_facts import note_end
from shared.answering.services import AnsweringServices
from shared.answering.shown_documents import record_unanswered
from shared.conversations.turns import ask_to_remember, close_turn, show_run
from shared.platform.concurrency import run_together
from shared.platform.errors import NotFoundError
from shared.platform.names import RUN_LOG
from shared.runs.event_log import RunClosedError
from shared.runs.journal import Journal
from shared.runs.models import RunAnswer, RunRecord
from shared.runs.run_files import answer_path, provenance_path
from shared.runs.run_state import RunState, fold


async def project(journal: Journal, services: AnsweringServices) -> RunRecord | None:
    """Write all copies that are derived from the journal of a run that has ended. Idempotent.

    Args:
        journal: as last read. An open journal is not projected.

    Returns:
        The run's record; None if the run was erased.
    """
    state, record = fold(journal.events), await services.runs.get(journal.run_id)
    if record is None or not state.has_ended:
        return record
    record = state.update(record)
    freeing = release(record.owner_id, record.run_id, services.settings, services.user_limits)
    try:
        await run_together(_keep_end(record, state, journal, services), freeing)
    except (RunClosedError, NotFoundError):
        for path in (answer_path(record.run_id), provenance_path(record.run_id)):
            await services.blobs.delete(RUN_LOG, path)
        return None
    is_answer = record.profile == "answer"
    writes: list[Coroutine[None, None, None]] = []
    if is_answer:
        writes.append(note_end(record, services, journal, state.answer))
    if state.answer is not None and is_answer:
        writes.append(ask_to_remember(record, services.queues))
    if state.answer is None:
        action: AuditAction = "cancel" if state.status == "cancelled" else "fail"
        writes.append(record_unanswered(record, action, journal, services))
    await run_together(*writes)
    return record


async def _keep_end(
    record: RunRecord, state: RunState, journal: Journal, services: AnsweringServices
) -> None:
    """Store the answer with its provenance, then record the end of the run in its thread and its record.

    A summary has only a record.

    Raises:
        RunClosedError: the thread was cleared or deleted.
        NotFoundError: the run was erased.
    """
    if record.profile == "document_summary":
        pass  # a summary has no thread, and its result stays in the journal
    elif state.answer is None:
        await show_run(record, services.threads)
    else:
        answer = state.answer
        await run_together(
            _keep_answer(answer, services),
            _keep_provenance(journal, services),
            close_turn(record, answer, services.threads),
        )
    # Write the record last, so that readers who see a completed run find its answer.
    await services.runs.replace(record)


async def _keep_answer(answer: RunAnswer, services: AnsweringServices) -> None:
    await services.blobs.write(RUN_LOG, answer_path(answer.run_id), answer.model_dump_json().encode())


async def _keep_provenance(journal: Journal, services: AnsweringServices) -> None:
    await keep_provenance(journal.run_id, await provenance_of(journal), services.blobs)
