"""The steps of a summary. Each reads and writes the summary's blobs and may run twice after a crash.

A document's steps split it into windows, read them and write its result. The last step, `merge`, writes one
result from the complete and partial results of all documents. Permissions are checked before each window and
again before each result, so a document that became unreadable contributes nothing.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

from shared.access.limits import release
from shared.evidence.messages import messages_in
from shared.platform.concurrency import run_together
from shared.platform.errors import (
    CallTimeoutError,
    DependencyError,
    DocumentNotFoundError,
    GroundworkError,
    NotFoundError,
)
from shared.platform.telemetry import get_logger
from shared.retrieval.blocks import BlockLookup, DocumentBlocks
from shared.retrieval.document_rows import RowsReadOnce
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.models import DocumentRecord
from shared.retrieval.secured_index import SecuredIndex
from shared.runs.metering import MeteredChatModel, TokenMeter, charge_to
from shared.summaries.budget import merging_tokens, most_windows, reading_tokens
from shared.summaries.findings import (
    common_tags,
    own_statements,
    proved_window,
    without_repeated_metrics,
    without_repeats,
)
from shared.summaries.model_calls import Reduced, SummaryModel, reduce_findings, split
from shared.summaries.models import (
    DocumentEnded,
    DocumentOpened,
    DocumentPlan,
    DocumentResult,
    SummaryClosed,
    SummaryEnd,
    SummaryReply,
    SummaryRequest,
    SummaryStep,
    SummaryStepFailed,
    WindowResult,
    WindowsRead,
)
from shared.summaries.result import not_found, summary_result
from shared.summaries.services import SummaryServices
from shared.summaries.store import SummaryStore

MAX_KEY_FINDINGS = 20
MAX_DOCUMENT_KEY_FINDINGS = 12
_EACH_UNFINISHED = 8  # findings of a document whose child wrote no result
StepName = Literal["open", "read", "reduce", "merge"]


async def perform(name: StepName, step: SummaryStep, services: SummaryServices) -> SummaryReply:
    """Perform one step. Expected failures are returned; defects are raised."""
    store = SummaryStore(services.blobs, step.summary_id)
    try:
        if (end := await store.end()) is not None:
            return SummaryClosed(status=end.status)
        request = await store.request()
        if name == "merge":
            return await _merge_documents(request, store, services)
        run = DocumentRun(services, store, request, step)
        return await {"open": run.open, "read": run.read, "reduce": run.reduce}[name]()
    except DocumentNotFoundError:
        # Missing, or no longer readable by this user: nothing of it is used.
        doc_id = (await store.request()).order.doc_ids[step.index]
        refused = DocumentResult(doc_id=doc_id, status="not_found", warning=not_found(doc_id))
        return DocumentEnded(status=(await store.put_result(step.index, refused)).status)
    except NotFoundError:
        return SummaryClosed(status="cancelled")  # deleted
    except GroundworkError as failed:
        get_logger().warning("summary.step_failed", run_id=step.summary_id, error_type=failed.code, step=name)
        return SummaryStepFailed(error_type=failed.code, retryable=failed.retryable)


async def _merge_documents(
    request: SummaryRequest, store: SummaryStore, services: SummaryServices
) -> SummaryReply:
    """Compute and store the end of a summary."""
    documents = await _readable_results(request, store, services)
    end = await _end_of(request, documents, services)
    if await store.is_closed():  # deleted meanwhile: leave nothing behind
        return SummaryClosed(status="cancelled")
    closed = SummaryClosed(status=(await store.put_end(end)).status)
    await release(request.user.user_id, request.summary_id, services.settings, services.user_limits)
    return closed


class DocumentRun:
    """The steps of one document of a summary."""

    def __init__(
        self, services: SummaryServices, store: SummaryStore, request: SummaryRequest, step: SummaryStep
    ) -> None:
        self._services = services
        self._settings = services.settings
        self._store = store
        self._request = request
        self._step = step
        self._doc_id = request.order.doc_ids[step.index]
        rows = RowsReadOnce(services.documents)
        self._documents = DocumentSearch(SecuredIndex(services.documents_index, request.user, rows))
        self._content = SecuredIndex(services.content_index, request.user, rows)

    async def open(self) -> SummaryReply:
        """Split the document into windows."""
        record = await self._documents.get(self._doc_id)
        existing = await self._store.plan(self._step.index)
        plan = existing or await self._store.put_plan(self._step.index, await self._planned(record))
        return DocumentOpened(window_count=len(plan.windows))

    async def read(self) -> SummaryReply:
        """Read a range of windows within the time limit, skipping those already read."""
        plan = await self._plan()
        count = self._step.end - self._step.first
        model = self._model(self._request.map_until, reading_tokens(self._settings.summaries, count))
        done = failed = again = 0
        for number in range(self._step.first, self._step.end):
            if await self._store.window(self._step.index, number) is not None:
                done += 1
                continue
            if datetime.now(UTC) >= self._request.map_until or await self._store.is_closed():
                failed += self._step.end - number
                break
            try:
                await self._store.put_window(self._step.index, number, await self._read(plan, number, model))
                done += 1
            except DocumentNotFoundError:
                raise
            except GroundworkError as unread:
                get_logger().warning(
                    "summary.window_failed", run_id=self._step.summary_id, error_type=unread.code
                )
                failed += 1
                again += unread.retryable and not isinstance(unread, CallTimeoutError)
        return WindowsRead(done=done, failed=failed, again=again)

    async def reduce(self) -> SummaryReply:
        """Compute the document's result from its windows."""
        if (existing := await self._store.result(self._step.index)) is not None:
            return DocumentEnded(status=existing.status)
        await self._documents.get(self._doc_id)  # it may have become unreadable since the last window
        plan = await self._plan()
        windows = await read_windows(self._store, self._step.index, plan)
        result = await self._reduced(plan, windows)
        return DocumentEnded(status=(await self._store.put_result(self._step.index, result)).status)

    async def _planned(self, record: DocumentRecord) -> DocumentPlan:
        windows, left_out = windows_of(
            await DocumentBlocks(self._content).sizes(self._doc_id),
            self._settings.summaries.window_tokens,
            most_windows(self._settings.summaries, len(self._request.order.doc_ids)),
        )
        return DocumentPlan(
            doc_id=self._doc_id,
            filename=record.filename,
            windows=windows,
            left_out_blocks=left_out,
            source_url=record.source_url,
            language=record.language or "",
        )

    async def _plan(self) -> DocumentPlan:
        plan = await self._store.plan(self._step.index)
        if plan is None:
            raise NotFoundError("The summary was deleted.")
        return plan

    async def _read(self, plan: DocumentPlan, number: int, model: SummaryModel) -> WindowResult:
        """Read one window.

        Raises:
            DocumentNotFoundError: the document was closed or deleted.
        """
        record = await self._documents.get(self._doc_id)
        hits = await BlockLookup(self._content).get_many(plan.windows[number])
        hits = [hit for hit in hits if hit.doc_id == self._doc_id]
        if not hits:
            # A new version has other blocks, or the blocks' permissions changed before the row's.
            raise NotFoundError("The blocks of this window no longer exist.")
        output = await model.read(hits, {self._doc_id: record})
        return proved_window(output, hits, plan.source_url)

    async def _reduced(self, plan: DocumentPlan, windows: list[WindowResult]) -> DocumentResult:
        findings = without_repeats(finding for window in windows for finding in window.findings)
        tokens = merging_tokens(self._settings.summaries, len(self._request.order.doc_ids))
        reduced = await reduce_findings(
            findings,
            common_tags(window.tags for window in windows),
            self._model(self._reduce_until, tokens),
            most_tokens=self._settings.summaries.window_tokens,
            most_key=MAX_DOCUMENT_KEY_FINDINGS,
        )
        result = document_result(plan, windows, reduced.error_type)
        if result.status == "failed":
            return result
        key_findings = [reduced.findings[place] for place in reduced.key_places]
        cited = dict.fromkeys(place for statement in reduced.statements for place in statement.findings)
        extra = [reduced.findings[place] for place in cited if place not in reduced.key_places]
        order = {place: rank for rank, place in enumerate(dict.fromkeys((*reduced.key_places, *cited)))}
        statements = tuple(
            one.model_copy(update={"findings": tuple(order[place] for place in one.findings)})
            for one in reduced.statements
        )
        return result.model_copy(
            update={
                "findings": (*key_findings, *extra),
                "key_count": len(key_findings),
                "statements": statements,
                "metrics": tuple(without_repeated_metrics(m for one in windows for m in one.metrics)),
                "tags": reduced.tags,
            }
        )

    @property
    def _reduce_until(self) -> datetime:
        # Shortly before the parent ends late children, so that the result is stored in time.
        until = self._request.children_until
        return until - (until - self._request.map_until) * 0.1

    def _model(self, until: datetime, tokens: int) -> SummaryModel:
        return _metered(self._services, self._request, until, tokens)


def _metered(
    services: SummaryServices, request: SummaryRequest, until: datetime, tokens: int
) -> SummaryModel:
    """Return the model, limited to the given tokens and charged to the summary's owner."""
    charge = charge_to(request.user.user_id, services.user_limits)
    model = MeteredChatModel(services.chat_model, TokenMeter(tokens), charge=charge)
    return SummaryModel(model, request, services.settings, until)


def windows_of(
    blocks: Sequence[tuple[str, int]], most_tokens: int, most_windows: int
) -> tuple[tuple[tuple[str, ...], ...], int]:
    """Return windows of block ids, and the number of blocks beyond the last allowed window.

    Args:
        blocks: (block id, tokens) in document order.
    """
    pieces = split([size for _, size in blocks], most_tokens)
    windows = tuple(tuple(blocks[place][0] for place in piece) for piece in pieces[:most_windows])
    return windows, len(blocks) - sum(len(window) for window in windows)


async def read_windows(store: SummaryStore, index: int, plan: DocumentPlan) -> list[WindowResult]:
    """Return the windows read so far, in order."""
    names = await store.names()
    read = [number for number in range(len(plan.windows)) if f"d{index:02d}/w{number:03d}" in names]
    results = [await store.window(index, number) for number in read]
    return [window for window in results if window is not None]


def document_result(
    plan: DocumentPlan, windows: list[WindowResult], error_type: str | None = None
) -> DocumentResult:
    """Return a document's outcome without findings: its status and what is missing.

    Args:
        error_type: why the model could not merge the findings.
    """
    name = plan.filename
    notes = []
    if not plan.windows:
        notes.append(f"{name} holds no text that could be read.")
    elif len(windows) < len(plan.windows):
        notes.append(
            f"{len(plan.windows) - len(windows)} of {len(plan.windows)} parts of {name} were not read."
        )
    elif not any(window.findings for window in windows):
        notes.append(f"Nothing that the model said of {name} could be proved.")
    if plan.left_out_blocks:
        notes.append(f"{name} is long: the last {plan.left_out_blocks} blocks were left out.")
    if error_type:
        notes.append(f"The findings of {name} stand as they are: the model failed ({error_type}).")
    status: Literal["done", "partial", "failed"] = "partial" if notes else "done"
    if not any(window.findings for window in windows):
        status = "failed"
    return DocumentResult(
        doc_id=plan.doc_id,
        filename=name,
        language=plan.language,
        status=status,
        warning=" ".join(notes) or None,
    )


async def _readable_results(
    request: SummaryRequest, store: SummaryStore, services: SummaryServices
) -> list[DocumentResult]:
    """Return the children's results without documents that the user can no longer read."""
    doc_ids = request.order.doc_ids
    results = await run_together(*(_result(doc_id, index, store) for index, doc_id in enumerate(doc_ids)))
    index = SecuredIndex(services.documents_index, request.user, services.documents)
    readable = await DocumentSearch(index).get_many(doc_ids)
    return [
        result
        if result.doc_id in readable
        else DocumentResult(doc_id=result.doc_id, status="not_found", warning=not_found(result.doc_id))
        for result in results
    ]


async def _result(doc_id: str, index: int, store: SummaryStore) -> DocumentResult:
    """Return a child's result, or its partial windows if it failed or was late."""
    if (existing := await store.result(index)) is not None:
        return existing
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
    # A sample of every window rather than the first windows only.
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


async def _end_of(
    request: SummaryRequest, documents: Sequence[DocumentResult], services: SummaryServices
) -> SummaryEnd:
    used = [document for document in documents if document.status in ("done", "partial")]
    reduced = await _reduced(request, used, services)
    failed = f"The documents' findings were not merged: the model failed ({reduced.error_type})."
    result = summary_result(
        documents,
        reduced.findings,
        reduced.statements,
        key_places=reduced.key_places,
        metrics=[metric for document in used for metric in document.metrics],
        tags=reduced.tags,
        warnings=[failed] if reduced.error_type else [],
        messages=messages_in(request.order.language or (used[0].language if used else "")),
    )
    now = datetime.now(UTC)
    if used:
        return SummaryEnd(status="completed", finished_at=now, result=result)
    error, error_type = "No document could be summarised.", DependencyError.code
    if all(document.status == "not_found" for document in documents):
        error, error_type = "None of the documents was found.", DocumentNotFoundError.code
    return SummaryEnd(status="failed", finished_at=now, result=result, error=error, error_type=error_type)


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
        _metered(services, request, request.deadline, merging_tokens(settings.summaries, 1)),
        most_tokens=settings.summaries.window_tokens,
        most_key=MAX_KEY_FINDINGS,
    )
