"""A blob came, changed or went: start the ingestion of its document. Reads names, never content.

An event says only where to look; `ingest_document` finds out what to do. So events may come late, twice and
out of order, and a sidecar's event is its document's.
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
    from shared.wiring import Services


class BlobReference(SdkType):  # type: ignore[misc]  # the package has no types
    """Where a blob is."""

    def __init__(self, *, container: str, name: str) -> None:
        super().__init__(data={"ContainerName": container, "BlobName": name})
        self.container = container
        self.name = name

    def get_sdk_type(self) -> "BlobReference":
        """Itself: it is no wrapper around a client."""
        return self


class BlobReferenceConverter(InConverter, binding="blob", trigger="blobTrigger"):  # type: ignore[misc, call-arg]
    """Makes a BlobReference of what the host sends."""

    @classmethod
    def check_input_type_annotation(cls, pytype: type) -> bool:
        """Whether this converter serves a parameter so annotated."""
        return issubclass(pytype, BlobReference)

    @classmethod
    def has_implicit_output(cls) -> bool:
        """A blob trigger returns nothing."""
        return False

    @classmethod
    def decode(cls, data: Datum, *, trigger_metadata: object, pytype: type) -> BlobReference:
        """The blob's place.

        Raises:
            ValueError: the host sent something else than a place.
        """
        del trigger_metadata, pytype
        if data is None or data.type != "model_binding_data":
            raise ValueError(f"expected the place of a blob, got {data.type if data else None}")
        place: dict[str, Any] = json.loads(data.value.content)
        return BlobReference(container=str(place["ContainerName"]), name=str(place["BlobName"]))


blueprint = df.Blueprint()
CONNECTION = "DocumentsStorage"


@blueprint.blob_trigger(
    arg_name="blob", path=f"{DOCUMENTS}/{{name}}", connection=CONNECTION, source=func.BlobSource.EVENT_GRID
)
@blueprint.durable_client_input(client_name="client")
async def blob_created(blob: BlobReference, client: df.DurableOrchestrationClient) -> None:
    """A document or a sidecar was written."""
    from shared.ingestion.acceptance import is_duplicate_event
    from shared.ingestion.models import DeferredFile
    from shared.wiring import get_services

    services = get_services()
    async with trigger_scope("blob_created"):
        properties = await services.blobs.properties(DOCUMENTS, blob.name)
        if properties is not None and await is_duplicate_event(properties, services):
            return
        occasion = properties.etag if properties is not None else "gone"
        await _start_or_defer(DeferredFile(blob_name=blob.name, occasion=occasion), client, services)


@blueprint.queue_trigger(arg_name="message", queue_name=DEFERRED_QUEUE, connection=CONNECTION)
@blueprint.durable_client_input(client_name="client")
async def start_deferred(message: func.QueueMessage, client: df.DurableOrchestrationClient) -> None:
    """A file whose sender had too many others at work: start it, or defer it again."""
    from shared.documents.ids import sender_of
    from shared.ingestion.fair_turns import SHARES
    from shared.ingestion.models import DeferredFile
    from shared.wiring import get_services

    file = DeferredFile.from_stored(message.get_body())
    async with trigger_scope("start_deferred"):
        SHARES.note_return(sender_of(file.blob_name))
        await _start_or_defer(file, client, get_services())


async def _start_or_defer(
    file: "DeferredFile", client: df.DurableOrchestrationClient, services: "Services"
) -> None:
    """Start the ingestion if its sender's share has room; else put the event into a queue for a while.

    Orchestrations that wait are replayed again and again, and a thousand of them would hold up questions. A
    trigger that waits holds up other people's events.
    """
    from shared.documents.ids import document_of_blob, is_sidecar, sender_of
    from shared.ingestion.fair_turns import SHARES

    delay_s = 0.0
    if not is_sidecar(file.blob_name):  # a narrower access list never waits
        delay_s = SHARES.admit(sender_of(file.blob_name), is_new=not file.deferrals)
    if delay_s:
        deferred = file.model_copy(update={"deferrals": file.deferrals + 1})
        await services.queues.send(DEFERRED_QUEUE, deferred.model_dump_json(), delay_s)
        return
    await start_ingestion(client, document_of_blob(file.blob_name), f"{file.blob_name} {file.occasion}")


@blueprint.queue_trigger(arg_name="message", queue_name=BLOB_DELETED_QUEUE, connection=CONNECTION)
@blueprint.durable_client_input(client_name="client")
async def blob_deleted(message: func.QueueMessage, client: df.DurableOrchestrationClient) -> None:
    """A document or a sidecar was deleted. A message that is no event raises: it goes to the poison queue."""
    from shared.documents.ids import document_of_blob

    event = read_event(message.get_body())
    name = deleted_blob(event)
    if name is not None:
        async with trigger_scope("blob_deleted"):
            await start_ingestion(client, document_of_blob(name), f"{name} deleted {event.get('id', '')}")


async def start_ingestion(client: df.DurableOrchestrationClient, blob_name: str, occasion: str) -> str:
    """Start `ingest_document` unless this very event's instance is at work; returns the instance id.

    An instance that has ended is started again: it finds that all is done, or repairs what is not.
    """
    from shared.documents.ids import instance_id
    from shared.ingestion.models import IngestRequest

    instance = instance_id(blob_name, occasion)
    payload = {**IngestRequest(blob_name=blob_name).model_dump(mode="json"), **link_to(instance)}
    try:
        started: str = await client.start_new("ingest_document", instance, payload)
    except Exception:  # noqa: BLE001 - what the SDK raises for a conflict: its status tells, not its text
        if is_at_work(await Instances(client).state(instance)):
            return instance
        # It has ended since, and may not have seen this event; another refusal is raised now.
        started = await client.start_new("ingest_document", instance, payload)
    return started


def read_event(body: bytes) -> Mapping[str, Any]:
    """The Event Grid event in a queue message, which arrives as JSON or as base64 of JSON.

    Raises:
        CallerError: it is neither.
    """
    from shared.platform.queues import read_object

    event = read_object(body)
    if event is None:
        raise CallerError("The message is not one event in JSON.")
    return event


def deleted_blob(event: Mapping[str, Any]) -> str | None:
    """The blob's name; None for events of another kind or another container."""
    from shared.platform.queues import blob_of_event

    return blob_of_event(event) if event.get("eventType") == "Microsoft.Storage.BlobDeleted" else None
