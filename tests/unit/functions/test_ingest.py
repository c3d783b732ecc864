"""Tests for starting ingestions from events: the document they concern and the limit on instances."""

import asyncio
import base64
import json
from types import SimpleNamespace
from typing import Any

import azure.durable_functions as df
import pytest
from azurefunctions.extensions.base import Datum

from functions.ingest import (
    BlobReference,
    BlobReferenceConverter,
    blob_created,
    deleted_blob,
    read_event,
    watch_ingestions,
)
from shared import wiring
from shared.documents.ids import document_id, ingestion_id
from shared.ingestion.admission_rules import PLACES
from shared.ingestion.models import CloseRequest, IngestStep
from shared.ingestion.task import IngestTask
from shared.platform.errors import CallerError
from shared.platform.names import DOCUMENTS, INGESTIONS_QUEUE
from tests.fakes.services import fake_services
from tests.fakes.stores import InMemoryTaskQueues


class RecordingClient:
    """A durable client whose instances never end. It records their ids."""

    def __init__(self) -> None:
        self.started: list[str] = []

    async def get_status(self, instance: str) -> Any:
        status = df.OrchestrationRuntimeStatus.Running if instance in self.started else None
        return SimpleNamespace(runtime_status=status)

    async def start_new(self, name: str, instance: str, payload: Any) -> str:
        assert name == "ingest_document"
        self.started.append(instance)
        return instance


DELETED = {
    "subject": "/blobServices/default/containers/documents/blobs/a/ö b.pdf",
    "eventType": "Microsoft.Storage.BlobDeleted",
    "id": "e1",
}


@pytest.mark.parametrize("encode", [lambda raw: raw, base64.b64encode], ids=["plain", "base64"])
def test_a_message_is_json_plain_or_in_base64(encode: Any) -> None:
    assert deleted_blob(read_event(encode(json.dumps(DELETED).encode()))) == "a/ö b.pdf"


@pytest.mark.parametrize("body", [b"no event", b"[]", b"17", base64.b64encode(b"no event")])
def test_a_message_that_is_no_event_is_refused(body: bytes) -> None:
    with pytest.raises(CallerError):
        read_event(body)


@pytest.mark.parametrize(
    "change",
    [
        {"subject": "/blobServices/default/containers/figures/blobs/a.pdf"},
        {"eventType": "Microsoft.Storage.BlobCreated"},
        {"subject": ""},
    ],
)
def test_events_of_another_kind_or_container_are_let_go(change: dict[str, str]) -> None:
    assert deleted_blob({**DELETED, **change}) is None


def test_the_worker_hands_over_a_place_and_no_content() -> None:
    place = SimpleNamespace(content=json.dumps({"ContainerName": "documents", "BlobName": "a.pdf"}))
    datum = Datum(place, "model_binding_data")
    blob = BlobReferenceConverter.decode(datum, trigger_metadata={}, pytype=BlobReference)
    assert (blob.container, blob.name) == ("documents", "a.pdf")
    with pytest.raises(ValueError, match="location of a blob"):
        BlobReferenceConverter.decode(Datum(b"content", "bytes"), trigger_metadata={}, pytype=BlobReference)


def function_of(builder: object) -> Any:
    """Return the handler behind the decorators; it takes the client of Durable Functions."""
    return getattr(builder, "_function").get_user_function().client_function  # noqa: B009


async def test_events_start_as_many_documents_as_there_are_places_and_the_watch_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client, services = RecordingClient(), fake_services()
    monkeypatch.setattr(wiring, "get_services", lambda: services)
    names = [f"uploads/anna/{number}.md" for number in range(PLACES + 2)]
    for name in names:
        await services.blobs.write(DOCUMENTS, name, b"A note.")
        # The call must return at once: a trigger that sleeps delays all later events.
        async with asyncio.timeout(1):
            await function_of(blob_created)(BlobReference(container=DOCUMENTS, name=name), client)
    assert client.started == [ingestion_id(name) for name in names[: PLACES - 1]]
    for name in names[: PLACES - 1]:
        state = await services.documents.get(document_id(name))
        assert state is not None
        await IngestTask(IngestStep(blob_name=name, fence=""), services).close(DONE)
    assert isinstance(services.queues, InMemoryTaskQueues)
    (message,) = services.queues.take(INGESTIONS_QUEUE)
    await function_of(watch_ingestions)(SimpleNamespace(get_body=message.encode), client)
    assert client.started[PLACES - 1 :] == [ingestion_id(name) for name in names[PLACES - 1 :]]


DONE = CloseRequest(step=IngestStep(blob_name="any", fence=""), status="ready")
