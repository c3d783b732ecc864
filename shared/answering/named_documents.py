"""Finds the documents that a question names, refers back to, or asks about as a kind."""

from collections.abc import Mapping, Sequence

from shared.answering.clarification import options_of
from shared.answering.document_references import (
    MAX_NAMED,
    MAX_READ,
    missing_documents,
    resolve_references,
)
from shared.answering.listing import documents_of_kind
from shared.answering.planning import documents_before
from shared.conversations.window import cited_before, points_back
from shared.evidence.messages import Messages
from shared.evidence.reader_text import readable_line
from shared.platform.concurrency import run_together
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.models import DocumentRecord
from shared.runs.evidence import Evidence, StoredPlan
from shared.runs.models import RunRequest
from shared.runs.plan import QueryIntent, QuestionPlan
from shared.runs.provenance import Provenance
from shared.tools.searches import caller_limits

_MAX_REFERENCES = 6


async def resolve_documents(request: RunRequest, stored: StoredPlan, documents: DocumentSearch) -> StoredPlan:
    """Return the plan with the documents that its references mean. If a reference is ambiguous, the plan has
    options instead.
    """
    plan = stored.plan
    if every := await documents_of_kind(request, plan, documents):
        return _with_every(stored, [record.doc_id for record in every])
    if before := documents_before(request, plan):
        return stored.model_copy(update={"doc_ids": await _still_usable(before, request, documents)})
    own = own_files(request, stored)
    if own and points_back(request.question) and not any(map(str.strip, plan.document_references)):
        return stored.model_copy(update={"doc_ids": own[:MAX_READ]})
    matches = await _matches_of_references(request, plan, documents)
    before_that = cited_before(request.conversation)
    resolution = resolve_references(
        plan.standalone_question,
        plan.query_type,
        matches,
        before_that.doc_ids if before_that else (),
        may_ask=not request.doc_ids,
    )
    # If the caller selected documents, the question is about those, whatever names it uses, so none is
    # missing.
    missing = () if request.doc_ids else missing_documents(matches)
    similar = [
        record
        for document in missing
        for record in matches[document.reference]
        if record.filename in document.nearest
    ]
    return stored.model_copy(
        update={
            "missing": missing,
            "doc_ids": tuple(record.doc_id for record in resolution.documents),
            "reference": resolution.reference,
            "options": options_of(resolution.candidates),
            "named": Provenance.of(*resolution.candidates, *similar).documents,
        }
    )


def with_every(
    evidence: Evidence, stored: StoredPlan, records: Mapping[str, DocumentRecord], words: Messages
) -> Evidence:
    """Return the evidence with a list of all documents of the kind that the question asks about. A warning
    names the documents that were not read.
    """
    every = tuple(records[doc_id] for doc_id in stored.every_ids if doc_id in records)
    left_out = [readable_line(record.filename) for record in every if record.doc_id not in stored.doc_ids]
    warning = words.left_out.format(len(left_out), len(every), ", ".join(left_out))
    warnings = (*evidence.warnings, warning) if left_out else evidence.warnings
    return evidence.model_copy(update={"every": every, "warnings": warnings})


def _with_every(stored: StoredPlan, doc_ids: Sequence[str]) -> StoredPlan:
    """Return the plan for a question about all documents of a kind. Each of them is read, as for a summary or
    a comparison.
    """
    is_comparison = stored.plan.intent == "compare_docs" and len(doc_ids) <= MAX_NAMED
    intent: QueryIntent = "compare_docs" if is_comparison else "doc_summary"
    update = {
        "plan": stored.plan.model_copy(update={"intent": intent}),
        "every_ids": tuple(doc_ids),
        "doc_ids": tuple(doc_ids[:MAX_READ]),
    }
    return stored.model_copy(update=update)


def own_files(request: RunRequest, stored: StoredPlan) -> tuple[str, ...]:
    """Return the ids of the thread's attached files that the question may use, newest first. Limits set by
    the caller apply.
    """
    if request.project_id:
        return ()
    doc_ids = [file.document.doc_id for file in reversed(stored.files)]
    return tuple(doc_id for doc_id in doc_ids if not request.doc_ids or doc_id in request.doc_ids)


async def _still_usable(
    doc_ids: Sequence[str], request: RunRequest, documents: DocumentSearch
) -> tuple[str, ...]:
    """Return those documents of an earlier answer that the user can still read and that the caller's limits
    allow.
    """
    records = await documents.get_many(doc_ids[:MAX_NAMED])
    return tuple(doc_id for doc_id in doc_ids if doc_id in records and _is_within(request, records[doc_id]))


async def _matches_of_references(
    request: RunRequest, plan: QuestionPlan, documents: DocumentSearch
) -> dict[str, list[DocumentRecord]]:
    """Return the documents with similar names for each reference of the plan, by reference."""
    references = tuple(
        dict.fromkeys(name for reference in plan.document_references if (name := reference.strip()))
    )[:_MAX_REFERENCES]
    filters = caller_limits(request)
    matches = await run_together(*(documents.find_named(reference, filters) for reference in references))
    return dict(zip(references, matches, strict=True))


def _is_within(request: RunRequest, record: DocumentRecord) -> bool:
    is_chosen = not request.doc_ids or record.doc_id in request.doc_ids
    return is_chosen and request.project_id in (None, "", record.project_id)
