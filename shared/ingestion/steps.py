"""Ingestion's steps by name: each does one thing and answers with a reply; expected failures are replies."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

from shared.errors import GroundworkError
from shared.ingestion import accepting, captioning, closing, describing, parsing, small, writing
from shared.ingestion.claims import ClaimLostError
from shared.ingestion.holders import HasEnded, check_holder
from shared.ingestion.parser_process import NoWorkerFreeError
from shared.ingestion.sitting import sitting
from shared.models.ingestion import CloseRequest, IngestFailure, IngestReply, IngestStep, Superseded
from shared.services import Services
from shared.telemetry import get_logger

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

_STEPS: Mapping[StepName, Callable[[IngestStep, Services], Awaitable[IngestReply]]] = {
    "accept": accepting.accept,
    "small": small.ingest,
    "parse": parsing.parse,
    "describe": describing.describe,
    "plan": writing.plan,
    "caption": captioning.caption,
    "write_blocks": writing.write_blocks,
    "finish": writing.finish,
    "apply_rights": writing.apply_rights,
    "remove": closing.remove,
}
_MAX_TEXT = 500


async def perform(name: StepName, step: IngestStep, services: Services) -> IngestReply:
    """Perform one step. May run twice for the same step after a crash, and does no harm then."""
    return await _answer(name, step, _STEPS[name](step, services))


async def perform_close(request: CloseRequest, services: Services) -> IngestReply:
    """Perform the last step."""
    return await _answer("close", request.step, closing.close(request, services))


async def perform_check(step: IngestStep, services: Services, has_ended: HasEnded) -> IngestReply:
    """Look whether the document's holder lives, after another instance was found to hold it."""
    return await _answer("check_holder", step, check_holder(step, services, has_ended))


async def _answer(name: str, step: IngestStep, performed: Awaitable[IngestReply]) -> IngestReply:
    try:
        with sitting(is_whole=name == "small"):
            return await performed
    except ClaimLostError:
        return Superseded()
    except GroundworkError as failed:
        get_logger().warning(
            "ingestion.step_failed", step=name, run_id=step.instance_id, error_type=failed.code
        )
        return IngestFailure(
            reason=failed.detail[:_MAX_TEXT],
            hint=" ".join(failed.hints)[:_MAX_TEXT],
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
