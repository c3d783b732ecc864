"""Ingestion's steps by name: each does one thing and answers with a reply; expected failures are replies."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

from shared.documents import figure_store, index_rows, page_files
from shared.documents.state import DocumentState, DocumentStore
from shared.ingestion import acceptance, captions, indexing, metadata, rights
from shared.ingestion.acceptance import HasEnded, check_holder, pipeline
from shared.ingestion.changes import correct
from shared.ingestion.claims import CHANGES, PARSED, ClaimLostError, IngestTask, now
from shared.ingestion.copies import is_new_name, same_bytes
from shared.ingestion.models import (
    BlockChanges,
    Closed,
    CloseRequest,
    IngestFailure,
    IngestReply,
    IngestResult,
    IngestStep,
    ParsedFile,
    RightsApplied,
    SmallDone,
    Superseded,
)
from shared.ingestion.parse_document import parse
from shared.ingestion.parser_process import NoWorkerFreeError
from shared.ingestion.record_manager import make_blocks
from shared.ingestion.services import IngestionServices
from shared.platform.errors import ConflictError, DependencyError, GroundworkError, NotFoundError
from shared.platform.names import FIGURES
from shared.platform.telemetry import get_logger

_MAX_REASON_CHARS = 500

StepName = Literal[
    "accept",
    "small",
    "parse",
    "describe",
    "plan",
    "caption",
    "write_blocks",
    "finish",
    "apply_rights",
    "remove",
]


async def perform(name: StepName, step: IngestStep, services: IngestionServices) -> IngestReply:
    """Perform one step. May run twice for the same step after a crash, and does no harm then."""
    task = IngestTask(step, services, is_whole=name == "small")
    return await _reply_of(name, step, _STEPS[name](task))


async def perform_close(request: CloseRequest, services: IngestionServices) -> IngestReply:
    """Perform the last step."""
    return await _reply_of("close", request.step, _close(request, services))


async def perform_check(step: IngestStep, documents: DocumentStore, has_ended: HasEnded) -> IngestReply:
    """Look whether the document's holder lives, after another instance was found to hold it."""
    return await _reply_of("check_holder", step, check_holder(step, documents, has_ended))


async def _reply_of(name: str, step: IngestStep, performed: Awaitable[IngestReply]) -> IngestReply:
    try:
        return await performed
    except ClaimLostError:
        return Superseded()
    except GroundworkError as failed:
        get_logger().warning(
            "ingestion.step_failed", step=name, run_id=step.instance_id, error_type=failed.code
        )
        return IngestFailure(
            reason=failed.detail[:_MAX_REASON_CHARS],
            hint=" ".join(failed.hints)[:_MAX_REASON_CHARS],
            retryable=failed.retryable,
            retry_after_s=failed.retry_after_s,
            waits=isinstance(failed, NoWorkerFreeError),
        )
    except Exception:  # noqa: BLE001 - the border: a defect ends this document, visibly, and no other
        get_logger().exception("ingestion.defect", step=name, run_id=step.instance_id)
        return IngestFailure(
            reason="The document could not be ingested because of an internal error.",
            hint="Tell the operator the document's name and the time.",
        )


async def _ingest_small(task: IngestTask) -> SmallDone:
    """Everything from the content to the end of the claim.

    Raises:
        BadDocumentError, PayloadTooLargeError, NotFoundError: the file cannot be ingested, and why.
        DependencyError: a service failed.
    """
    parsed = await parse(task)
    result = IngestResult(outcome="current")
    if not parsed.same_bytes:
        await metadata.describe(task)
        planned = await indexing.plan(task)
        if planned.new_figure_count:
            await captions.caption(task)
        if planned.new_count:
            await indexing.write_blocks(task)
        await indexing.finish(task)
        counts = planned.model_dump(include={"new_count", "kept_count", "moved_count", "gone_count"})
        result = IngestResult(outcome="ready", **counts)
    # An attempt that broke off within its last step leaves old rows, or newer rights that rows lack.
    elif await task.exists(PARSED):
        await indexing.finish(task)
    elif task.known is None or task.known.wanted_rights != task.known.rights:
        await _apply_rights(task)
    closed = await task.close(CloseRequest(step=task.step, status="ready"))
    return SmallDone(result=result, again=closed.again)


async def _apply_rights(task: IngestTask) -> RightsApplied:
    return await rights.apply_rights(task, task.services.content_index, task.services.documents_index)


async def _close(request: CloseRequest, services: IngestionServices) -> Closed:
    """Note how the ingestion ended, and end the claim."""
    task = IngestTask(request.step, services)
    if request.status == "failed":
        # Before the claim ends: what comes after it belongs to the next one.
        state = await task.update()
        try:
            await _clear_up(task, state)
        except GroundworkError as failed:
            # That it failed, and why, must be noted in any case; the next ingestion replaces what is left.
            get_logger().warning("ingestion.not_cleared", doc_id=state.doc_id, error_type=failed.code)
    return await task.close(request)


async def _remove(task: IngestTask) -> Closed:
    """Remove every trace of a document whose blob is gone; its state last, so that a crash is repaired."""
    state = await task.update()
    if state.corrections:
        await _hand_over(task, state)
    await _remove_rows(task)
    await task.remove_files()
    await metadata.remove_extracted(task.blobs, task.doc_id)
    await page_files.remove_all(task.blobs, task.doc_id)
    return await task.forget()


async def _hand_over(task: IngestTask, state: DocumentState) -> None:
    """Give the corrections of a document whose file is gone to its new name, if there is one.

    Raises:
        DependencyError: somebody works on that one. On the last attempt the corrections are lost.
    """
    moment, index = now(), task.services.documents_index
    async for other in same_bytes(state, state.content_hash, index, task.documents):
        if not is_new_name(state, other, moment):
            continue
        try:
            # An event that left it a note meanwhile sees that its holder has ended (`check_holder`).
            await correct(other, state.corrections, task.services)
        except ConflictError:
            if not task.step.last_attempt:
                raise DependencyError("The copy of the document is in work.", "It is tried again.") from None
        return


async def _clear_up(task: IngestTask, state: DocumentState) -> None:
    """Remove what the ingestion that fails now wrote; twice does no harm.

    Raises:
        GroundworkError: a service failed.
    """
    current = pipeline(task.services.settings)
    if not state.content_hash:
        await _remove_rows(task)
        await page_files.remove_all(task.blobs, state.doc_id)
    elif (state.content_hash, state.pipeline) != (state.tried_hash, current):
        task.content_hash = state.tried_hash
        await _remove_new(task)
        await page_files.keep_only(task.blobs, state.doc_id, state.content_hash)
    await task.remove_files()


async def _remove_rows(task: IngestTask) -> None:
    # The row first: a document in the list must be searchable in full.
    await task.services.documents_index.delete([task.doc_id])
    await index_rows.remove_blocks(task.services.content_index, task.doc_id)
    await task.blobs.delete_prefix(FIGURES, f"{task.doc_id}/")


async def _remove_new(task: IngestTask) -> None:
    """Remove the new version's own blocks, and the pictures that no block of the old one shows."""
    try:
        parsed = await task.get(PARSED, ParsedFile)
        changes = await task.get(CHANGES, BlockChanges)
    except NotFoundError:
        return  # it failed before anything was written
    model = task.services.settings.models.embedding
    known_captions = await figure_store.captions(task.blobs, task.doc_id)
    new: set[str] = set()
    for known in (known_captions, {}):  # a figure's block may have been written under either id
        blocks = make_blocks(task.doc_id, parsed, known, model)
        new |= {blocks[position].block_id for position in changes.new}
    await task.services.content_index.delete(sorted(new))
    shown = await index_rows.figure_keys(task.services.content_index, task.doc_id, without=new)
    await figure_store.keep_only(task.blobs, task.doc_id, shown)


_STEPS: Mapping[StepName, Callable[[IngestTask], Awaitable[IngestReply]]] = {
    "accept": acceptance.accept,
    "small": _ingest_small,
    "parse": parse,
    "describe": metadata.describe,
    "plan": indexing.plan,
    "caption": captions.caption,
    "write_blocks": indexing.write_blocks,
    "finish": indexing.finish,
    "apply_rights": _apply_rights,
    "remove": _remove,
}
