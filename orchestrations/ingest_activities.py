"""The activities of `ingest_document`, each one step of `shared.ingestion.steps`. They never raise."""

from typing import TYPE_CHECKING, Any

import azure.durable_functions as df

from orchestrations.payloads import Payload, at_work, split

if TYPE_CHECKING:
    from shared.ingestion.steps import StepName

blueprint = df.Blueprint()

_ENDED = (
    None,  # the client's word for an instance that it does not know
    df.OrchestrationRuntimeStatus.Completed,
    df.OrchestrationRuntimeStatus.Failed,
    df.OrchestrationRuntimeStatus.Terminated,
    df.OrchestrationRuntimeStatus.Canceled,
)


@blueprint.activity_trigger(input_name="payload")
async def accept_document(payload: Payload) -> dict[str, Any]:
    """Claim the document and say what there is to do. Input: IngestStep. Output: Accepted or a failure."""
    return await _perform("accept", payload)


@blueprint.activity_trigger(input_name="payload")
@blueprint.durable_client_input(client_name="client")
async def check_holder(payload: Payload, client: df.DurableOrchestrationClient) -> dict[str, Any]:
    """Free a document whose holder is dead. Input: IngestStep. Output: Closed or a failure."""
    from shared.ingestion.models import IngestReplyEnvelope, IngestStep
    from shared.ingestion.steps import perform_check
    from shared.wiring import get_services

    async def has_ended(instance_id: str) -> bool:
        status = await client.get_status(instance_id)
        return status is None or status.runtime_status in _ENDED

    given, link = split(payload)
    step = IngestStep.from_payload(given)
    async with at_work("check_holder", link, run_id=step.instance_id):
        reply = await perform_check(step, get_services().documents, has_ended)
    return IngestReplyEnvelope(reply=reply).model_dump(mode="json")


@blueprint.activity_trigger(input_name="payload")
async def ingest_small_document(payload: Payload) -> dict[str, Any]:
    """All the rest, for a small document. Input: IngestStep. Output: SmallDone or a failure."""
    return await _perform("small", payload)


@blueprint.activity_trigger(input_name="payload")
async def parse_document(payload: Payload) -> dict[str, Any]:
    """Download, parse and chunk. Input: IngestStep. Output: Parsed or a failure."""
    return await _perform("parse", payload)


@blueprint.activity_trigger(input_name="payload")
async def describe_document(payload: Payload) -> dict[str, Any]:
    """Make the metadata. Input: IngestStep. Output: Described or a failure."""
    return await _perform("describe", payload)


@blueprint.activity_trigger(input_name="payload")
async def plan_document(payload: Payload) -> dict[str, Any]:
    """Say which blocks change. Input: IngestStep. Output: Planned or a failure."""
    return await _perform("plan", payload)


@blueprint.activity_trigger(input_name="payload")
async def caption_figures(payload: Payload) -> dict[str, Any]:
    """Caption a range of new figures. Input: IngestStep. Output: Captioned or a failure."""
    return await _perform("caption", payload)


@blueprint.activity_trigger(input_name="payload")
async def write_blocks(payload: Payload) -> dict[str, Any]:
    """Embed and write a range of new blocks. Input: IngestStep. Output: Written or a failure."""
    return await _perform("write_blocks", payload)


@blueprint.activity_trigger(input_name="payload")
async def finish_document(payload: Payload) -> dict[str, Any]:
    """Write the document's row, delete what vanished. Input: IngestStep. Output: Written or a failure."""
    return await _perform("finish", payload)


@blueprint.activity_trigger(input_name="payload")
async def apply_rights(payload: Payload) -> dict[str, Any]:
    """Write new rights into both indexes. Input: IngestStep. Output: RightsApplied or a failure."""
    return await _perform("apply_rights", payload)


@blueprint.activity_trigger(input_name="payload")
async def remove_document(payload: Payload) -> dict[str, Any]:
    """Remove a document whose blob is gone. Input: IngestStep. Output: Closed or a failure."""
    return await _perform("remove", payload)


@blueprint.activity_trigger(input_name="payload")
async def close_document(payload: Payload) -> dict[str, Any]:
    """Note how the ingestion ended. Input: CloseRequest. Output: Closed or a failure."""
    # Imported when used: a worker that only serves HTTP never pays for it.
    from shared.ingestion.models import CloseRequest, IngestReplyEnvelope
    from shared.ingestion.steps import perform_close
    from shared.wiring import get_services

    given, link = split(payload)
    request = CloseRequest.from_payload(given)
    async with at_work("close_document", link, run_id=request.step.instance_id):
        reply = await perform_close(request, get_services())
    return IngestReplyEnvelope(reply=reply).model_dump(mode="json")


async def _perform(name: "StepName", payload: dict[str, Any]) -> dict[str, Any]:
    from shared.ingestion.models import IngestReplyEnvelope, IngestStep
    from shared.ingestion.steps import perform
    from shared.wiring import get_services

    given, link = split(payload)
    step = IngestStep.from_payload(given)
    async with at_work(f"ingest {name}", link, run_id=step.instance_id):
        reply = await perform(name, step, get_services())
    return IngestReplyEnvelope(reply=reply).model_dump(mode="json")
