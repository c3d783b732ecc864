"""Performs the steps of a summary itself: choose the documents, merge the results of the children, and commit
the summary.

Permissions are checked before documents are merged and again before the result is sent. If the user lost
access to a document in between, the summary is merged again without it.
"""

from collections.abc import Sequence

from shared.answering.budget import tokens_in
from shared.answering.children import DOCUMENTS
from shared.answering.run_end import project_end
from shared.answering.services import AnsweringServices
from shared.answering.step_context import StepContext
from shared.answering.steps import CommitSummary, RunClosed
from shared.answering.subagent_models import SubagentPlace
from shared.answering.summary_document import (
    document_plan,
    document_result,
    document_result_of,
    order_of,
    read_windows,
)
from shared.answering.summary_findings import (
    common_tags,
    statements_without_model,
    without_repeated_metrics,
    without_repeats,
)
from shared.answering.summary_limits import SummaryTime
from shared.answering.summary_model import SummaryModel, reduce_findings
from shared.answering.summary_models import (
    DocumentPlaces,
    DocumentResult,
    DocumentsChosen,
    SummaryMerged,
    SummaryOutcome,
    SummaryStale,
)
from shared.answering.summary_result import Narrative, not_found_warning, summary_result
from shared.evidence.messages import messages_in
from shared.platform.concurrency import run_together
from shared.platform.errors import DependencyError, DocumentNotFoundError, NotFoundError
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.secured_index import SecuredIndex
from shared.runs.event_log import RunClosedError
from shared.runs.events import CompleteEvent, ErrorEvent, RunEvent
from shared.runs.journal import Journal, read_journal
from shared.runs.models import RunAnswer, RunRequest

SUMMARY = "summary"
MAX_KEY_FINDINGS = 20
# Maximum number of findings taken from a document whose sub-agent ended without storing a result.
_EACH_UNFINISHED = 8


async def open_summary(context: StepContext) -> DocumentsChosen:
    """Store the identities of the children, one per document, and return them.

    The step has no completion, so after a revival it runs again and the children get a new deadline.
    """
    request = await context.request()
    numbers = range(len(order_of(request).doc_ids))
    places = DocumentPlaces(
        children=tuple(
            SubagentPlace(run_id=context.run_id, path=f"s{context.action.step:03d}c{number}")
            for number in numbers
        )
    )
    places = await context.keep(places, DOCUMENTS)
    await context.open()
    settings = context.services.settings.summaries
    time = SummaryTime.of(settings, request.created_at, context.journal.events)
    return DocumentsChosen(
        children=places.children, until=time.children_until, at_once=settings.documents_at_once
    )


async def merge_summary(context: StepContext) -> SummaryMerged:
    """Stop the children, merge the complete and partial results of all documents, and store the summary."""
    services, request = context.services, await context.request()
    await context.open()
    # The start of this step closes the children's logs, so nothing can be appended to them after this read.
    journal = await read_journal(services.run_log, services.blobs, context.run_id)
    documents = await _readable_results(request, journal, services)
    used = [document for document in documents if document.status in ("done", "partial")]
    time = SummaryTime.of(services.settings.summaries, request.created_at, journal.events)
    model = SummaryModel(services.chat_model, order_of(request), services.settings, time.deadline)
    narrative = await _merge_results(used, model, services)
    result = summary_result(
        documents,
        narrative,
        [metric for document in used for metric in document.metrics],
        messages=messages_in(order_of(request).language or (used[0].language if used else "")),
    )
    error = error_type = None
    if not used:
        error, error_type = "No document could be summarised.", DependencyError.code
        if all(document.status == "not_found" for document in documents):
            error, error_type = "None of the documents was found.", DocumentNotFoundError.code
    outcome = SummaryOutcome(
        result=result,
        used=tuple(document.doc_id for document in used),
        error=error,
        error_type=error_type,
    )
    await context.keep(outcome, SUMMARY)
    return await context.complete(SummaryMerged())


async def commit_summary(context: StepContext, action: CommitSummary) -> RunClosed | SummaryStale:
    """Send COMPLETE with the summary, or ERROR if no document could be summarised. If access to a used
    document was lost, return SummaryStale instead.
    """
    request = await context.request()
    outcome = await context.journal.get(action.merge_step, SummaryOutcome, SUMMARY)
    if set(outcome.used) - (await _readable(request, context.services)):
        return SummaryStale()
    event_log = context.begin()
    try:
        await event_log.write(_end(context, request, outcome))
    except NotFoundError:
        raise RunClosedError("The summary was deleted.") from None
    return await project_end(context, event_log)


def _end(context: StepContext, request: RunRequest, outcome: SummaryOutcome) -> RunEvent:
    if outcome.error is not None and outcome.error_type is not None:
        return ErrorEvent(type=outcome.error_type, message=outcome.error)
    answer = RunAnswer(
        run_id=context.run_id,
        text=outcome.result.summary,
        language=order_of(request).language or "en",
        citations=outcome.result.citations,
        warnings=outcome.result.warnings,
        tokens=tokens_in(context.journal.events),
    )
    return CompleteEvent(run_id=context.run_id, thread_id=request.thread_id, answer=answer)


async def _readable(request: RunRequest, services: AnsweringServices) -> set[str]:
    """Return the ids of the documents of a summary that its owner may read now."""
    index = SecuredIndex(services.documents_index, request.user, services.documents)
    return set(await DocumentSearch(index).get_many(order_of(request).doc_ids))


async def _readable_results(
    request: RunRequest, journal: Journal, services: AnsweringServices
) -> list[DocumentResult]:
    """Return one result per document. For a document that the owner can no longer read, its status is
    `not_found`.
    """
    (line, *_) = journal.value_lines(DOCUMENTS)
    places = (await journal.value(line, DocumentPlaces)).children
    pairs = zip(order_of(request).doc_ids, places, strict=True)
    results = await run_together(*(_result(doc_id, place, journal) for doc_id, place in pairs))
    readable = await _readable(request, services)
    return [
        result
        if result.doc_id in readable
        else DocumentResult(
            doc_id=result.doc_id, status="not_found", warning=not_found_warning(result.doc_id)
        )
        for result in results
    ]


async def _result(doc_id: str, place: SubagentPlace, journal: Journal) -> DocumentResult:
    """Return the stored result of a child. If there is none, return a partial result from the windows that it
    has read.
    """
    if (existing := await document_result_of(journal, place)) is not None:
        return existing
    plan = await document_plan(journal, place)
    if plan is None:
        return DocumentResult(
            doc_id=doc_id, status="failed", warning=f"Document {doc_id[:64]!r} was not reached in time."
        )
    windows = await read_windows(journal, place)
    result = document_result(plan, windows)
    late = f"{plan.filename} was not finished in time."
    warning = f"{late} {result.warning}" if result.warning else late
    if result.status == "failed":
        return result.model_copy(update={"warning": warning})
    # Take findings from every window rather than only from the first ones.
    each = max(1, _EACH_UNFINISHED // len(windows))
    findings = without_repeats(one for window in windows for one in window.findings[:each])
    return result.model_copy(
        update={
            "status": "partial",
            "warning": warning,
            "findings": tuple(findings),
            "key_count": len(findings),
            "statements": statements_without_model(findings),
            "metrics": tuple(without_repeated_metrics(m for window in windows for m in window.metrics)),
            "tags": common_tags(window.tags for window in windows),
        }
    )


async def _merge_results(
    used: Sequence[DocumentResult], model: SummaryModel, services: AnsweringServices
) -> Narrative:
    """Merge the results of all documents with the model. The result of a single document is returned
    unchanged.
    """
    if len(used) == 1:
        only = used[0]
        return Narrative(only.findings, only.statements, tuple(range(only.key_count)), only.tags)
    return await reduce_findings(
        [finding for document in used for finding in document.findings[: document.key_count]],
        common_tags(document.tags for document in used),
        model,
        most_tokens=services.settings.summaries.window_tokens,
        most_key=MAX_KEY_FINDINGS,
    )
