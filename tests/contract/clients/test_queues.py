"""Poison queues on Azurite: messages are read and stay in the queue."""

import base64
import json

import pytest
from azure.core.exceptions import ResourceExistsError

from shared.platform.errors import DependencyError
from shared.platform.names import POISON_QUEUES
from shared.platform.queues import PoisonQueues, TaskQueues
from shared.wiring import Connections
from tests.contract.clients.conftest import NOWHERE, Connect
from tests.servers import Azurite

pytestmark = pytest.mark.contract


async def test_queues_that_are_there_already_are_no_failure(to_storage: Connections) -> None:
    queues = TaskQueues(to_storage.queues)
    for _ in range(2):
        await queues.ensure_queues(["test-made-once"])
    await queues.send("test-made-once", "é")
    client = to_storage.queues.client().get_queue_client("test-made-once")
    assert len([message async for message in client.receive_messages()]) == 1


async def test_the_first_message_makes_its_queue(to_storage: Connections) -> None:
    await TaskQueues(to_storage.queues).send("test-never-made", "first")
    client = to_storage.queues.client().get_queue_client("test-never-made")
    assert len([message async for message in client.receive_messages()]) == 1


OF_TRIGGER = {
    "FunctionId": "Host.Functions.blob_created",
    "ContainerName": "documents",
    "BlobName": "ü/a.pdf",
}


OF_DELETION = {"subject": "/blobServices/default/containers/documents/blobs/b.pdf", "data": {"url": "?sig=s"}}


async def put(to_storage: Connections, queue: str, *texts: str) -> None:
    client = to_storage.queues.client().get_queue_client(queue)
    try:
        await client.create_queue()
    except ResourceExistsError:
        await client.clear_messages()
    for text in texts:
        await client.send_message(text)


async def test_messages_tell_which_file_they_are_about_and_stay(to_storage: Connections) -> None:
    of_blobs, of_deletions, of_turns, _, _ = POISON_QUEUES
    await put(to_storage, of_blobs, json.dumps(OF_TRIGGER), "no JSON", "[]")
    await put(to_storage, of_deletions, base64.b64encode(json.dumps(OF_DELETION).encode()).decode())
    poison = PoisonQueues(to_storage.queues)
    for _ in range(2):
        peeked_messages = [
            (message.queue, message.blob_name, message.function) for message in await poison.peek()
        ]
        assert peeked_messages == [
            (of_blobs, "ü/a.pdf", "Host.Functions.blob_created"),
            (of_blobs, None, None),
            (of_blobs, None, None),
            (of_deletions, "b.pdf", None),
        ]
    await put(to_storage, of_turns, json.dumps({"owner_id": "anna", "thread_id": "t1", "run_id": "r1"}))
    (of_turn,) = [message for message in await poison.peek() if message.queue == of_turns]
    assert (of_turn.thread_id, of_turn.blob_name) == ("t1", None)
    assert "sig" not in "".join(message.model_dump_json() for message in await poison.peek())


async def test_queues_out_of_reach_name_the_setting(azurite: Azurite, connect: Connect) -> None:
    nowhere = azurite.connection_string.replace(f"http://127.0.0.1:{azurite.queue_port}", NOWHERE)
    with pytest.raises(DependencyError) as unreachable:
        await PoisonQueues(connect(DocumentsStorage=nowhere).queues).peek()
    assert "DocumentsStorage" in unreachable.value.hints[0]
