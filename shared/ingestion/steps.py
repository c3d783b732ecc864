"""Ingestion's steps by name: each does one thing and answers with a reply; expected failures are replies."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

from shared.documents.state import DocumentStore
from shared.ingestion import accepting, captioning, closing, describing, reading, work_files, writing
from shared.ingestion.accepting import HasEnded, check_holder
from shared.ingestion.claims import ClaimLostError
from shared.ingestion.models import (
    CloseRequest,
    IngestFailure,
    IngestReply,
    IngestResult,
    IngestStep,
    Planned,
    SmallDone,
    Superseded,
)
from shared.ingestion.parser_process import NoWorkerFreeError
from shared.ingestion.services import IngestionServices
from shared.ingestion.work_files import current_sitting, sitting
from shared.platform.errors import GroundworkError
from shared.platform.telemetry import get_logger


async def ingest(step: IngestStep, services: IngestionServices) -> SmallDone:
    """Everything from the content to the end of the claim.

    Raises:
        BadDocumentError, PayloadTooLargeError, NotFoundError: the file cannot be ingested, and why.
        DependencyError: a service failed.
    """
    parsed = await reading.parse(step, services)
    step = step.model_copy(update={"content_hash": parsed.content_hash})
    result = IngestResult(outcome="current")
    if parsed.same_bytes:
        await _make_good(step, services)
    else:
        result = _result(await _write(step, services))
    closed = await closing.close(CloseRequest(step=step, status="ready"), services)
    return SmallDone(result=result, again=closed.again)


async def _write(step: IngestStep, services: IngestionServices) -> Planned:
    await describing.describe(step, services)
    planned = await writing.plan(step, services)
    if planned.new_figure_count:
        figures = step.model_copy(update={"end": planned.new_figure_count})
        await captioning.caption(figures, services)
    if planned.new_count:
        await writing.write_blocks(step.model_copy(update={"end": planned.new_count}), services)
    await writing.finish(step, services)
    return planned


async def _make_good(step: IngestStep, services: IngestionServices) -> None:
    """An attempt that broke off within its last step leaves old rows, or newer rights that rows lack."""
    if await work_files.exists(services.blobs, step, work_files.PARSED):
        await writing.finish(step, services)
        return
    state = next(iter(current_sitting().states.values()), None)
    if state is None or state.wanted_rights != state.rights:
        await writing.apply_rights(step, services)


def _result(planned: Planned) -> IngestResult:
    return IngestResult(
        outcome="ready",
        new_count=planned.new_count,
        kept_count=planned.kept_count,
        moved_count=planned.moved_count,
        gone_count=planned.gone_count,
    )


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

_STEPS: Mapping[StepName, Callable[[IngestStep, IngestionServices], Awaitable[IngestReply]]] = {
    "accept": accepting.accept,
    "small": ingest,
    "parse": reading.parse,
    "describe": describing.describe,
    "plan": writing.plan,
    "caption": captioning.caption,
    "write_blocks": writing.write_blocks,
    "finish": writing.finish,
    "apply_rights": writing.apply_rights,
    "remove": closing.remove,
}

_MAX_TEXT = 500


async def perform(name: StepName, step: IngestStep, services: IngestionServices) -> IngestReply:
    """Perform one step. May run twice for the same step after a crash, and does no harm then."""
    return await _answer(name, step, _STEPS[name](step, services))


async def perform_close(request: CloseRequest, services: IngestionServices) -> IngestReply:
    """Perform the last step."""
    return await _answer("close", request.step, closing.close(request, services))


async def perform_check(step: IngestStep, documents: DocumentStore, has_ended: HasEnded) -> IngestReply:
    """Look whether the document's holder lives, after another instance was found to hold it."""
    return await _answer("check_holder", step, check_holder(step, documents, has_ended))


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
