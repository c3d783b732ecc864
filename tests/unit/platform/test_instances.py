"""Tests for starting, signalling and stopping orchestrations through a durable client."""

from types import SimpleNamespace
from typing import Any

import pytest

from shared.platform.instances import Instances


class Client:
    """A durable client with instances by state. `fails` makes starts raise, `is_away` makes queries raise."""

    def __init__(self, **states: str) -> None:
        self.states = states
        self.calls: list[tuple[str, ...]] = []
        self.fails = self.is_away = False

    async def get_status(self, instance_id: str) -> Any:
        if self.is_away:
            raise ConnectionError("nobody is there")
        state = self.states.get(instance_id)
        return SimpleNamespace(runtime_status=SimpleNamespace(value=state) if state else None)

    async def start_new(self, name: str, instance_id: str, payload: dict[str, Any]) -> str:
        self.calls.append((name, instance_id))
        if self.fails:
            raise ConnectionError("nobody is there")
        return instance_id

    async def raise_event(self, instance_id: str, name: str, content: Any) -> None:
        assert content == {}
        self.calls.append((name, instance_id))

    async def terminate(self, instance_id: str, reason: str) -> None:
        self.calls.append(("terminate", instance_id))


def over(client: Client) -> Instances:
    return Instances(client)


async def test_one_that_was_started_is_not_started_again() -> None:
    client = Client(known="Running")
    await over(client).start("answer_question", "known", {})
    await over(client).start("answer_question", "new", {"run_id": "new"})
    assert client.calls == [("answer_question", "new")]


async def test_one_that_another_has_started_meanwhile_is_started() -> None:
    class Racing(Client):
        async def start_new(self, name: str, instance_id: str, payload: dict[str, Any]) -> str:
            self.states[instance_id] = "Pending"
            raise ConnectionError("it exists already")

    await over(Racing()).start("answer_question", "new", {})


async def test_one_that_cannot_be_started_is_told() -> None:
    client = Client()
    client.fails = True
    with pytest.raises(ConnectionError):
        await over(client).start("answer_question", "new", {})


@pytest.mark.parametrize(
    ("state", "stops"), [("Running", True), ("Pending", True), ("Completed", False), ("Terminated", False)]
)
async def test_what_has_ended_is_not_stopped(state: str, *, stops: bool) -> None:
    client = Client(run=state)
    await over(client).stop("run")
    await over(client).stop("unknown")
    assert client.calls == ([("terminate", "run")] if stops else [])
    assert await over(client).is_alive("run") is stops


async def test_whether_it_lives_is_doubted_only_with_a_reason() -> None:
    client = Client()
    assert not await over(client).is_alive("unknown")
    client.is_away = True
    assert await over(client).is_alive("unknown")


async def test_an_answer_is_told_without_its_words() -> None:
    client = Client()
    await over(client).raise_event("run", "answered-3")
    assert client.calls == [("answered-3", "run")]
