"""Where erasures of people are kept: a JSON blob each in the `work` container, named by a digest of the id.

Whoever writes last counts: two passes at once do the same, and may count a thing twice.
"""

from collections.abc import AsyncIterator

from pydantic import ValidationError

from shared.errors import NotFoundError
from shared.models.erasures import ErasureRecord
from shared.models.names import WORK
from shared.ports import BlobStore
from shared.telemetry import get_logger

FOLDER = "erasures/"


async def find_record(blobs: BlobStore, erasure_id: str) -> ErasureRecord | None:
    """The erasure, at work or ended; None when there was none, or its report has gone."""
    try:
        return ErasureRecord.from_kept(await blobs.read(WORK, _path(erasure_id)))
    except NotFoundError:
        return None


async def keep_record(blobs: BlobStore, record: ErasureRecord) -> ErasureRecord:
    """Keep it in place of the one before."""
    await blobs.write(WORK, _path(record.erasure_id), record.model_dump_json().encode())
    return record


async def remove_record(blobs: BlobStore, erasure_id: str) -> None:
    """Take the report away."""
    await blobs.delete(WORK, _path(erasure_id))


async def all_records(blobs: BlobStore) -> AsyncIterator[ErasureRecord]:
    """Every erasure that is kept. One that nobody can read is told of, and the others go on."""
    names = [found.name async for found in blobs.list_blobs(WORK, FOLDER)]
    for name in names:
        try:
            record = await find_record(blobs, name.removeprefix(FOLDER).removesuffix(".json"))
        except ValidationError as failed:
            get_logger().error(
                "user_erasure.unreadable", kind="ErasureRecord", error_type=type(failed).__name__
            )
            continue
        if record is not None:
            yield record


def _path(erasure_id: str) -> str:
    return f"{FOLDER}{erasure_id}.json"
