"""Task queues against Azurite: made once, found at every later start."""

import pytest

from shared.platform.queues import AzureTaskQueues
from shared.wiring import Connections

pytestmark = pytest.mark.contract


async def test_queues_that_are_there_already_are_no_failure(to_storage: Connections) -> None:
    queues = AzureTaskQueues(to_storage.queues)
    for _ in range(2):
        await queues.ensure_queues(["test-made-once"])
    await queues.send("test-made-once", "é")
    client = to_storage.queues.client().get_queue_client("test-made-once")
    assert len([message async for message in client.receive_messages()]) == 1
