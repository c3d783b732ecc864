"""Questions over HTTP with an orchestration that tests run themselves, and a process that may die at any
write.
"""

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
    """A durable client that runs an orchestration to its end when it is started, unless `holds` is set."""

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
        """Run an orchestration to its end after it was held."""
        await run_to_end(run_id, self._services)
        self.states[run_id] = "Completed"

    async def _start(self, instance_id: str) -> None:
        if self.states.get(instance_id) == "Running":  # an ended instance may be started again
            raise ConflictError("An instance with this id is running.")
        self.started.append(instance_id)
        self.states[instance_id] = "Running"
        if not self.holds:
            await self.run(instance_id)
