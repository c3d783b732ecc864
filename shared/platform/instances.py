"""Orchestrations of the app as its durable client reaches them: begun once, looked at, ended, forgotten.

The client is handed in: no SDK is imported here. It raises nothing more precise than `Exception`.
"""

# For annotations alone: the start of the app need not build every model.
from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

StopRun = Callable[[str], Awaitable[None]]
"""Ends a run's orchestration; one that has ended, or never was, is no error."""


_ENDED = frozenset({"Completed", "Failed", "Terminated", "Canceled"})


class Instances:
    """Those that one client reaches. Every method but `is_alive` raises what the client raises."""

    def __init__(self, client: Any) -> None:
        """`client`: a `DurableOrchestrationClient`, which the functions' host makes for each call."""
        self._client = client

    async def start(self, orchestration: str, instance_id: str, payload: Mapping[str, Any]) -> None:
        """Start one; nothing happens when there is one of that id already, be it one that has ended."""
        if await self.state(instance_id) is not None:
            return  # the service would start again one that has ended
        try:
            await self._client.start_new(orchestration, instance_id, dict(payload))
        except Exception:
            if await self.state(instance_id) is None:  # else: started twice at once
                raise

    async def tell(self, instance_id: str, event: str) -> None:
        """Raise an event of no content for one that waits."""
        await self._client.raise_event(instance_id, event, {})

    async def stop(self, instance_id: str, reason: str = "Nobody is waiting for it any more.") -> None:
        """End one; nothing happens when it has ended or never was."""
        if is_at_work(await self.state(instance_id)):
            await self._client.terminate(instance_id, reason)

    async def forget(self, instance_id: str) -> None:
        """End one, and remove its history: the todo list in a run's repeats what was asked."""
        await self.stop(instance_id)
        await self._client.purge_instance_history(instance_id)

    async def restart(self, instance_id: str) -> None:
        """Begin one again that has ended: with its input, its id and an empty history."""
        await self._client.restart(instance_id, restart_with_new_instance_id=False)

    async def is_alive(self, instance_id: str) -> bool:
        """Whether it may still do anything; yes, where nobody can tell."""
        try:
            return is_at_work(await self.state(instance_id))
        except Exception:  # noqa: BLE001  # see above
            return True

    async def state(self, instance_id: str) -> str | None:
        """The service's word for how it is; None when there is none of this id."""
        status = await self._client.get_status(instance_id)
        return str(status.runtime_status.value) if status and status.runtime_status else None


def is_at_work(state: str | None) -> bool:
    """Whether an instance in this state may still do anything."""
    return state is not None and state not in _ENDED
