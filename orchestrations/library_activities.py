"""Activity that synchronises SharePoint libraries in slices of about a minute."""

from datetime import UTC, datetime
from typing import Any

from orchestrations.payloads import Payload, activity_scope, report_defect, split
from shared import wiring
from shared.sharepoint.models import SyncReply, SyncStep
from shared.sharepoint.synchronisation import advance


async def advance_library(payload: Payload) -> dict[str, Any]:
    """Perform the next slice of a library's synchronisation. Input: SyncStep. Output: SyncReply."""
    fields, link = split(payload)
    step = SyncStep.from_payload(fields)
    try:
        async with activity_scope("advance_library", link, run_id=step.run):
            reply = await advance(step, wiring.get_services(), datetime.now(UTC))
    except Exception:  # noqa: BLE001  # a defect ends this run; the next timer starts another
        report_defect("advance_library", step.run)
        reply = SyncReply(following="done")
    return reply.model_dump(mode="json")
