"""Steps that put others together or end an ingestion, and what every step replies when it fails."""

from collections.abc import Awaitable, Callable
from contextlib import nullcontext

from shared.access.daily_use import Usage
from shared.access.limits import charge
from shared.documents import figure_store, index_rows, page_files
from shared.documents.ids import sender_of
from shared.documents.state import DocumentState
from shared.ingestion import acceptance, captions, indexing, metadata
from shared.ingestion.acceptance import pipeline
from shared.ingestion.changes import correct
from shared.ingestion.claims import CHANGES, PARSED, ClaimLostError, IngestTask, now
from shared.ingestion.copies import is_new_name, same_bytes
from shared.ingestion.fair_turns import SHARES, NoPlaceFreeError
from shared.ingestion.models import (
    BLOCK_COUNTS,
    Accepted,
    BlockChanges,
    Closed,
    CloseRequest,
    IngestFailure,
    IngestReply,
    IngestResult,
    ParsedFile,
    SmallDone,
    Superseded,
)
from shared.ingestion.parse_document import parse
from shared.ingestion.rights import apply_rights
from shared.platform.errors import ConflictError, DependencyError, GroundworkError, NotFoundError
from shared.platform.names import FIGURES
from shared.platform.telemetry import get_logger

_MAX_REASON_CHARS = 500

Act = Callable[..., Awaitable[IngestReply]]
"""A step: takes an IngestTask, and what else its activity gives it."""


async def perform(act: Act, task: IngestTask, *details: object, in_turn: bool = False) -> IngestReply:
    """The reply of a step. It may run twice after a crash, and does no harm then.

    What it used up counts for the document's owner, also when it fails.

    Args:
        details: given to `act` after the task.
        in_turn: the step takes long, and keeps to its person's share of this instance.
    """
    try:
        try:
            with SHARES.taken(sender_of(task.step.blob_name)) if in_turn else nullcontext():
                return await act(task, *details)
        except NoPlaceFreeError:
            await task.update()  # a document that waits is still held
            raise
        finally:
            owner = task.known.wanted_rights.owner_id if task.known else None
            if owner and task.used != Usage():
                await charge(owner, task.used, task.services.user_limits)
    except ClaimLostError:
        await _remove_late_files(task)
        return Superseded()
    except GroundworkError as failed:
        return _failure(act.__name__, task, failed)
    except Exception:  # noqa: BLE001 - the border: a defect ends this document, visibly, and no other
        get_logger().exception("ingestion.defect", step=act.__name__, run_id=task.step.instance_id)
        return IngestFailure(
            reason="The document could not be ingested because of an internal error.",
            hint="Tell the operator the document's name and the time.",
        )


def _failure(name: str, task: IngestTask, failed: GroundworkError) -> IngestFailure:
    waits, run_id = isinstance(failed, NoPlaceFreeError), task.step.instance_id
    if not waits:
        get_logger().warning("ingestion.step_failed", step=name, run_id=run_id, error_type=failed.code)
    return IngestFailure(
        reason=failed.detail[:_MAX_REASON_CHARS],
        hint=" ".join(failed.hints)[:_MAX_REASON_CHARS],
        failure=failed.failure,
        retryable=failed.retryable,
        retry_after_s=failed.retry_after_s,
        waits=waits,
    )


async def accept(task: IngestTask) -> Accepted:
    """Accept the document; a small one is ingested at once, unless the places are taken.

    Raises:
        GroundworkError: a service failed, or as `ingest_small`.
    """
    task.is_whole = True  # until something is found that takes more
    accepted = await acceptance.accept(task)
    if not (accepted.small and task.is_whole):
        return accepted
    try:
        with SHARES.taken(sender_of(task.step.blob_name)):
            return accepted.model_copy(update={"done": await ingest_small(task)})
    except GroundworkError as failed:
        await task.update()  # what was noted: who may see the document, also if it failed
        if isinstance(failed, NoPlaceFreeError):
            return accepted
        raise


async def ingest_small(task: IngestTask) -> SmallDone:
    """Everything from the content of a small document to the end of the claim.

    Raises:
        BadDocumentError, PayloadTooLargeError, NotFoundError: the file cannot be ingested, and why.
        DependencyError: a service failed.
    """
    task.is_whole = True
    parsed = await parse(task)
    result = IngestResult(outcome="current")
    async with task.counted_parse():
        if not parsed.same_bytes:
            await metadata.describe(task)
            planned = await indexing.plan(task)
            if planned.new_figure_count:
                await captions.caption(task)
            if planned.new_count:
                await indexing.write_blocks(task)
            else:
                await task.update()  # who may read it may have changed, or the claim, while a model was asked
            await indexing.finish(task)
            result = IngestResult(outcome="ready", **planned.model_dump(include=BLOCK_COUNTS))
        # An attempt that broke off within its last step leaves old rows, or newer rights that rows lack.
        elif await task.exists(PARSED):
            await indexing.finish(task)
        elif task.known is None or task.known.wanted_rights != task.known.rights:
            await apply_rights(task)
    closed = await task.close(CloseRequest(step=task.step, status="ready"))
    return SmallDone(result=result, again=closed.again)


async def close(task: IngestTask, request: CloseRequest) -> Closed:
    """Note how the ingestion ended, and end the claim."""
    if request.status == "failed":
        # Before the claim ends: what comes after it belongs to the next one.
        state = await task.update()
        try:
            await _clear_up(task, state)
        except GroundworkError as failed:
            # That it failed, and why, must be noted in any case; the next ingestion replaces what is left.
            get_logger().warning("ingestion.cleanup_failed", doc_id=state.doc_id, error_type=failed.code)
    return await task.close(request)


async def remove(task: IngestTask) -> Closed:
    """Remove every trace of a document whose blob is gone; its state last, so that a crash is repaired."""
    state = await task.update(is_deleted=True)
    if state.corrections:
        await _hand_over(task, state)
    await _remove_rows(task)
    await _remove_files(task)
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
                raise DependencyError(
                    "The copy of the document is being processed.", "It will be retried."
                ) from None
        return


async def _clear_up(task: IngestTask, state: DocumentState) -> None:
    """Remove what the ingestion that fails now wrote; twice does no harm.

    Raises:
        GroundworkError: a service failed.
    """
    current = pipeline(task.services.settings)
    if not state.content_hash:
        await _remove_rows(task)
        await task.blobs.delete_prefix(FIGURES, f"{task.doc_id}/")
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


async def _remove_files(task: IngestTask) -> None:
    await task.blobs.delete_prefix(FIGURES, f"{task.doc_id}/")
    await task.remove_files()
    await metadata.remove_extracted(task.blobs, task.doc_id)
    await page_files.remove_all(task.blobs, task.doc_id)


async def _remove_late_files(task: IngestTask) -> None:
    """Remove the files of a deleted document that a step has stored after its removal."""
    try:
        state = await task.documents.get(task.doc_id)
        if state is None or state.is_deleted:
            await _remove_files(task)
    except GroundworkError as failed:
        get_logger().warning("ingestion.cleanup_failed", doc_id=task.doc_id, error_type=failed.code)


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
        blocks = indexing.make_blocks(task.doc_id, parsed, known, model)
        new |= {blocks[position].block_id for position in changes.new}
    await task.services.content_index.delete(sorted(new))
    shown = await index_rows.figure_keys(task.services.content_index, task.doc_id, without=new)
    await figure_store.keep_only(task.blobs, task.doc_id, shown)
