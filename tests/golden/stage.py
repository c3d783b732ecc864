"""The app for one scenario: its HTTP API, its services in memory, and an executor for orchestrations.

Questions run on the durable executor of the local stack, through the official SDK. With the driver `inline`,
they run in this process, as in a program that uses the library. In both cases, streams are read over HTTP.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from shared.wiring import Services
from tests.contract.durable.server import DurableServer
from tests.fakes.background import background_done
from tests.fakes.services import fake_settings
from tests.golden.scripted_model import RoleModel
from tests.golden.streams import frames_of, render
from tests.sample_app import app_functions, use_services
from tests.unit.functions.http_app import SECRET, as_user, make_app
from tests.world import ANNA, World, ask

Driver = Literal["durable", "inline"]
_HANG_GUARD_S = 60.0
_POLL_S = 0.01
_SETTINGS: dict[str, Any] = {
    "dev_token_secret": SECRET,
    "stream_seconds": 60,
    "subagents_enabled": False,
    # Scenarios run in real time, which may be slow on a busy machine, so these limits must never be reached.
    "max_total_latency_ms": 600_000,
    "plan_timeout_s": 300,
}


class Stage:
    """An app with a scripted model, which collects the streams of the runs that a scenario starts.

    Attributes:
        world: the services in memory, with the corpus of `World.add_corpus`.
        model: the model of the main agent and of sub-agents. Extend its script before you ask a question.
        http: a client of the API, signed in as Anna.
        folder: the folder from which agent files are read.
    """

    def __init__(
        self, world: World, model: RoleModel, durable: DurableServer, driver: Driver, folder: Path
    ) -> None:
        self.world = world
        self.model = model
        self.durable = durable
        self.http = as_user(make_app(durable.client), ANNA.user_id, groups=[*ANNA.groups])
        self.folder = folder
        self._driver = driver
        self._texts: list[str] = []
        self._names: dict[str, str] = {}
        self._fields: dict[str, str] = {}

    @property
    def services(self) -> Services:
        """The services behind the API."""
        return self.world.services

    def hide(self, placeholders: Mapping[str, str]) -> None:
        """Replace the values of these fields in the streams by placeholders."""
        self._fields.update(placeholders)

    async def ask(self, question: str, **body: Any) -> dict[str, Any]:
        """Ask a question, wait for its end, record the stream and return the run."""
        if self._driver == "inline":
            view, _ = await ask(self.services, question, ANNA, **body)
            run_id = view.run_id
        else:
            run_id = await self.begin(question, **body)
        return await self.end_of(run_id, question)

    async def begin(self, question: str, **body: Any) -> str:
        """Ask a question and return the run's id immediately."""
        response = await self.http.post(
            "/chat", json={"question": question, **body}, headers={"Prefer": "respond-async"}
        )
        assert response.status_code == 202, response.text
        return str(response.json()["run_id"])

    async def begin_and_wait(self, question: str, **body: Any) -> str:
        """Ask a question, wait until the run waits for a reply, and return the run's id."""
        run_id = await self.begin(question, **body)
        await self._until(run_id, "waiting")
        return run_id

    async def until_hanging(self) -> None:
        """Wait until the model is called for a reply that never arrives."""
        async with asyncio.timeout(_HANG_GUARD_S):
            await self.model.hanging.wait()

    async def reply(self, run_id: str, **answer: Any) -> None:
        """Reply to the run's clarification, and record the status of the response."""
        replied = await self.http.post(f"/runs/{run_id}/answer", json=answer)
        self._texts.append(f"# reply {answer}: {replied.status_code}\n")

    async def cancel(self, run_id: str) -> None:
        """Cancel the run, and record the status of the response."""
        cancelled = await self.http.post(f"/runs/{run_id}/cancel")
        self._texts.append(f"# cancel: {cancelled.status_code}\n")

    async def end_of(self, run_id: str, question: str, *, advance_s: float = 0.0) -> dict[str, Any]:
        """Wait for the end of a run, record its stream and return the run.

        Args:
            advance_s: seconds by which the clock of the orchestrations is advanced between two polls.
        """
        run = await self._until(run_id, "completed", "failed", "cancelled", advance_s=advance_s)
        await background_done()
        self._name(run_id, "run")
        self._name(run["thread_id"], "thread")
        streamed = await self.http.get(f"/runs/{run_id}/events")
        assert streamed.status_code == 200, streamed.text
        self._texts.append(f"# {question}: {run['status']}\n")
        self._texts.append(render(frames_of(streamed.text), self._names, self._fields))
        return run

    @property
    def text(self) -> str:
        """The text of all collected streams."""
        return "".join(self._texts)

    async def _until(self, run_id: str, *statuses: str, advance_s: float = 0.0) -> dict[str, Any]:
        give_up_at = time.monotonic() + _HANG_GUARD_S
        while True:
            run: dict[str, Any] = (await self.http.get(f"/runs/{run_id}")).json()
            if run["status"] in statuses:
                return run
            assert time.monotonic() < give_up_at, run
            await asyncio.sleep(_POLL_S)
            if advance_s:
                self.durable.clock.advance(advance_s)

    def _name(self, unstable: str, kind: str) -> None:
        if unstable not in self._names:
            count = sum(name.startswith(f"<{kind}") for name in self._names.values())
            self._names[unstable] = f"<{kind} {count + 1}>"


@asynccontextmanager
async def open_stage(
    driver: Driver,
    folder: Path,
    patch: pytest.MonkeyPatch,
    settings: Mapping[str, Any],
    parts: Mapping[str, Any],
) -> AsyncIterator[Stage]:
    """Yield a running app with fresh services for one scenario.

    Args:
        folder: the folder for files of the scenario and of the executor.
        settings: the settings that differ from `_SETTINGS`.
        parts: fields of `Services` to replace.
    """
    model = RoleModel()
    values = {**_SETTINGS, "agents_folder": str(folder), **settings}
    world = World(model, settings=fake_settings(**values), **parts)
    await world.add_corpus()
    use_services(world.services, patch)
    # The app sets this variable too; without it, the SDK warns.
    patch.setenv("AZURE_FUNCTIONS_DURABLE_STRICT_TYPING", "1")
    async with DurableServer(app_functions(), folder / "durable.sqlite") as durable:
        stage = Stage(world, model, durable, driver, folder)
        async with stage.http:
            yield stage
