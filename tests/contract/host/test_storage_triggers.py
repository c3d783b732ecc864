"""Blob and queue triggers through the host, against Azurite."""

import base64
import uuid
from contextlib import suppress

import pytest
from azure.core.exceptions import ResourceExistsError
from azure.storage.blob import BlobServiceClient, ContainerClient
from azure.storage.queue import QueueClient, QueueServiceClient

from tests.contract.host.host_process import HostProcess, wait_until

pytestmark = pytest.mark.contract


@pytest.fixture
def documents(host: HostProcess, settings: dict[str, str]) -> ContainerClient:
    return _container(settings, settings["DOCUMENTS"])


@pytest.fixture
def inbox(host: HostProcess, settings: dict[str, str]) -> QueueClient:
    return _queue(settings, settings["INBOX"])


def _container(settings: dict[str, str], name: str) -> ContainerClient:
    service = BlobServiceClient.from_connection_string(settings["DocumentsStorage"])
    container = service.get_container_client(name)
    if not container.exists():
        container.create_container()
    return container


def _queue(settings: dict[str, str], name: str) -> QueueClient:
    service = QueueServiceClient.from_connection_string(settings["AzureWebJobsStorage"])
    with suppress(ResourceExistsError):  # the host creates some of the queues itself
        service.create_queue(name)
    return service.get_queue_client(name)


def _name(stem: str) -> str:
    return f"{stem}-{uuid.uuid4().hex[:8]}"


def test_new_blob_and_new_version_each_call_the_function_once(
    host: HostProcess, documents: ContainerClient
) -> None:
    name = f"folder/{_name('a')} ü.pdf"
    documents.upload_blob(name, b"one")
    first = host.wait_for_notes("document", name=name)
    assert first[0]["container"] == documents.container_name
    assert first[0]["connection"] == "DocumentsStorage"
    documents.upload_blob(name, b"two", overwrite=True)
    host.wait_for_notes("document", 2, name=name)
    marker = _name("marker")
    documents.upload_blob(marker, b"later")
    host.wait_for_notes("document", name=marker)
    assert len(host.notes("document", name=name)) == 2


def test_vanished_blob_is_a_deletion_event_on_the_queue(
    host: HostProcess, documents: ContainerClient
) -> None:
    name = _name("gone")
    documents.upload_blob(name, b"x")
    host.wait_for_notes("document", name=name)
    documents.delete_blob(name)
    subject = f"/blobServices/default/containers/{documents.container_name}/blobs/{name}"
    assert host.wait_for_notes("deletion", subject=subject)[0]["type"] == "Microsoft.Storage.BlobDeleted"


def test_blob_that_fails_five_times_ends_on_the_poison_queue(
    host: HostProcess, documents: ContainerClient, settings: dict[str, str]
) -> None:
    name = _name("bad")
    documents.upload_blob(name, b"x")
    poison = _queue(settings, "webjobs-blobtrigger-poison")

    def is_poisoned() -> bool:  # the queue also contains messages of other tests
        return any(name in message.content for message in poison.peek_messages(32))

    wait_until(is_poisoned, "the poison message")
    assert len(host.notes("document", name=name)) == 5
    documents.delete_blob(name)


@pytest.mark.parametrize("encode", [False, True], ids=["plain text", "base64"])
def test_queue_message_is_handled(host: HostProcess, inbox: QueueClient, encode: bool) -> None:
    text = _name("größe")
    inbox.send_message(base64.b64encode(text.encode()).decode() if encode else text)
    assert host.wait_for_notes("message", text=text)[0]["tries"] == 1


def test_message_that_fails_five_times_ends_on_the_poison_queue_unchanged(
    host: HostProcess, inbox: QueueClient, settings: dict[str, str]
) -> None:
    text = _name("bad")
    inbox.send_message(text)
    poison = _queue(settings, f"{settings['INBOX']}-poison")
    wait_until(lambda: text in {note.content for note in poison.peek_messages(32)}, "the poison message")
    assert [note["tries"] for note in host.notes("message", text=text)] == [1, 2, 3, 4, 5]
