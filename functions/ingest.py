"""Starts the ingestion of a document whose blob was written or deleted. Reads names, never content.

An event only names a blob, and `ingest_document` decides what to do. So events may arrive late, twice and out
of order, and a sidecar's event counts for its document. Each is noted in the document's row before the
ingestion starts; one that is running sees it before it ends.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import azure.durable_functions as df
import azure.functions as func
from azurefunctions.extensions.base import Datum, InConverter, SdkType

from functions.http.trigger_scope import trigger_scope
from shared.platform.errors import CallerError
from shared.platform.instances import Instances, is_at_work
from shared.platform.names import BLOB_DELETED_QUEUE, DEFERRED_QUEUE, DOCUMENTS
from shared.platform.tracing import link_to

if TYPE_CHECKING:
    from shared.ingestion.models import DeferredFile
    from shared.platform.queues import TaskQueues
    from shared.wiring import Services


class BlobReference(SdkType):  # type: ignore[misc]  # the package has no types
    """The location of a blob."""

    def __init__(self, *, container: str, name: str) -> None:
        super().__init__(data={"ContainerName": container, "BlobName": name})
        self.container = container
        self.name = name

    def get_sdk_type(self) -> "BlobReference":
        """Return this object: it wraps no client."""
        return self


class BlobReferenceConverter(InConverter, binding="blob", trigger="blobTrigger"):  # type: ignore[misc, call-arg]
    """Converts the host's data to a BlobReference."""

    @classmethod
    def check_input_type_annotation(cls, pytype: type) -> bool:
        """Return whether this converter handles the annotated type."""
        return issubclass(pytype, BlobReference)

    @classmethod
    def has_implicit_output(cls) -> bool:
        """Return False: a blob trigger has no output."""
        return False

    @classmethod
    def decode(cls, data: Datum, *, trigger_metadata: object, pytype: type) -> BlobReference:
        """Return the blob's location.

        Raises:
            ValueError: the host sent no location.
        """
        del trigger_metadata, pytype
        if data is None or data.type != "model_binding_data":
            raise ValueError(f"expected the location of a blob, got {data.type if data else None}")
        place: dict[str, Any] = json.loads(data.value.content)
        return BlobReference(container=str(place["ContainerName"]), name=str(place["BlobName"]))


blueprint = df.Blueprint()
CONNECTION = "DocumentsStorage"
_CHECK_S = 1.0  # an instance ends this soon after its last look, as a rule; doubled with each check
_LONGEST_CHECK_S = 60.0


@blueprint.blob_trigger(
    arg_name="blob", path=f"{DOCUMENTS}/{{name}}", connection=CONNECTION, source=func.BlobSource.EVENT_GRID
)
@blueprint.durable_client_input(client_name="client")
async def blob_created(blob: BlobReference, client: df.DurableOrchestrationClient) -> None:
    """Handle a written document or sidecar."""
    from shared.ingestion.acceptance import is_duplicate_event
    from shared.ingestion.models import DeferredFile
    from shared.ingestion.rights import note_event
    from shared.wiring import get_services

    services = get_services()
    async with trigger_scope("blob_created"):
        properties = await services.blobs.properties(DOCUMENTS, blob.name)
        if properties is not None and await is_duplicate_event(properties, services):
            return
        noted = await note_event(blob.name, services)
        if noted == "noted":
            await _start_or_defer(DeferredFile(blob_name=blob.name), client, services)
        elif noted == "known":  # whoever noted it starts it too, unless they were killed
            await start_ingestion(client, blob.name)


@blueprint.queue_trigger(arg_name="message", queue_name=DEFERRED_QUEUE, connection=CONNECTION)
@blueprint.durable_client_input(client_name="client")
async def start_deferred(message: func.QueueMessage, client: df.DurableOrchestrationClient) -> None:
    """Start a file whose sender had too many others in progress, or defer it again; or look whether what was
    noted during an ingestion was seen by it.
    """
    from shared.documents.ids import document_id, document_of_blob, sender_of
    from shared.ingestion.fair_turns import SHARES
    from shared.ingestion.models import DeferredFile
    from shared.wiring import get_services

    file, services = DeferredFile.from_stored(message.get_body()), get_services()
    async with trigger_scope("start_deferred"):
        if not file.checks:
            SHARES.note_return(sender_of(file.blob_name))
        blob_name = document_of_blob(file.blob_name)
        state = await services.documents.get(document_id(blob_name))
        if state is None or not state.is_open:
            return
        if file.checks:
            await start_ingestion(client, blob_name, services.queues, file.checks)
        else:
            await _start_or_defer(file, client, services)


async def _start_or_defer(
    file: "DeferredFile", client: df.DurableOrchestrationClient, services: "Services"
) -> None:
    """Start the ingestion if its sender's share has room; otherwise queue the event for a while.

    Waiting orchestrations are replayed repeatedly, and a thousand of them would delay questions. A waiting
    trigger would delay other users' events.
    """
    from shared.documents.ids import document_of_blob, is_sidecar, sender_of
    from shared.ingestion.fair_turns import SHARES

    delay_s = 0.0
    if not is_sidecar(file.blob_name):  # narrower access lists never wait
        delay_s = SHARES.admit(sender_of(file.blob_name), is_new=not file.deferrals)
    if delay_s:
        deferred = file.model_copy(update={"deferrals": file.deferrals + 1})
        await services.queues.send(DEFERRED_QUEUE, deferred.model_dump_json(), delay_s)
        return
    await start_ingestion(client, document_of_blob(file.blob_name), services.queues)


@blueprint.queue_trigger(arg_name="message", queue_name=BLOB_DELETED_QUEUE, connection=CONNECTION)
@blueprint.durable_client_input(client_name="client")
async def blob_deleted(message: func.QueueMessage, client: df.DurableOrchestrationClient) -> None:
    """Handle a deleted document or sidecar. A message that isn't an event raises and goes to the poison
    queue.
    """
    from shared.documents.ids import document_of_blob
    from shared.ingestion.rights import note_event
    from shared.wiring import get_services

    event = read_event(message.get_body())
    name = deleted_blob(event)
    if name is not None:
        services = get_services()
        async with trigger_scope("blob_deleted"):
            if await note_event(name, services) != "nothing":
                await start_ingestion(client, document_of_blob(name), services.queues)


async def start_ingestion(
    client: df.DurableOrchestrationClient,
    blob_name: str,
    queues: "TaskQueues | None" = None,
    checks: int = 0,
) -> bool:
    """Start `ingest_document` for a document. False = it is running, and looks at the row before it ends.

    Args:
        queues: where to send a check for a new wish, in case the running ingestion is just ending.
        checks: number of earlier checks.
    """
    from shared.documents.ids import ingestion_id
    from shared.ingestion.models import DeferredFile, IngestRequest

    instance = ingestion_id(blob_name)
    payload = {**IngestRequest(blob_name=blob_name).model_dump(mode="json"), **link_to(instance)}
    try:
        await client.start_new("ingest_document", instance, payload)
    except Exception:  # noqa: BLE001 - what the SDK raises for a conflict: its status tells, not its text
        if is_at_work(await Instances(client).state(instance)):
            if queues is not None:
                check = DeferredFile(blob_name=blob_name, checks=checks + 1)
                delay_s = min(_CHECK_S * 2**checks, _LONGEST_CHECK_S)
                await queues.send(DEFERRED_QUEUE, check.model_dump_json(), delay_s)
            return False
        # It has ended since and may have missed this event; any other refusal raises now.
        await client.start_new("ingest_document", instance, payload)
    return True


def read_event(body: bytes) -> Mapping[str, Any]:
    """Parse the Event Grid event in a queue message, which is JSON or base64 of JSON.

    Raises:
        CallerError: it is neither.
    """
    from shared.platform.queues import read_object

    event = read_object(body)
    if event is None:
        raise CallerError("The message is not one event in JSON.")
    return event


def deleted_blob(event: Mapping[str, Any]) -> str | None:
    """Return the blob's name; None for other events and containers."""
    from shared.platform.queues import blob_of_event

    return blob_of_event(event) if event.get("eventType") == "Microsoft.Storage.BlobDeleted" else None
