"""Records shown documents in the audit trail. Each document is recorded before readers see it cited.

An entry at the commit alone would be missing if the reader cancels the run, deletes its thread or kills the
connection as soon as the answer has been streamed.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from shared.access.audit_trail import record_act
from shared.access.models import AuditAction, AuditEntry
from shared.answering.models import Preparation, TurnResults
from shared.answering.services import AnsweringServices
from shared.platform.errors import GroundworkError
from shared.runs.events import CitationEvent, RunEvent, TokenEvent
from shared.runs.journal import Journal
from shared.runs.models import RunAnswer, RunRecord, RunRequest
from shared.runs.run_files import RunFiles


class ShownDocuments:
    """Recorder of the documents that a run shows, as known to one attempt at a step.

    A document that an earlier step cited isn't recorded again.
    """

    def __init__(self, services: AnsweringServices, files: RunFiles) -> None:
        self._trail = services.audit
        self._files = files
        self._recorded: set[str] = set()

    def add_recorded(self, events: Iterable[RunEvent]) -> None:
        """Mark the documents of all citations among the events as recorded, so that they are not recorded
        again.
        """
        self._recorded.update(
            event.doc_id for event in events if isinstance(event, CitationEvent) and event.doc_id
        )

    async def record(self, doc_ids: Iterable[str]) -> None:
        """Record documents that are about to be shown. Errors of the audit trail raise an alert, but no
        exception.
        """
        if new := {doc_id for doc_id in doc_ids if doc_id} - self._recorded:
            await self._write(sorted(new))

    async def record_end(self, answer: RunAnswer) -> None:
        """Record the documents of a finished answer that are not recorded yet. If the run has shown no
        documents, record an entry without any.
        """
        new = set(documents_of(answer)) - self._recorded
        if new or not self._recorded:
            await self._write(sorted(new))

    async def _write(self, doc_ids: Sequence[str]) -> None:
        request = await self._files.request()
        self._recorded.update(doc_ids)
        await record_act(self._trail, _entry(request, "answer", doc_ids, request.created_at))


def documents_of(answer: RunAnswer) -> tuple[str, ...]:
    """Return the ids of the documents that an answer cites or shows pictures from, without duplicates."""
    doc_ids = (*(one.doc_id for one in answer.citations), *(one.doc_id for one in answer.figures))
    return tuple(dict.fromkeys(doc_id for doc_id in doc_ids if doc_id))


async def record_unanswered(
    record: RunRecord, action: AuditAction, journal: Journal, services: AnsweringServices
) -> None:
    """Record that a run ended without an answer, with the documents that its streamed text may be based on.

    Text that was streamed may repeat any document that the model had read, cited or not. A run that streamed
    no text is recorded without documents. Never raises.
    """
    try:
        request = await journal.files.request()
        has_text = any(isinstance(event, TokenEvent) for event in journal.events)
        doc_ids = await _read_documents(journal) if has_text else ()
    except GroundworkError:
        return  # the run was erased in the meantime
    at = record.finished_at or request.created_at  # identical for every repetition, so that it adds no entry
    await record_act(services.audit, _entry(request, action, doc_ids, at))


async def _read_documents(journal: Journal) -> tuple[str, ...]:
    """Return the ids of all documents that were part of the model's prompts."""
    doc_ids: set[str] = set()
    for line in journal.value_lines("preparation"):
        evidence = (await journal.value(line, Preparation)).evidence
        if evidence is not None:
            doc_ids.update(hit.doc_id for hit in evidence.blocks)
            doc_ids.update(record.doc_id for record in evidence.records)
    for line in journal.value_lines("results"):
        results = await journal.value(line, TurnResults)
        doc_ids.update(hit.doc_id for hit in (*results.hits, *results.figures))
        doc_ids.update((*(record.doc_id for record in results.records), *results.table_doc_ids))
    return tuple(sorted(doc_ids))


def _entry(request: RunRequest, action: AuditAction, doc_ids: Sequence[str], at: datetime) -> AuditEntry:
    return AuditEntry(
        at=at,
        user_id=request.user.user_id,
        action=action,
        doc_ids=tuple(doc_ids),
        run_id=request.run_id,
        origin=request.origin,
    )
