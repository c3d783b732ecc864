"""Two people's lives on fakes, the passes of an erasure by hand, and every trace that the fakes hold."""

import inspect
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from shared.documents.state import DocumentState
from shared.erasure.models import DocumentsWish, EraseUserTask, ErasureView
from shared.erasure.passes import EraseDependencies, advance
from shared.erasure.requests import ask_for_erasure
from shared.platform.names import ERASURES_QUEUE
from shared.wiring import Services
from tests.fakes.bot import InMemoryBotTurnStore
from tests.fakes.services import fake_services
from tests.fakes.stores import InMemoryTaskQueues
from tests.unit.erasure.lives import Life, fill, live, model_of_lives

PORTS = (
    "blobs",
    "run_log",
    "runs",
    "threads",
    "documents",
    "poison",
    "queues",
    "idempotency",
    "user_limits",
    "quality",
    "memory_index",
    "bot_turns",
)


class Orchestrations:
    """What was ended, and whose history was removed."""

    def __init__(self) -> None:
        self.stopped: list[str] = []
        self.forgotten: list[str] = []
        self.deleted: list[str] = []

    async def stop(self, instance_id: str) -> None:
        self.stopped.append(instance_id)

    async def forget(self, instance_id: str) -> None:
        self.forgotten.append(instance_id)

    async def delete_document(self, state: DocumentState) -> None:
        self.deleted.append(state.doc_id)

    def deps(self) -> EraseDependencies:
        return EraseDependencies(self.stop, self.forget, self.delete_document)


async def two_lives() -> tuple[Services, Life, Life]:
    services = fake_services(chat_model=model_of_lives(), bot_turns=InMemoryBotTurnStore())
    await fill(services)
    anna = await live("anna-leaves", "heliotrope zebra", services)
    ben = await live("ben-stays", "vermilion lynx", services)
    services.poison.owners += ["ben-stays", "anna-leaves"]  # type: ignore[attr-defined]
    services.queues.take("turns")  # type: ignore[attr-defined]
    return services, anna, ben


async def erase(
    user_id: str, services: Services, at_work: Orchestrations, documents: DocumentsWish = "keep"
) -> ErasureView:
    """Ask for it, and make one pass after the other until no message is left; the view when it began."""
    view = await ask_for_erasure(user_id, documents, services.blobs, services.queues)
    await make_passes(services, at_work)
    return view


async def make_passes(services: Services, at_work: Orchestrations, process: Services | None = None) -> int:
    """Handle messages until none is left; how many passes that took. `process`: its services."""
    assert isinstance(services.queues, InMemoryTaskQueues)
    for made in range(20):
        messages = services.queues.take(ERASURES_QUEUE)
        if not messages:
            return made
        for message in messages:
            task = EraseUserTask.model_validate_json(message)
            await advance(task.erasure_id, process or services, at_work.deps())
    raise AssertionError("The erasure does not end.")


def everything(services: Services) -> list[tuple[str, str]]:
    """Every value that a fake holds, as text, with the place where it lies."""
    found: list[tuple[str, str]] = []
    for name in PORTS:
        for attribute, value in vars(getattr(services, name)).items():
            if attribute != "requests":  # what the fake index was asked, which nobody keeps
                _collect(f"{name}.{attribute}", value, found)
    return found


def _collect(place: str, value: Any, found: list[tuple[str, str]]) -> None:
    if isinstance(value, dict):
        for key, one in value.items():
            _collect(f"{place}[{key}]", one, found)
    elif isinstance(value, list | tuple | set):
        for number, one in enumerate(value):
            _collect(f"{place}[{number}]", one, found)
    elif not isinstance(value, itertools.count):
        found.append((place, f"{place} {value!r}"))


def traces(services: Services, marks: tuple[str, ...]) -> list[str]:
    """Places that tell of any of these."""
    return [place for place, text in everything(services) if any(mark in text for mark in marks)]


class KilledError(BaseException):
    """The process is gone."""


class _Dying:
    """A port whose process is killed at its n-th call of all ports, before that does anything."""

    def __init__(self, port: Any, before_call: Callable[[], None]) -> None:
        self._port = port
        self._before_call = before_call

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        if inspect.iscoroutinefunction(method):

            async def call(*args: Any, **kwargs: Any) -> Any:
                self._before_call()
                return await method(*args, **kwargs)

            return call
        if inspect.isasyncgenfunction(method):

            async def look(*args: Any, **kwargs: Any) -> Any:
                self._before_call()
                async for one in method(*args, **kwargs):
                    yield one

            return look
        return method


def killed_after(calls: int, services: Services) -> Services:
    """The same services, of a process that lives for so many calls."""
    left = itertools.count(calls, -1)

    def before_call() -> None:
        if next(left) <= 0:
            raise KilledError

    dying: dict[str, Any] = {name: _Dying(getattr(services, name), before_call) for name in PORTS}
    return replace(services, **dying)
