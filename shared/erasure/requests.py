"""Erasing a person, from the outside: ask for it, read its progress, resume those that stopped."""

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
    """The erasure, at work or ended; None when there was none, or its report has gone."""
    return await find_model(blobs, WORK, _path(erasure_id), ErasureRecord)


async def keep_record(blobs: BlobStore, record: ErasureRecord) -> ErasureRecord:
    """Keep it in place of the one before."""
    await write_model(blobs, WORK, _path(record.erasure_id), record)
    return record


def _path(erasure_id: str) -> str:
    return f"{FOLDER}{erasure_id}.json"


async def ask_for_erasure(user_id: str, documents: DocumentsWish, services: ErasureServices) -> ErasureView:
    """Have everything that is kept of a person erased. While that is at work, asking again changes nothing.

    Raises:
        ConflictError: one is at work that treats their documents otherwise.
    """
    known = await find_record(services.blobs, erasure_id(user_id))
    if known is not None and known.status == "running":
        if known.documents != documents:
            raise ConflictError(
                f"An erasure with `documents={known.documents}` is already in progress.",
                "Try again when it has ended.",
            )
        await send_on(known, services.queues)
        return view_of(known, user_id)
    now = datetime.now(UTC)
    record = ErasureRecord(
        erasure_id=erasure_id(user_id), user_id=user_id, documents=documents, asked_at=now, not_before=now
    )
    # The record first: a message that is lost is sent again by the timer, for what is kept.
    await keep_record(services.blobs, record)
    await send_on(record, services.queues)
    get_logger().info("user_erasure.requested", subject=pseudonym(user_id), documents=documents)
    return view_of(record, user_id)


async def erasure_of(user_id: str, blobs: BlobStore) -> ErasureView:
    """The progress of the erasure of a person, or what it has done.

    Raises:
        NotFoundError: nobody asked for one, or its report was purged.
    """
    record = await find_record(blobs, erasure_id(user_id))
    if record is None:
        raise NotFoundError("No erasure of this person was requested.", "Request one with DELETE.")
    return view_of(record, user_id)


async def resume_user_erasures(now: datetime, services: ErasureServices) -> int:
    """Ask again for erasures that are due; how many. Purges reports older than RUN_RETENTION_DAYS."""
    limit = now - timedelta(days=services.settings.conversations.run_retention_days)
    resumed = 0
    for name in [found.name async for found in services.blobs.list_blobs(WORK, FOLDER)]:
        try:
            record = await find_record(services.blobs, name.removeprefix(FOLDER).removesuffix(".json"))
        except ValidationError as failed:  # the others continue
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
    """Resume the erasure when it is due."""
    wait_s = max(0.0, (record.not_before - datetime.now(UTC)).total_seconds())
    task = EraseUserTask(erasure_id=record.erasure_id)
    await queues.send(ERASURES_QUEUE, task.model_dump_json(), wait_s)
