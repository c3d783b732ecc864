"""Cancelling a run ends its sub-agents, and deleting its thread deletes their data."""

import time
from typing import Any

import pytest
from azure.storage.blob import BlobServiceClient

from evals.budgets.children import Child, Instances
from local.run_all.api_client import StreamEvent
from local.run_all.stack import LocalStack
from tests.e2e.sub_agents.hosts import MODEL, caller_of, configured

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

QUESTION = "Compare the revenue in the annual report 2023 and the annual report 2024."
PATIENCE_S = 240.0  # far longer than any operation takes unless it hangs


class Impatient:
    """A reader that cancels the run as soon as a sub-agent is active."""

    def __init__(self, stack: LocalStack) -> None:
        self._caller = caller_of(stack)
        self.run_id = self.thread_id = ""
        self.live: list[dict[str, Any]] = []

    def watch(self, event: StreamEvent) -> None:
        if event.data.get("state") == "accepted":
            self.run_id, self.thread_id = event.data["run_id"], event.data["thread_id"]
        if "child" in event.data and not self.live:
            self.live = self.run()["sub_agents"]
            status, _ = self._caller.call("POST", f"/api/runs/{self.run_id}/cancel")
            assert status == 200

    def run(self) -> dict[str, Any]:
        status, body = self._caller.call("GET", f"/api/runs/{self.run_id}")
        assert status == 200
        run: dict[str, Any] = body
        return run


def test_cancelling_ends_sub_agents_at_work_and_deleting_leaves_none_of_their_words(
    stack: LocalStack,
) -> None:
    reader = Impatient(stack)
    with configured(stack, CHAT_MODEL=f"{MODEL}@stall=0,only=sub_agent") as running:
        caller = caller_of(running)
        followed = caller.ask(QUESTION, PATIENCE_S, reader.watch)
        assert followed.last is not None
        assert (followed.last.name, followed.last.data["type"]) == ("error", "RunCancelledError")
        assert [(view["badge"], view["status"]) for view in reader.live] == [("Comparator", "running")]
        # Each child was terminated, or noticed the cancellation and ended, before its own deadline.
        ends = [child.ended_after_s for child in _children(running, reader.run_id)]
        assert ends, "no sub-agent was at work"
        assert all(end is not None and end < 0 for end in ends), ends
        assert [view["status"] for view in reader.run()["sub_agents"]] == ["failed"]
        blob_names = _blobs(running, reader.run_id)
        assert f"runs/{reader.run_id}/" in blob_names[0]
        assert caller.call("DELETE", f"/api/threads/{reader.thread_id}")[0] in (200, 202, 204)
        _wait_until_only_names_are_left(running, reader.run_id)


def _children(stack: LocalStack, run_id: str) -> list[Child]:
    instances = Instances(stack)
    try:
        return instances.wait_until_settled(run_id)
    finally:
        instances.close()


def _blobs(stack: LocalStack, run_id: str) -> list[str]:
    with BlobServiceClient.from_connection_string(stack.storage_connection_string) as service:
        work = service.get_container_client("work")
        return [blob.name for blob in work.list_blobs(name_starts_with=f"runs/{run_id}/")]


def _wait_until_only_names_are_left(stack: LocalStack, run_id: str) -> None:
    """Wait until only the sub-agents' ids are left, which are kept until their histories are removed 15
    minutes later.
    """
    until = time.monotonic() + PATIENCE_S
    while (left := _blobs(stack, run_id)) != [f"runs/{run_id}/children.json"]:
        assert time.monotonic() < until, left
        time.sleep(0.2)
