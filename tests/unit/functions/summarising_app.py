"""A durable client for summaries whose orchestration runs in the test."""

from types import SimpleNamespace
from typing import Any

from shared.answering.summary_script import DocumentSummary
from shared.wiring import Services
from tests.unit.answering.summarising import drive


class SummarisingClient:
    """A durable client that runs an orchestration to its end when it is started, unless `holds` is set."""

    def __init__(self, services: Services) -> None:
        self.states: dict[str, str] = {}
        self.started: list[str] = []
        self.payloads: list[dict[str, Any]] = []
        self.purged: list[str] = []
        self.holds = False
        self.refuses = False
        self.services = services

    async def get_status(self, instance_id: str) -> Any:
        state = self.states.get(instance_id)
        return SimpleNamespace(runtime_status=SimpleNamespace(value=state)) if state else None

    async def start_new(self, name: str, instance_id: str, payload: dict[str, Any]) -> str:
        assert name == "document_summary"
        if self.refuses:
            raise ConnectionError("nobody is there")
        self.started.append(instance_id)
        self.payloads.append(payload)
        self.states[instance_id] = "Running"
        if not self.holds:
            await drive(self.services, payload["run_id"], DocumentSummary())
            self.states[instance_id] = "Completed"
        return instance_id

    async def restart(self, instance_id: str, restart_with_new_instance_id: bool) -> None:
        assert not restart_with_new_instance_id
        self.states[instance_id] = "Running"

    async def terminate(self, instance_id: str, reason: str) -> None:
        self.states[instance_id] = "Terminated"

    async def purge_instance_history(self, instance_id: str) -> None:
        self.states.pop(instance_id, None)
        self.purged.append(instance_id)
