"""Triggers that start the ingestion of documents whose blobs were written or deleted. They read only blob
names and properties, never file contents.

An event only names a blob, and `ingest_document` decides what to do, so events may arrive late, twice or out
of order. An event about a sidecar counts as an event about its document. Each event is noted in the backlog
and in the state of the document. The ingestion starts once it is admitted; an ingestion in progress notices
the event before it ends.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import azure.durable_functions as df
import azure.functions as func
from azurefunctions.extensions.base import Datum, InConverter, SdkType

from functions.http.trigger_scope import trigger_scope
from shared.platform.errors import CallerError
from shared.platform.instances import Instances
from shared.platform.names import BLOB_DELETED_QUEUE, DOCUMENTS, INGESTIONS_QUEUE

if TYPE_CHECKING:
    from shared.wiring import Services


class BlobReference(SdkType):  # type: ignore[misc]  # the package has no types
    """The container and name of a blob, as received by a blob trigger."""

    def __init__(self, *, container: str, name: str) -> None:
        super().__init__(data={"ContainerName": container, "BlobName": name})
        self.container = container
        self.name = name

    def get_sdk_type(self) -> "BlobReference":
        """Return this object itself, because it wraps no SDK client."""
        return self


class BlobReferenceConverter(InConverter, binding="blob", trigger="blobTrigger"):  # type: ignore[misc, call-arg]
    """Converter that turns the data of a blob trigger into a `BlobReference`."""

    @classmethod
    def check_input_type_annotation(cls, pytype: type) -> bool:
        """Return whether this converter handles parameters with the annotation `pytype`."""
        return issubclass(pytype, BlobReference)

    @classmethod
    def has_implicit_output(cls) -> bool:
        """Return False, because a blob trigger has no return value."""
        return False

    @classmethod
    def decode(cls, data: Datum, *, trigger_metadata: object, pytype: type) -> BlobReference:
        """Convert the trigger data that the host sent to a `BlobReference`.

        Raises:
            ValueError: the host sent data of another type.
        """
        del trigger_metadata, pytype
        if data is None or data.type != "model_binding_data":
            raise ValueError(f"expected the location of a blob, got {data.type if data else None}")
        place: dict[str, Any] = json.loads(data.value.content)
        return BlobReference(container=str(place["ContainerName"]), name=str(place["BlobName"]))


blueprint = df.Blueprint()
CONNECTION = "DocumentsStorage"


@blueprint.blob_trigger(
    arg_name="blob", path=f"{DOCUMENTS}/{{name}}", connection=CONNECTION, source=func.BlobSource.EVENT_GRID
)
@blueprint.durable_client_input(client_name="client")
async def blob_created(blob: BlobReference, client: df.DurableOrchestrationClient) -> None:
    """Start the ingestion of the document whose file or sidecar was written, unless the event is a
    duplicate.
    """
    from shared.ingestion.acceptance import is_duplicate_event
    from shared.ingestion.rights import note_event
    from shared.wiring import get_services

    services = get_services()
    async with trigger_scope("blob_created"):
        properties = await services.blobs.properties(DOCUMENTS, blob.name)
        if properties is not None and await is_duplicate_event(properties, services):
            return
        if await note_event(blob.name, services) != "nothing":
            await start_ingestions(client, services)


@blueprint.queue_trigger(arg_name="message", queue_name=INGESTIONS_QUEUE, connection=CONNECTION)
@blueprint.durable_client_input(client_name="client")
async def watch_ingestions(message: func.QueueMessage, client: df.DurableOrchestrationClient) -> None:
    """Restart ingestions that died, and start the ingestions that are due."""
    from shared.ingestion.admission import Admissions
    from shared.ingestion.models import WatchMessage
    from shared.wiring import get_services

    token = WatchMessage.from_stored(message.get_body()).token
    async with trigger_scope("watch_ingestions"):
        await Admissions(get_services(), Instances(client)).look(token)


@blueprint.queue_trigger(arg_name="message", queue_name=BLOB_DELETED_QUEUE, connection=CONNECTION)
@blueprint.durable_client_input(client_name="client")
async def blob_deleted(message: func.QueueMessage, client: df.DurableOrchestrationClient) -> None:
    """Start the ingestion of the document whose file or sidecar was deleted. A message that isn't an event
    causes an exception and ends up in the poison queue.
    """
    from shared.ingestion.rights import note_event
    from shared.wiring import get_services

    event = read_event(message.get_body())
    name = deleted_blob(event)
    if name is not None:
        services = get_services()
        async with trigger_scope("blob_deleted"):
            if await note_event(name, services) != "nothing":
                await start_ingestions(client, services)


async def start_ingestions(client: df.DurableOrchestrationClient, services: "Services") -> None:
    """Start ingestions of documents in the backlog while ingestion places are free. Callers must record the
    blob events before the call.
    """
    from shared.ingestion.admission import Admissions

    await Admissions(services, Instances(client)).admit()


def read_event(body: bytes) -> Mapping[str, Any]:
    """Parse the Event Grid event in a queue message, which is JSON, possibly encoded as base64.

    Raises:
        CallerError: the message is not a JSON object in either form.
    """
    from shared.platform.queues import read_object

    event = read_object(body)
    if event is None:
        raise CallerError("The message is not a single Event Grid event in JSON.")
    return event


def deleted_blob(event: Mapping[str, Any]) -> str | None:
    """Return the name of the deleted blob, or None for events of other types or other containers."""
    from shared.platform.queues import blob_of_event

    return blob_of_event(event) if event.get("eventType") == "Microsoft.Storage.BlobDeleted" else None
