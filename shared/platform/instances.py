"""Management of orchestration instances: start, query, notify, terminate and purge.

The durable client is passed in, so no SDK is imported here. It raises plain `Exception`s for all errors.
"""

# Annotations remain strings, so that their types need not be imported at runtime.
from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

StopRun = Callable[[str], Awaitable[None]]
"""Terminates a run's orchestration. Missing and ended orchestrations are ignored."""


_ENDED = frozenset({"Completed", "Failed", "Terminated", "Canceled"})


class Instances:
    """Orchestration instances of a task hub. Exceptions of the durable client are passed on, except by
    `is_alive`.
    """

    def __init__(self, client: Any) -> None:
        """Wrap a `DurableOrchestrationClient`, which the Functions host creates for each call."""
        self._client = client

    async def start(self, orchestration: str, instance_id: str, payload: Mapping[str, Any]) -> None:
        """Start an instance unless one with this id exists, running or ended."""
        if await self.state(instance_id) is not None:
            return  # the check is needed because `start_new` would restart an instance that has ended
        try:
            await self._client.start_new(orchestration, instance_id, dict(payload))
        except Exception:
            # An instance that exists now was started by a concurrent call.
            if await self.state(instance_id) is None:
                raise

    async def start_again(self, orchestration: str, instance_id: str, payload: Mapping[str, Any]) -> bool:
        """Start an instance, even if an earlier one with this id has ended. Return False if one is
        running.
        """
        try:
            await self._client.start_new(orchestration, instance_id, dict(payload))
        except Exception:  # noqa: BLE001  # the SDK has no type for conflicts, so the status decides
            if is_at_work(await self.state(instance_id)):
                return False
            # The running instance has ended in the meantime, so start it again. Any other error recurs and is
            # raised this time.
            await self._client.start_new(orchestration, instance_id, dict(payload))
        return True

    async def raise_event(self, instance_id: str, event: str) -> None:
        """Raise an external event without payload. An instance that isn't waiting for the event yet receives
        it later.
        """
        await self._client.raise_event(instance_id, event, {})

    async def stop(self, instance_id: str, reason: str = "Nobody is waiting for it any more.") -> None:
        """Terminate an instance. Missing and ended instances are ignored."""
        if is_at_work(await self.state(instance_id)):
            await self._client.terminate(instance_id, reason)

    async def forget(self, instance_id: str) -> None:
        """Terminate an instance and purge its history, which contains parts of the user's question."""
        await self.stop(instance_id)
        await self._client.purge_instance_history(instance_id)

    async def restart(self, instance_id: str) -> None:
        """Restart an ended instance with the same id and input. Its history is discarded."""
        await self._client.restart(instance_id, restart_with_new_instance_id=False)

    async def is_alive(self, instance_id: str) -> bool:
        """Return whether the instance may still be running. An unknown status counts as running."""
        try:
            return is_at_work(await self.state(instance_id))
        except Exception:  # noqa: BLE001  # the SDK has no narrower type
            return True

    async def state(self, instance_id: str) -> str | None:
        """Return the instance's runtime status, such as "Running", or None if there is no such instance."""
        status = await self._client.get_status(instance_id)
        return str(status.runtime_status.value) if status and status.runtime_status else None


def is_at_work(state: str | None) -> bool:
    """Return whether a runtime status means that the instance has not ended."""
    return state is not None and state not in _ENDED
