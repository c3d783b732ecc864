"""Questions over HTTP with an orchestration that is run by hand, and a process that can die at any write."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from shared.answering.inline import run_to_end
from shared.platform.errors import ConflictError
from shared.wiring import Services

_WRITES = {
    "idempotency": ("create", "replace"),
    "user_limits": ("write",),
    "run_log": ("create", "append"),
    "blobs": ("create",),
    "threads": ("create", "replace"),
    "runs": ("create",),
}


class Died(BaseException):
    """The process is gone: no `except` of ours sees this."""


class Death:
    """Comes at one write: before it is done, or behind it. Nothing is written by a dead process."""

    def __init__(self, at: int, *, is_behind: bool) -> None:
        self.writes: list[str] = []
        self._at = at
        self._is_behind = is_behind

    def mortal(self, services: Services) -> Services:
        """The same services in a process that will die."""
        ports = {name: _Port(getattr(services, name), name, writes, self) for name, writes in _WRITES.items()}
        return replace(services, **ports)  # type: ignore[arg-type]

    async def do(self, name: str, write: Any, *arguments: Any, **keywords: Any) -> Any:
        left = self._at - len(self.writes)
        if left < 0:
            raise Died
        self.writes.append(name)
        if left > 0:
            return await write(*arguments, **keywords)
        if self._is_behind:
            await write(*arguments, **keywords)
        raise Died


class _Port:
    def __init__(self, inner: Any, name: str, writes: tuple[str, ...], death: Death) -> None:
        self._inner, self._name, self._writes, self._death = inner, name, writes, death

    def __getattr__(self, method: str) -> Any:
        found = getattr(self._inner, method)
        if method not in self._writes:
            return found

        async def mortal(*arguments: Any, **keywords: Any) -> Any:
            return await self._death.do(f"{self._name}.{method}", found, *arguments, **keywords)

        return mortal


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
            await self.death.do("start_new", self._start, instance_id)
        else:
            await self._start(instance_id)
        return instance_id

    async def run(self, run_id: str) -> None:
        """Bring a run that was held to its end."""
        await run_to_end(run_id, self._services)
        self.states[run_id] = "Completed"

    async def _start(self, instance_id: str) -> None:
        if self.states.get(instance_id) == "Running":  # one that has ended is begun anew
            raise ConflictError("There is an instance of this id.")
        self.started.append(instance_id)
        self.states[instance_id] = "Running"
        if not self.holds:
            await self.run(instance_id)
