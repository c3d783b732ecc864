"""The activities of `summarize_documents`. They never raise for what can be expected."""

from typing import TYPE_CHECKING, Any

import azure.durable_functions as df

from orchestrations.payloads import Payload, at_work, split

if TYPE_CHECKING:
    from shared.summaries.steps import StepName

blueprint = df.Blueprint()


@blueprint.activity_trigger(input_name="payload")
async def open_summary_document(payload: Payload) -> dict[str, Any]:
    """Split a document into windows. Input: SummaryStep. Output: DocumentOpened, or why not."""
    return await _perform("open", payload)


@blueprint.activity_trigger(input_name="payload")
async def read_summary_windows(payload: Payload) -> dict[str, Any]:
    """Read a range of windows. Input: SummaryStep. Output: WindowsRead, or why not."""
    return await _perform("read", payload)


@blueprint.activity_trigger(input_name="payload")
async def reduce_summary_document(payload: Payload) -> dict[str, Any]:
    """Make a document's result. Input: SummaryStep. Output: DocumentEnded, or why not."""
    return await _perform("reduce", payload)


@blueprint.activity_trigger(input_name="payload")
async def reduce_summary(payload: Payload) -> dict[str, Any]:
    """Make the summary of all documents. Input: SummaryStep. Output: SummaryClosed, or why not."""
    return await _perform("merge", payload)


async def _perform(name: "StepName", payload: dict[str, Any]) -> dict[str, Any]:
    # Imported when used: a worker that only serves HTTP never pays for it.
    from shared.summaries.models import SummaryReplyEnvelope, SummaryStep
    from shared.summaries.steps import perform
    from shared.wiring import get_services

    given, link = split(payload)
    step = SummaryStep.from_payload(given)
    span_name = "reduce_summary" if name == "merge" else f"summarize {name}"
    async with at_work(span_name, link, run_id=step.summary_id):
        reply = await perform(name, step, get_services())
    return SummaryReplyEnvelope(reply=reply).model_dump(mode="json")
