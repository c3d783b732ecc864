"""The session's stack with temporary settings, and data that tests of sub-agents read without the API."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from azure.core.exceptions import ResourceNotFoundError
from azure.data.tables import TableClient, UpdateMode
from azure.storage.blob import BlobServiceClient

from evals.budgets.following import Caller, Followed
from local.run_all.stack import LocalStack
from samples.acl import ANNA, SampleUser
from tests.e2e.stack_fixture import SharedStack

MODEL = "groundwork-extractive"
GIVE_UP_S = 240.0  # far longer than any operation takes unless it hangs
# Allows for a busy machine, which wakes processes late. `make budgets` measures the delay of the app.
SLACK_S = 15.0
CONTROL_TABLE = "subagentcontrol"


@contextmanager
def configured(stack: LocalStack, **changes: str) -> Iterator[LocalStack]:
    """Restart the host of the stack with these settings, yield the stack, and restore the host afterwards."""
    assert isinstance(stack, SharedStack)
    with stack.restored():
        stack.kill_host()
        forget_control(stack)
        # The samples are so short that comparing or summarising them needs no sub-agent by default.
        stack.start_host({"WHOLE_DOCUMENTS_TOKENS": "0", **changes})
        try:
            yield stack
        finally:
            forget_control(stack)


def caller_of(stack: LocalStack, user: SampleUser = ANNA) -> Caller:
    return Caller(lambda: stack.ports.http, stack.token(user))


def ask(stack: LocalStack, question: str) -> Followed:
    """Ask a question, and return the completed run with all its events."""
    followed = caller_of(stack).ask(question, GIVE_UP_S)
    assert followed.last is not None, f"no end within {GIVE_UP_S:.0f} s: {question}"
    return followed


def decision_of(followed: Followed) -> dict[str, Any]:
    """Return the run's only delegation decision, as its readers see it."""
    decisions = statuses(followed, "delegation")
    assert len(decisions) == 1, decisions
    return decisions[0]


def statuses(followed: Followed, state: str) -> list[dict[str, Any]]:
    """Return all status events of one kind."""
    return [one.data for one in followed.events if one.name == "status" and one.data.get("state") == state]


def answer_of(followed: Followed) -> dict[str, Any]:
    """Return the answer in the last event. Fail if there is none."""
    assert followed.last is not None
    assert followed.last.name == "complete", followed.last.data
    answer: dict[str, Any] = followed.last.data["answer"]
    return answer


def run_of(stack: LocalStack, followed: Followed) -> dict[str, Any]:
    """Return the run as the API shows it to its owner after its end."""
    status, body = caller_of(stack).call("GET", f"/api/runs/{followed.run_id}")
    assert status == 200
    run: dict[str, Any] = body
    return run


def tasks_of(stack: LocalStack, run_id: str) -> list[dict[str, Any]]:
    """Return the tasks of the run's sub-agents from its journal."""
    with BlobServiceClient.from_connection_string(stack.storage_connection_string) as service:
        journal = service.get_blob_client("run-log", f"{run_id}/events.jsonl").download_blob().readall()
    lines = [json.loads(line)["data"] for line in journal.splitlines()]
    delegations = [line["inline"] for line in lines if line.get("part") == "delegation"]
    return [task for delegation in delegations for task in delegation["tasks"]]


def forget_control(stack: LocalStack) -> None:
    """Delete the state of running sub-agents: their slots and the circuit breaker."""
    with _control(stack) as table, suppress(ResourceNotFoundError):
        for row in list(table.list_entities()):
            table.delete_entity(row["PartitionKey"], row["RowKey"])


def spoil_control(stack: LocalStack) -> None:
    """Make the stored state of running sub-agents unreadable, as a manual change of the table could."""
    with _control(stack) as table:
        rows = [dict(row) for row in table.list_entities()]
        assert rows, "no sub-agent has been at work yet"
        for row in rows:
            keys = ("PartitionKey", "RowKey")
            spoiled = {
                name: value if name in keys or not isinstance(value, str) else "{spoiled"
                for name, value in row.items()
            }
            table.update_entity(spoiled, mode=UpdateMode.REPLACE)


def _control(stack: LocalStack) -> TableClient:
    return TableClient.from_connection_string(stack.storage_connection_string, CONTROL_TABLE)


def warnings_of(answer: Mapping[str, Any]) -> list[str]:
    return list(answer.get("warnings", ()))
