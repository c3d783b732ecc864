"""Keeping a record of quality in use: within a limit, never raising, as it is never worth an answer."""

import asyncio
import hashlib

from shared.agents.quality.instruments import count
from shared.errors import GroundworkError
from shared.models.quality import AnswerRecord, OpeningRecord
from shared.services import Services
from shared.telemetry import get_logger

NOTE_LIMIT_S = 5.0  # some milliseconds are usual; a starved machine stands still for seconds


def key_of(run_id: str) -> str:
    """The same for the same run. A digest: records outlive runs, and are not to name them."""
    return hashlib.sha256(f"quality of {run_id}".encode()).hexdigest()[:32]


async def keep(record: AnswerRecord | OpeningRecord, services: Services) -> None:
    """Keep it, and count it unless it was kept before."""
    try:
        async with asyncio.timeout(NOTE_LIMIT_S):
            if not await services.quality.add(record):
                return
    except (GroundworkError, TimeoutError) as failed:
        get_logger().warning("quality.not_kept", kind=record.kind, error_type=type(failed).__name__)
    await count(record)
