"""Ingestion steps that combine other steps or end an ingestion, and the conversion of errors to replies."""

from collections.abc import Awaitable, Callable
from contextlib import nullcontext

from shared.access.daily_use import Usage
from shared.access.limits import charge
from shared.documents import index_rows, versions
from shared.documents.ids import ingestion_id, sender_of
from shared.documents.state import DocumentState
from shared.ingestion import acceptance, captions, indexing, metadata
from shared.ingestion.changes import correct
from shared.ingestion.copies import find_original, is_new_name, same_bytes
from shared.ingestion.fair_turns import SHARES, NoPlaceFreeError
from shared.ingestion.models import (
    BLOCK_COUNTS,
    Accepted,
    BlockChanges,
    Closed,
    CloseRequest,
    Fenced,
    IngestFailure,
    IngestReply,
    IngestResult,
    ParsedFile,
    Planned,
    RestRequest,
    SmallDone,
)
from shared.ingestion.parse_document import parse
from shared.ingestion.rights import apply_rights
from shared.ingestion.row_changes import apply_corrections
from shared.ingestion.task import FencedError, IngestTask, now
from shared.platform.errors import GroundworkError
from shared.platform.telemetry import get_logger

_MAX_REASON_CHARS = 500

Act = Callable[..., Awaitable[IngestReply]]
"""A step: takes an `IngestTask` and the other inputs of its activity."""


async def perform(act: Act, task: IngestTask, *details: object, in_turn: bool = False) -> IngestReply:
    """Run a step and return its reply. Errors become `Fenced` or `IngestFailure` replies. A step may be
    repeated without harm.

    The usage of the step is charged to the document's owner, even if the step fails.

    Args:
        details: passed to `act` after the task.
        in_turn: count the step towards the share of its user in this instance, because it takes long.
    """
    try:
        try:
            with SHARES.hold(sender_of(task.step.blob_name)) if in_turn else nullcontext():
                return await act(task, *details)
        except NoPlaceFreeError:
            # Renew the row's timestamp, so that a document that waits for a worker doesn't look stuck.
            await task.update()
            raise
        finally:
            owner = task.known.wanted_rights.owner_id if task.known else None
            if owner and task.used != Usage():
                await charge(owner, task.used, task.services.user_limits)
    except FencedError:
        await _remove_late_files(task)
        return Fenced()
    except GroundworkError as failed:
        return _failure(act.__name__, task, failed)
    except Exception:  # noqa: BLE001 - boundary: a defect fails this document visibly, and no other
        get_logger().exception(
            "ingestion.defect", step=act.__name__, run_id=ingestion_id(task.step.blob_name)
        )
        return IngestFailure(
            reason="The document could not be ingested because of an internal error.",
            hint="Report the document's name and the time to the operator.",
            **task.observed_values,
        )


def _failure(name: str, task: IngestTask, failed: GroundworkError) -> IngestFailure:
    waits, run_id = isinstance(failed, NoPlaceFreeError), ingestion_id(task.step.blob_name)
    if not waits:
        get_logger().warning("ingestion.step_failed", step=name, run_id=run_id, error_type=failed.code)
    return IngestFailure(
        reason=failed.detail[:_MAX_REASON_CHARS],
        hint=" ".join(failed.hints)[:_MAX_REASON_CHARS],
        failure=failed.failure,
        retryable=failed.retryable,
        retry_after_s=failed.retry_after_s,
        waits=waits,
        **task.observed_values,
    )


async def accept(task: IngestTask) -> Accepted:
    """Determine the work to do for a document. A small document is ingested at once, in the same activity.

    Raises:
        GroundworkError: a service failed, or a small document can't be ingested.
    """
    accepted = await acceptance.accept(task)
    if not accepted.small or accepted.rights_changed:
        return accepted
    return accepted.model_copy(update={"done": await ingest_small(task)})


async def ingest_small(task: IngestTask) -> SmallDone:
    """Ingest a small document completely, including the final status. Intermediate results are kept in
    memory.

    Raises:
        BadDocumentError, PayloadTooLargeError, NotFoundError: the file can't be ingested; the error says why.
        DependencyError: a service failed.
    """
    state = await task.current_state()
    is_new = not (state.tried_hash or state.content_hash)
    parsed = await parse(task)
    result = IngestResult(outcome="current")
    async with task.count_parse():
        if parsed is None:
            await end_unchanged(task)
        else:
            changes = await _write_small(task, parsed, is_new=is_new)
            result = IngestResult(
                outcome="ready", **count_changes(parsed, changes).model_dump(include=BLOCK_COUNTS)
            )
    closed = await task.close(CloseRequest(step=task.step, status="ready"))
    return SmallDone(result=result, again=closed.again)


async def _write_small(task: IngestTask, parsed: ParsedFile, *, is_new: bool) -> BlockChanges:
    """Derive the metadata of a version, caption its figures, and write its embedded blocks. `is_new` means
    that no block of the document was ever written.
    """
    original = await find_original(task)
    described = await metadata.describe(task, parsed, original)
    indexed = None if is_new else await index_rows.block_hashes(task.services.content_index, task.doc_id)
    changes = await indexing.plan(task, parsed, described, indexed)
    if figures := captions.new_figures(parsed, changes):
        await captions.caption(task, figures, original)
    version = await indexing.make_version(task, parsed, described)
    if changes.new:
        await indexing.write_blocks(task, version, changes.new, original)
    else:
        # Read the permissions and check the fence again, because either may have changed during the model
        # call.
        await task.update()
    await indexing.finish(task, version, changes, original)
    if not is_new or parsed.figures:
        await indexing.clean_up(task)
    return changes


async def end_unchanged(task: IngestTask) -> None:
    """End the ingestion of a version that was already indexed. First complete any work that an interrupted
    attempt has left.

    An attempt that died in its last step may have left stale blocks, or rows with outdated permissions.
    """
    await indexing.clean_up(task)
    state = await task.current_state()
    if state.wanted_rights != state.rights or state.rows_outdated:
        await apply_rights(task)
    if state.has_unshown_corrections:
        await apply_corrections(task)


def count_changes(parsed: ParsedFile, changes: BlockChanges) -> Planned:
    """Return the numbers of new, moved, unchanged and deleted blocks."""
    return Planned(
        new_count=len(changes.new),
        new_figure_count=len(captions.new_figures(parsed, changes)),
        moved_count=len(changes.moved),
        kept_count=len(changes.kept),
        gone_count=len(changes.gone),
    )


async def close(task: IngestTask, request: CloseRequest) -> Closed:
    """Record how the ingestion ended. After a failure, first delete its partial results."""
    if request.status == "failed":
        # Clean up before the ingestion is closed. Afterwards, the next execution may already be writing.
        state = await task.update()
        try:
            await _clear_up(task, state)
        except GroundworkError as failed:
            # Record the failed ingestion even if the cleanup failed. The next ingestion replaces the
            # remaining data.
            get_logger().warning("ingestion.cleanup_failed", doc_id=state.doc_id, error_type=failed.code)
    return await task.close(request)


async def rest(task: IngestTask, request: RestRequest) -> Closed:
    """End this execution and pause its document. A new execution starts after the pause."""
    return await task.rest(request)


async def remove(task: IngestTask) -> Closed:
    """Delete all data of a document whose file was deleted. The state is deleted last, so that a retry after
    a crash can finish the removal.
    """
    state = await task.update(is_deleted=True)
    if state.corrections:
        await _hand_over(task, state)
    await _remove_rows(task)
    await versions.remove_all(task.blobs, task.doc_id)
    return await task.forget()


async def _hand_over(task: IngestTask, state: DocumentState) -> None:
    """If the deleted document has a renamed copy, move its corrections to the copy."""
    moment, index = now(), task.services.documents_index
    async for other in same_bytes(state, state.content_hash, index, task.documents):
        if not is_new_name(state, other, moment):
            continue
        await correct(other, state.corrections, task.services)
        return


async def _clear_up(task: IngestTask, state: DocumentState) -> None:
    """Delete the partial results of a failed ingestion. The published version, if any, is kept. Idempotent.

    Raises:
        GroundworkError: a service failed.
    """
    if state.version_key:
        await indexing.clean_up(task)
    else:
        await _remove_rows(task)
        await versions.remove_all(task.blobs, task.doc_id)


async def _remove_rows(task: IngestTask) -> None:
    # Delete the record first, because a listed document must be completely searchable.
    await task.services.documents_index.delete([task.doc_id])
    await index_rows.remove_blocks(task.services.content_index, task.doc_id)


async def _remove_late_files(task: IngestTask) -> None:
    """Delete the files that a concurrent step has stored after the document was removed."""
    try:
        state = await task.documents.get(task.doc_id)
        if state is None or state.is_deleted:
            await versions.remove_all(task.blobs, task.doc_id)
    except GroundworkError as failed:
        get_logger().warning("ingestion.cleanup_failed", doc_id=task.doc_id, error_type=failed.code)
