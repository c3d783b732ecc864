"""Requests about the erasure of a person: start it, read its progress, and resume erasures that have
stopped.
"""

from datetime import UTC, datetime, timedelta

from pydantic import ValidationError

from shared.erasure.models import DocumentsWish, EraseUserTask, ErasureRecord, ErasureView
from shared.erasure.policy import erasure_id, view_of
from shared.erasure.services import ErasureServices
from shared.platform.blobs import BlobStore, find_model, write_model
from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.names import ERASURES_QUEUE, WORK
from shared.platform.queues import TaskQueues
from shared.platform.telemetry import get_logger, pseudonym

FOLDER = "erasures/"


async def find_record(blobs: BlobStore, erasure_id: str) -> ErasureRecord | None:
    """Return the stored record of an erasure, running or ended. Return None if there was none or its report
    was purged.
    """
    return await find_model(blobs, WORK, _path(erasure_id), ErasureRecord)


async def keep_record(blobs: BlobStore, record: ErasureRecord) -> ErasureRecord:
    """Store the record of an erasure, replacing the previous one, and return it."""
    await write_model(blobs, WORK, _path(record.erasure_id), record)
    return record


def _path(erasure_id: str) -> str:
    return f"{FOLDER}{erasure_id}.json"


async def ask_for_erasure(user_id: str, documents: DocumentsWish, services: ErasureServices) -> ErasureView:
    """Start the erasure of a person's data. A request that repeats one in progress has no effect.

    Raises:
        ConflictError: an active erasure treats their documents differently.
    """
    existing = await find_record(services.blobs, erasure_id(user_id))
    if existing is not None and existing.status == "running":
        if existing.documents != documents:
            raise ConflictError(
                f"An erasure with `documents={existing.documents}` is already in progress.",
                "Try again when the erasure in progress has ended.",
            )
        await send_on(existing, services.queues)
        return view_of(existing, user_id)
    now = datetime.now(UTC)
    record = ErasureRecord(
        erasure_id=erasure_id(user_id), user_id=user_id, documents=documents, asked_at=now, not_before=now
    )
    # The record is stored first, because the hourly timer resends lost messages from stored records.
    await keep_record(services.blobs, record)
    await send_on(record, services.queues)
    get_logger().info("user_erasure.requested", subject=pseudonym(user_id), documents=documents)
    return view_of(record, user_id)


async def erasure_of(user_id: str, blobs: BlobStore) -> ErasureView:
    """Return the progress of a person's erasure or, once it has ended, its report.

    Raises:
        NotFoundError: none was requested, or its report was purged.
    """
    record = await find_record(blobs, erasure_id(user_id))
    if record is None:
        raise NotFoundError(
            "No erasure of this person was requested.", "Request it with DELETE /api/users/{user_id}."
        )
    return view_of(record, user_id)


async def resume_user_erasures(now: datetime, services: ErasureServices) -> int:
    """Queue the next pass of each running erasure that is due, and return their number. Also purge reports
    older than RUN_RETENTION_DAYS.
    """
    limit = now - timedelta(days=services.settings.conversations.run_retention_days)
    resumed = 0
    for name in [blob.name async for blob in services.blobs.list_blobs(WORK, FOLDER)]:
        try:
            record = await find_record(services.blobs, name.removeprefix(FOLDER).removesuffix(".json"))
        except ValidationError as failed:  # one damaged record must not stop the others
            kind, error_type = "ErasureRecord", type(failed).__name__
            get_logger().error("user_erasure.unreadable", kind=kind, error_type=error_type)
            continue
        if record is None:
            continue
        if record.status == "running" and record.not_before <= now:
            await send_on(record, services.queues)
            resumed += 1
        elif record.finished_at is not None and record.finished_at < limit:
            await services.blobs.delete(WORK, name)
    return resumed


async def send_on(record: ErasureRecord, queues: TaskQueues) -> None:
    """Queue the next pass of an erasure, delayed until the pass is due."""
    wait_s = max(0.0, (record.not_before - datetime.now(UTC)).total_seconds())
    task = EraseUserTask(erasure_id=record.erasure_id)
    await queues.send(ERASURES_QUEUE, task.model_dump_json(), wait_s)
