"""Orchestration instances through the durable client: start, query, terminate and purge.

The client is passed in, so no SDK is imported here. Its only exception type is `Exception`.
"""

# Annotations stay text, so that their types need not be imported at start.
from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

StopRun = Callable[[str], Awaitable[None]]
"""Ends a run's orchestration; one that has ended, or never was, is no error."""


_ENDED = frozenset({"Completed", "Failed", "Terminated", "Canceled"})


class Instances:
    """Orchestration instances of one task hub. Only `is_alive` suppresses the client's exceptions."""

    def __init__(self, client: Any) -> None:
        """Wrap a `DurableOrchestrationClient`, which the Functions host creates for each call."""
        self._client = client

    async def start(self, orchestration: str, instance_id: str, payload: Mapping[str, Any]) -> None:
        """Start an instance unless its id exists already, even if that instance has ended."""
        if await self.state(instance_id) is not None:
            return  # the service would restart an ended instance
        try:
            await self._client.start_new(orchestration, instance_id, dict(payload))
        except Exception:
            if await self.state(instance_id) is None:  # otherwise it was started twice at the same time
                raise

    async def start_again(self, orchestration: str, instance_id: str, payload: Mapping[str, Any]) -> bool:
        """Start an instance that may have run before. False = it is running."""
        try:
            await self._client.start_new(orchestration, instance_id, dict(payload))
        except Exception:  # noqa: BLE001  # what the SDK raises for a conflict: the status tells, not its text
            if is_at_work(await self.state(instance_id)):
                return False
            # It has ended since; any other refusal raises now.
            await self._client.start_new(orchestration, instance_id, dict(payload))
        return True

    async def tell(self, instance_id: str, event: str) -> None:
        """Raise an event without content for a waiting instance."""
        await self._client.raise_event(instance_id, event, {})

    async def stop(self, instance_id: str, reason: str = "Nobody is waiting for it any more.") -> None:
        """Terminate an instance. Instances that have ended or never existed are ignored."""
        if is_at_work(await self.state(instance_id)):
            await self._client.terminate(instance_id, reason)

    async def forget(self, instance_id: str) -> None:
        """Terminate an instance and purge its history, whose todo list repeats parts of the question."""
        await self.stop(instance_id)
        await self._client.purge_instance_history(instance_id)

    async def restart(self, instance_id: str) -> None:
        """Restart an ended instance with its input and id and an empty history."""
        await self._client.restart(instance_id, restart_with_new_instance_id=False)

    async def is_alive(self, instance_id: str) -> bool:
        """Return whether the instance may still be running; True if its status can't be read."""
        try:
            return is_at_work(await self.state(instance_id))
        except Exception:  # noqa: BLE001  # see above
            return True

    async def state(self, instance_id: str) -> str | None:
        """Return the service's runtime status; None if no such instance exists."""
        status = await self._client.get_status(instance_id)
        return str(status.runtime_status.value) if status and status.runtime_status else None


def is_at_work(state: str | None) -> bool:
    """Return whether an instance with this status may still do work."""
    return state is not None and state not in _ENDED
