"""Questions over HTTP with an orchestration that is run by hand, and a process that can die at any write."""

from types import SimpleNamespace
from typing import Any

from shared.answering.inline import run_to_end
from shared.platform.errors import ConflictError
from shared.wiring import Services
from tests.fakes.dying import Death

WRITES = {
    "idempotency": ("write",),
    "user_limits": ("change",),
    "run_log": ("create", "append"),
    "blobs": ("create",),
    "threads": ("create", "replace"),
    "runs": ("create",),
}


class AskingClient:
    """A durable client; an orchestration runs to its end when it is started, unless it is held."""

    def __init__(self, services: Services) -> None:
        self.states: dict[str, str] = {}
        self.started: list[str] = []
        self.holds = False
        self.refuses = False
        self.death: Death | None = None
        self._services = services

    async def get_status(self, instance_id: str) -> Any:
        state = self.states.get(instance_id)
        return SimpleNamespace(runtime_status=SimpleNamespace(value=state)) if state else None

    async def start_new(self, name: str, instance_id: str, payload: dict[str, Any]) -> str:
        assert (name, payload) == ("answer_question", {"run_id": instance_id})
        if self.refuses:
            raise ConnectionError("nobody is there")
        if self.death is not None:
            await self.death.call("start_new", self._start, instance_id)
        else:
            await self._start(instance_id)
        return instance_id

    async def run(self, run_id: str) -> None:
        """Bring a run that was held to its end."""
        await run_to_end(run_id, self._services)
        self.states[run_id] = "Completed"

    async def _start(self, instance_id: str) -> None:
        if self.states.get(instance_id) == "Running":  # one that has ended is restarted
            raise ConflictError("There is an instance of this id.")
        self.started.append(instance_id)
        self.states[instance_id] = "Running"
        if not self.holds:
            await self.run(instance_id)
