"""Erasing a person, from the outside: ask for it, look how far it is, have those that stopped go on."""

from datetime import UTC, datetime, timedelta

from shared.agents.erasure.records import all_records, find_record, keep_record, remove_record
from shared.core.erasure import erasure_id, view_of
from shared.errors import ConflictError, NotFoundError
from shared.models.erasures import DocumentsWish, EraseUserTask, ErasureRecord, ErasureView
from shared.models.names import ERASURES_QUEUE
from shared.services import Services
from shared.telemetry import get_logger, pseudonym


async def ask_for_erasure(user_id: str, documents: DocumentsWish, services: Services) -> ErasureView:
    """Have everything that is kept of a person erased. While that is at work, asking again changes nothing.

    Raises:
        ConflictError: one is at work that treats their documents otherwise.
    """
    known = await find_record(services.blobs, erasure_id(user_id))
    if known is not None and known.status == "running":
        if known.documents != documents:
            raise ConflictError(
                f"An erasure is at work that is to {known.documents} their documents.",
                "Ask again when it has ended.",
            )
        await send_on(known, services)
        return view_of(known, user_id)
    now = datetime.now(UTC)
    record = ErasureRecord(
        erasure_id=erasure_id(user_id), user_id=user_id, documents=documents, asked_at=now, not_before=now
    )
    # The record first: a message that is lost is sent again by the timer, for what is kept.
    await keep_record(services.blobs, record)
    await send_on(record, services)
    get_logger().info("user_erasure.asked", subject=pseudonym(user_id), documents=documents)
    return view_of(record, user_id)


async def erasure_of(user_id: str, services: Services) -> ErasureView:
    """How far the erasure of a person is, or what it has done.

    Raises:
        NotFoundError: nobody asked for one, or its report was purged.
    """
    record = await find_record(services.blobs, erasure_id(user_id))
    if record is None:
        raise NotFoundError("There is no erasure of this person.", "Ask for one with DELETE.")
    return view_of(record, user_id)


async def resume_user_erasures(now: datetime, services: Services) -> int:
    """Ask again for erasures that are due; how many. Purges reports older than RUN_RETENTION_DAYS."""
    limit = now - timedelta(days=services.settings.run_retention_days)
    resumed = 0
    async for record in all_records(services.blobs):
        if record.status == "running" and record.not_before <= now:
            await send_on(record, services)
            resumed += 1
        elif record.finished_at is not None and record.finished_at < limit:
            await remove_record(services.blobs, record.erasure_id)
    return resumed


async def send_on(record: ErasureRecord, services: Services) -> None:
    """Have the erasure go on when it is due."""
    wait_s = max(0.0, (record.not_before - datetime.now(UTC)).total_seconds())
    task = EraseUserTask(erasure_id=record.erasure_id)
    await services.queues.send(ERASURES_QUEUE, task.model_dump_json(), wait_s)
