"""The edge of chat channels: an orchestration is started once, whatever comes twice."""

from types import SimpleNamespace
from typing import Any

import pytest

from shared.platform.instances import Instances


class Orchestrations:
    """A durable client over a dict. `refuses`: it raises; `wins`: another call was quicker."""

    def __init__(self, *, refuses: bool = False, wins: bool = False) -> None:
        self.started: dict[str, tuple[str, dict[str, Any]]] = {}
        self._refuses, self._wins = refuses, wins

    async def get_status(self, instance_id: str) -> Any:
        state = SimpleNamespace(value="Running") if instance_id in self.started else None
        return SimpleNamespace(runtime_status=state)

    async def start_new(self, name: str, instance_id: str, payload: dict[str, Any]) -> str:
        if self._wins:
            self.started[instance_id] = ("the other call's", {})
        if self._refuses:
            raise RuntimeError("409 or anything else: the client says no more")
        self.started[instance_id] = (name, payload)
        return instance_id


async def start(orchestrations: Orchestrations) -> None:
    await Instances(orchestrations).start("reply_in_channel", "key-reply", {"reply_key": "key"})


async def test_an_orchestration_is_started_once() -> None:
    orchestrations = Orchestrations()
    for _ in range(2):
        await start(orchestrations)
    assert orchestrations.started == {"key-reply": ("reply_in_channel", {"reply_key": "key"})}


async def test_one_that_another_call_has_started_meanwhile_is_no_error() -> None:
    orchestrations = Orchestrations(refuses=True, wins=True)
    await start(orchestrations)
    assert orchestrations.started["key-reply"][0] == "the other call's"


async def test_one_that_cannot_be_started_is_the_callers_to_send_again() -> None:
    with pytest.raises(RuntimeError):
        await start(Orchestrations(refuses=True))
