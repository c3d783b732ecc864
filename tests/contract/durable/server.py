"""An executor behind a real HTTP server on loopback, which the real client calls."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import azure.durable_functions as df
import uvicorn
from azure.durable_functions.models.utils import http_utils
from starlette.applications import Starlette
from starlette.routing import Mount

from local.durable.executor import DurableExecutor
from local.durable.protocol import TimerLimits
from tests.contract.durable.moving_clock import MovingClock
from tests.contract.durable.sdk_functions import SdkFunctions
from tests.contract.durable.stage import stage
from tests.free_ports import find_free_port

HANG_GUARD_S = 90.0
ENDED = ("Completed", "Failed", "Terminated")


class QuickServer(uvicorn.Server):
    """A uvicorn server without its pauses of 0.1 s, because every test starts one."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.stopping = asyncio.Event()

    async def main_loop(self) -> None:
        await self.stopping.wait()

    async def shutdown(self, sockets: object = None) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        for server in self.servers:
            await server.wait_closed()


async def eventually(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    """Poll until the condition is true. The time limit is reached only if something is broken."""
    give_up_at = time.monotonic() + HANG_GUARD_S
    while not await condition():
        assert time.monotonic() < give_up_at, f"no {what}"
        await asyncio.sleep(0.01)


class DurableServer:
    """A server that runs a durable app. `restart` stops the executor and starts a new executor on the same
    store.
    """

    def __init__(
        self,
        functions: SdkFunctions,
        store_path: Path,
        *,
        max_parallel_activities: int = 16,
        timer_limits: TimerLimits | None = None,
    ) -> None:
        self.base_url = f"http://127.0.0.1:{find_free_port()}"
        self.clock = MovingClock()
        self.executor = DurableExecutor(
            store_path,
            functions,
            max_parallel_activities=max_parallel_activities,
            timer_limits=timer_limits,
            clock=self.clock,
        )
        binding = self.executor.client_binding(self.base_url)
        functions.client_binding = binding
        self.client = df.DurableOrchestrationClient(binding)
        routes = self.executor.routes()
        app = Starlette(
            routes=[
                Mount("/durabletask", routes=routes),
                Mount("/runtime/webhooks/durabletask", routes=routes),
            ]
        )
        port = int(self.base_url.rpartition(":")[2])
        config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning", lifespan="off")
        self._server = QuickServer(config)
        self._serving: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "DurableServer":
        await self.executor.start()
        self._serving = asyncio.create_task(self._server.serve())
        while not self._server.started:  # noqa: ASYNC110  # uvicorn offers no event
            await asyncio.sleep(0.005)
        return self

    async def __aexit__(self, *_: object) -> None:
        # The SDK caches one session per process, which must not outlive this event loop.
        await http_utils._close_session()
        self._server.stopping.set()
        if self._serving is not None:
            await self._serving
        await self.executor.stop()

    async def restart(self) -> None:
        await self.executor.stop()
        await self.executor.start()

    async def start(self, name: str, value: object = None, instance_id: str | None = None) -> str:
        started: str = await self.client.start_new(name, instance_id, value)
        return started

    async def status(self, instance_id: str, **show: bool) -> Any:
        return await self.client.get_status(instance_id, **show)

    async def until(self, instance_id: str, *statuses: str) -> Any:
        """Wait until an instance has one of the runtime `statuses`, and return its status document."""
        give_up_at = time.monotonic() + HANG_GUARD_S
        while time.monotonic() < give_up_at:
            status = await self.status(instance_id)
            if status.runtime_status is not None and status.runtime_status.value in statuses:
                return status
            await asyncio.sleep(0.01)
        raise AssertionError(f"{instance_id} did not become {statuses}: {json.dumps(status.to_json())}")

    async def run(self, name: str, value: object = None, instance_id: str | None = None) -> Any:
        """Start an instance, wait for its end, and return the final status document."""
        return await self.until(await self.start(name, value, instance_id), *ENDED)

    async def until_custom_status(self, instance_id: str, expected: object) -> None:
        async def is_set() -> bool:
            return bool((await self.status(instance_id)).custom_status == expected)

        await eventually(is_set, f"custom status {expected!r} of {instance_id}")

    async def until_recorded(self, instance_id: str, *kinds: str) -> None:
        """Wait until the history's events of the given kinds are exactly these, in this order."""

        async def are_recorded() -> bool:
            history = [event["EventType"] for event in await self.history(instance_id) or []]
            return [kind for kind in history if kind in kinds] == [*kinds]

        await eventually(are_recorded, f"{kinds} in the history of {instance_id}")

    async def until_begun(self, activity: str, runs: int = 1) -> None:
        """Wait until the activity of that name has started `runs` times."""

        async def has_begun() -> bool:
            return stage.runs[activity] == runs

        await eventually(has_begun, f"run {runs} of {activity}")

    async def history(self, instance_id: str) -> list[dict[str, Any]]:
        status = await self.status(instance_id, show_history=True, show_history_output=True)
        # `status.history` of SDK 1.7.0 is always None.
        events: list[dict[str, Any]] = status.historyEvents
        return events
