"""The last step of a summary: what the documents gave, whole or in part, becomes one result, written once.

Whatever happened to the children, this reads what lies in the blobs; a document that its reader may not read
any more gives nothing.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from shared.access.limits import release
from shared.platform.concurrency import run_together
from shared.platform.errors import DependencyError, DocumentNotFoundError, GroundworkError, NotFoundError
from shared.platform.search import SearchIndex
from shared.platform.telemetry import get_logger
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.secured_index import SecuredIndex
from shared.summaries.findings import common_tags, own_statements, without_repeated_metrics, without_repeats
from shared.summaries.model_calls import Reduced, SummaryModel, reduce_findings
from shared.summaries.models import (
    DocumentResult,
    SummaryClosed,
    SummaryEnd,
    SummaryReply,
    SummaryRequest,
    SummaryStep,
    SummaryStepFailed,
)
from shared.summaries.result import not_found, summary_result, words_of
from shared.summaries.services import SummaryServices
from shared.summaries.steps import document_result, read_windows
from shared.summaries.store import SummaryStore

MAX_KEY_FINDINGS = 20
_EACH_UNFINISHED = 8  # findings of a document whose child did not come to its own reduce


async def merge_documents(step: SummaryStep, services: SummaryServices) -> SummaryReply:
    """Make and store the end of a summary. Expected failures are replies; defects are raised."""
    store = SummaryStore(services.blobs, step.summary_id)
    try:
        if (known := await store.end()) is not None:
            return SummaryClosed(status=known.status)
        request = await store.request()
        documents = await _readable(request, await _results(request, store), services.documents_index)
        end = await _end_of(request, documents, services)
        if await store.is_closed():  # it was deleted meanwhile: nothing is left behind
            return SummaryClosed(status="cancelled")
        closed = SummaryClosed(status=(await store.put_end(end)).status)
        await release(request.user.user_id, step.summary_id, services.settings, services.user_limits)
    except NotFoundError:
        return SummaryClosed(status="cancelled")
    except GroundworkError as failed:
        get_logger().warning("summary.merge_failed", run_id=step.summary_id, error_type=failed.code)
        return SummaryStepFailed(error_type=failed.code, retryable=failed.retryable)
    else:
        return closed


async def _results(request: SummaryRequest, store: SummaryStore) -> Sequence[DocumentResult]:
    return await run_together(
        *(_result(doc_id, index, store) for index, doc_id in enumerate(request.order.doc_ids))
    )


async def _result(doc_id: str, index: int, store: SummaryStore) -> DocumentResult:
    """What a child left: its result, or what it had read when it failed or was late."""
    if (known := await store.result(index)) is not None:
        return known
    plan = await store.plan(index)
    if plan is None:
        return DocumentResult(
            doc_id=doc_id, status="failed", warning=f"Document {doc_id[:64]!r} was not reached in time."
        )
    windows = await read_windows(store, index, plan)
    result = document_result(plan, windows)
    late = f"{plan.filename} was not finished in time."
    warning = f"{late} {result.warning}" if result.warning else late
    if result.status == "failed":
        return result.model_copy(update={"warning": warning})
    # Some of each window, not the first windows alone.
    each = max(1, _EACH_UNFINISHED // len(windows))
    findings = without_repeats(one for window in windows for one in window.findings[:each])
    return result.model_copy(
        update={
            "status": "partial",
            "warning": warning,
            "findings": tuple(findings),
            "key_count": len(findings),
            "statements": own_statements(findings),
            "metrics": tuple(without_repeated_metrics(m for window in windows for m in window.metrics)),
            "tags": common_tags(window.tags for window in windows),
        }
    )


async def _readable(
    request: SummaryRequest, documents: Sequence[DocumentResult], documents_index: SearchIndex
) -> list[DocumentResult]:
    search = DocumentSearch(SecuredIndex(documents_index, request.user))
    known = await search.get_many([document.doc_id for document in documents])
    return [
        document
        if document.doc_id in known
        else DocumentResult(doc_id=document.doc_id, status="not_found", warning=not_found(document.doc_id))
        for document in documents
    ]


async def _end_of(
    request: SummaryRequest, documents: Sequence[DocumentResult], services: SummaryServices
) -> SummaryEnd:
    used = [document for document in documents if document.status in ("done", "partial")]
    reduced = await _reduced(request, used, services)
    said = (
        [f"The documents' findings stand side by side: the model failed ({reduced.error_type})."]
        if reduced.error_type
        else []
    )
    result = summary_result(
        documents,
        reduced.findings,
        reduced.statements,
        key_places=reduced.key_places,
        metrics=[metric for document in used for metric in document.metrics],
        tags=reduced.tags,
        warnings=said,
        words=words_of(request.order.language, request.order.focus),
    )
    error, error_type = (None, None) if used else _failure(documents)
    return SummaryEnd(
        status="completed" if used else "failed",
        finished_at=datetime.now(UTC),
        result=result,
        error=error,
        error_type=error_type,
    )


async def _reduced(
    request: SummaryRequest, used: Sequence[DocumentResult], services: SummaryServices
) -> Reduced:
    if len(used) == 1:
        only = used[0]
        return Reduced(only.findings, only.statements, tuple(range(only.key_count)), only.tags)
    settings = services.settings
    return await reduce_findings(
        [finding for document in used for finding in document.findings[: document.key_count]],
        common_tags(document.tags for document in used),
        SummaryModel(services.chat_model, request, settings, request.deadline),
        most_tokens=settings.summary_window_tokens,
        most_key=MAX_KEY_FINDINGS,
    )


def _failure(documents: Sequence[DocumentResult]) -> tuple[str, str]:
    if all(document.status == "not_found" for document in documents):
        return "None of the documents was found.", DocumentNotFoundError.code
    return "No document could be summarised.", DependencyError.code
