"""The whole ingestion of a short text in one step: what lies between its steps would cost more than they do.

The steps and their order are those of the long way, and so is every promise. A step that runs twice is this
whole one: what the model said is kept as soon as it is known, all else is cheap to make again.
"""

from shared.ingestion import captioning, closing, describing, parsing, work_files, writing
from shared.ingestion.sitting import current_sitting
from shared.models.ingestion import CloseRequest, IngestResult, IngestStep, Planned, SmallDone
from shared.services import Services


async def ingest(step: IngestStep, services: Services) -> SmallDone:
    """Everything from the content to the end of the claim.

    Raises:
        BadDocumentError, PayloadTooLargeError, NotFoundError: the file cannot be ingested, and why.
        DependencyError: a service failed.
    """
    parsed = await parsing.parse(step, services)
    step = step.model_copy(update={"content_hash": parsed.content_hash})
    result = IngestResult(outcome="current")
    if parsed.same_bytes:
        await _make_good(step, services)
    else:
        result = _result(await _write(step, services))
    closed = await closing.close(CloseRequest(step=step, status="ready"), services)
    return SmallDone(result=result, again=closed.again)


async def _write(step: IngestStep, services: Services) -> Planned:
    await describing.describe(step, services)
    planned = await writing.plan(step, services)
    if planned.new_figure_count:
        figures = step.model_copy(update={"end": planned.new_figure_count})
        await captioning.caption(figures, services)
    if planned.new_count:
        await writing.write_blocks(step.model_copy(update={"end": planned.new_count}), services)
    await writing.finish(step, services)
    return planned


async def _make_good(step: IngestStep, services: Services) -> None:
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
