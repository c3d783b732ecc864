"""Activities of the `ingest_document` orchestration. Each performs one step of `shared.ingestion`, and
returns failures instead of raising them.

An activity that may be the last of an execution gives the document's place to the next one.
"""

from typing import TYPE_CHECKING, Any

import azure.durable_functions as df

from orchestrations.payloads import Payload, activity_scope, split

if TYPE_CHECKING:
    from shared.ingestion.steps import Act

blueprint = df.Blueprint()


@blueprint.activity_trigger(input_name="payload")
@blueprint.durable_client_input(client_name="client")
async def accept_document(payload: Payload, client: df.DurableOrchestrationClient) -> dict[str, Any]:
    """Take over a document from earlier ingestions, and ingest it if it is small. Input: IngestStep. Output:
    Accepted or a failure.
    """
    from shared.ingestion.steps import accept

    return await _perform_last(accept, payload, client)


@blueprint.activity_trigger(input_name="payload")
@blueprint.durable_client_input(client_name="client")
async def ingest_small_document(payload: Payload, client: df.DurableOrchestrationClient) -> dict[str, Any]:
    """Ingest a small document that `accept_document` did not ingest. Input: IngestStep. Output: SmallDone or
    a failure.
    """
    from shared.ingestion.steps import ingest_small

    return await _perform_last(ingest_small, payload, client, in_turn=True)


@blueprint.activity_trigger(input_name="payload")
async def parse_document(payload: Payload) -> dict[str, Any]:
    """Download, parse and chunk a document. Input: IngestStep. Output: Parsed or a failure."""
    from shared.ingestion.large_files import parse

    return await _perform(parse, payload, in_turn=True)


@blueprint.activity_trigger(input_name="payload")
async def describe_document(payload: Payload) -> dict[str, Any]:
    """Have the model describe a document, and store its metadata. Input: IngestStep. Output: Done or a
    failure.
    """
    from shared.ingestion.large_files import describe

    return await _perform(describe, payload, in_turn=True)


@blueprint.activity_trigger(input_name="payload")
async def plan_document(payload: Payload) -> dict[str, Any]:
    """Determine which blocks of a document are new, moved, unchanged or deleted. Input: IngestStep. Output:
    Planned or a failure.
    """
    from shared.ingestion.large_files import plan

    return await _perform(plan, payload)


@blueprint.activity_trigger(input_name="payload")
async def caption_figures(payload: Payload) -> dict[str, Any]:
    """Have the model caption a range of new figures. Input: IngestStep. Output: Done or a failure."""
    from shared.ingestion.large_files import caption

    return await _perform(caption, payload, in_turn=True)


@blueprint.activity_trigger(input_name="payload")
async def write_blocks(payload: Payload) -> dict[str, Any]:
    """Embed and write a range of new blocks. Input: IngestStep. Output: Done or a failure."""
    from shared.ingestion.large_files import write_blocks as act

    return await _perform(act, payload, in_turn=True)


@blueprint.activity_trigger(input_name="payload")
async def finish_document(payload: Payload) -> dict[str, Any]:
    """Write the document's row and delete stale blocks. Input: IngestStep. Output: Done or a failure."""
    from shared.ingestion.large_files import finish

    return await _perform(finish, payload)


@blueprint.activity_trigger(input_name="payload")
async def apply_rights(payload: Payload) -> dict[str, Any]:
    """Write the new permissions of a document to both indexes. Input: IngestStep. Output: Done or a
    failure.
    """
    from shared.ingestion.rights import apply_rights as act

    return await _perform(act, payload)


@blueprint.activity_trigger(input_name="payload")
@blueprint.durable_client_input(client_name="client")
async def remove_document(payload: Payload, client: df.DurableOrchestrationClient) -> dict[str, Any]:
    """Remove a document whose blob was deleted. Input: IngestStep. Output: Closed or a failure."""
    from shared.ingestion.steps import remove

    return await _perform_last(remove, payload, client)


@blueprint.activity_trigger(input_name="payload")
@blueprint.durable_client_input(client_name="client")
async def close_document(payload: Payload, client: df.DurableOrchestrationClient) -> dict[str, Any]:
    """Record the outcome of an ingestion. Input: CloseRequest. Output: Closed or a failure."""
    from shared.ingestion.models import CloseRequest
    from shared.ingestion.steps import close

    return await _perform_last(close, payload, client, CloseRequest.from_payload(split(payload)[0]))


@blueprint.activity_trigger(input_name="payload")
@blueprint.durable_client_input(client_name="client")
async def rest_document(payload: Payload, client: df.DurableOrchestrationClient) -> dict[str, Any]:
    """End an execution because the next attempt is too far away to wait for. Input: RestRequest. Output:
    Closed or a failure.
    """
    from shared.ingestion.models import RestRequest
    from shared.ingestion.steps import rest

    return await _perform_last(rest, payload, client, RestRequest.from_payload(split(payload)[0]))


async def _perform_last(
    act: "Act",
    payload: Payload,
    client: df.DurableOrchestrationClient,
    *details: object,
    in_turn: bool = False,
) -> dict[str, Any]:
    """Perform an ingestion step. If it was the last step of the document, admit the next waiting document."""
    from shared.documents.ids import document_id
    from shared.ingestion.admission import Admissions
    from shared.ingestion.models import IngestReplyEnvelope, IngestStep, is_last
    from shared.platform.errors import GroundworkError
    from shared.platform.instances import Instances
    from shared.platform.telemetry import get_logger
    from shared.wiring import get_services

    answer = await _perform(act, payload, *details, in_turn=in_turn)
    if is_last(IngestReplyEnvelope.from_payload(answer).reply):
        fields, _ = split(payload)
        blob_name = IngestStep.from_payload(fields.get("step", fields)).blob_name
        try:
            await Admissions(get_services(), Instances(client)).admit(leaving=document_id(blob_name))
        except GroundworkError as failed:  # the periodic ingestion check releases the slot
            get_logger().warning("ingestion.place_kept", error_type=failed.code)
    return answer


async def _perform(act: "Act", payload: Payload, *details: object, in_turn: bool = False) -> dict[str, Any]:
    """Perform an ingestion step and return its reply as JSON. The payload is an IngestStep or contains one as
    `step`.
    """
    from shared.documents.ids import ingestion_id
    from shared.ingestion.models import IngestReplyEnvelope, IngestStep
    from shared.ingestion.steps import perform
    from shared.ingestion.task import IngestTask
    from shared.wiring import get_services

    fields, link = split(payload)
    step = IngestStep.from_payload(fields.get("step", fields))
    async with activity_scope(f"ingest {act.__name__}", link, run_id=ingestion_id(step.blob_name)):
        reply = await perform(act, IngestTask(step, get_services()), *details, in_turn=in_turn)
    return IngestReplyEnvelope(reply=reply).model_dump(mode="json")
