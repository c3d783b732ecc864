"""Events into instances: which document they mean, and that one event starts one instance."""

import asyncio
import base64
import json
from contextlib import ExitStack
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
    start_deferred,
    start_ingestion,
)
from shared import wiring
from shared.documents.ids import document_id, ingestion_id
from shared.ingestion import fair_turns
from shared.ingestion.fair_turns import Shares
from shared.ingestion.task import fresh_state
from shared.platform.errors import CallerError
from shared.platform.names import DEFERRED_QUEUE, DOCUMENTS
from shared.wiring import Services
from tests.fakes.services import fake_services
from tests.fakes.stores import InMemoryTaskQueues

Status = df.OrchestrationRuntimeStatus


class RecordingClient:
    """The two calls of the durable client that are used here."""

    def __init__(self, *statuses: Any, refusals: int = 0) -> None:
        self.started: list[tuple[str, str, Any]] = []
        self._statuses = list(statuses)
        self._refusals = refusals

    async def get_status(self, instance: str) -> Any:
        return SimpleNamespace(runtime_status=self._statuses.pop(0))

    async def start_new(self, name: str, instance: str, payload: Any) -> str:
        if self._refusals:
            self._refusals -= 1
            raise Exception("conflict, in words that may change")  # noqa: TRY002 - what the SDK raises
        self.started.append((name, instance, payload))
        return instance


async def test_a_document_has_one_instance() -> None:
    client = RecordingClient()
    assert await start_ingestion(client, "a/b.pdf")
    assert client.started == [("ingest_document", ingestion_id("a/b.pdf"), {"blob_name": "a/b.pdf"})]


@pytest.mark.parametrize("status", [Status.Pending, Status.Running, Status.ContinuedAsNew])
async def test_a_running_instance_is_left_alone(status: Any) -> None:
    client = RecordingClient(status, refusals=1)
    assert not await start_ingestion(client, "a.pdf")
    assert client.started == []


@pytest.mark.parametrize("status", [Status.Completed, Status.Failed, Status.Terminated])
async def test_an_instance_that_ends_between_refusal_and_look_is_started_again(status: Any) -> None:
    client = RecordingClient(status, refusals=1)
    assert await start_ingestion(client, "a.pdf")
    assert len(client.started) == 1


async def test_a_refusal_for_another_reason_is_raised_so_that_the_event_comes_again() -> None:
    with pytest.raises(Exception, match="in words"):
        await start_ingestion(RecordingClient(None, refusals=2), "a.pdf")


async def test_a_wish_that_an_ending_instance_missed_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last look was before the wish, and it still counted as running when it was to be started."""
    services = fake_services()
    monkeypatch.setattr(wiring, "get_services", lambda: services)
    await services.documents.create(fresh_state("a.pdf"))
    client = RecordingClient(Status.Running, Status.Running, refusals=2)
    assert not await start_ingestion(client, "a.pdf", services.queues)
    await deliver(services, client)
    assert client.started == [], "it is still running"
    await deliver(services, client)
    assert [instance for _, instance, _ in client.started] == [ingestion_id("a.pdf")]
    await deliver(services, client)
    assert len(client.started) == 1


async def test_a_wish_that_was_followed_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    services = fake_services()
    monkeypatch.setattr(wiring, "get_services", lambda: services)
    state = await services.documents.create(fresh_state("a.pdf"))
    client = RecordingClient(Status.Running, refusals=1)
    await start_ingestion(client, "a.pdf", services.queues)
    await services.documents.replace(state.model_copy(update={"settled": state.wish}))
    await deliver(services, client)
    await deliver(services, client)
    assert client.started == []


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


async def test_a_file_is_deferred_while_its_senders_share_is_full_and_an_access_list_never(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shares, client, services = Shares(12), RecordingClient(), fake_services()
    monkeypatch.setattr(fair_turns, "SHARES", shares)
    monkeypatch.setattr(wiring, "get_services", lambda: services)
    name = "uploads/anna/a.md"
    for blob in (name, f"{name}.acl.json", "uploads/ben/b.md"):
        await services.blobs.write(DOCUMENTS, blob, b"[]")
    await services.documents.create(fresh_state(name))

    def started() -> list[str]:
        return [payload["blob_name"] for _, _, payload in client.started]

    with ExitStack() as at_work:
        for _ in range(6):
            at_work.enter_context(shares.taken("anna", "any"))
        # No call waits: a trigger that sleeps holds up the events behind it.
        async with asyncio.timeout(1):
            for blob in (name, f"{name}.acl.json", "uploads/ben/b.md"):
                await function_of(blob_created)(BlobReference(container=DOCUMENTS, name=blob), client)
        assert started() == ["uploads/ben/b.md"]
        state = await services.documents.get(document_id(name))
        assert state is not None
        assert state.sidecar_etag, "its access list is in the row all the same"
        await deliver(services, client)
        assert len(started()) == 1
    await deliver(services, client)
    assert started() == ["uploads/ben/b.md", name]
    assert isinstance(services.queues, InMemoryTaskQueues)
    assert services.queues.take(DEFERRED_QUEUE) == []


async def deliver(services: Services, client: RecordingClient) -> None:
    """Hand over every deferred file, whatever its delay."""
    assert isinstance(services.queues, InMemoryTaskQueues)
    for message in services.queues.take(DEFERRED_QUEUE):
        body = message.encode()
        await function_of(start_deferred)(SimpleNamespace(get_body=lambda body=body: body), client)
