"""The data of two people on fakes, manual erasure passes, and a search for everything that the fakes
store.
"""

import itertools
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
from tests.fakes.table import InMemoryTable
from tests.unit.erasure.lives import Life, fill, live, model_of_lives

PORTS = (
    *("blobs", "run_log", "runs", "threads", "documents", "poison", "queues", "idempotency", "user_limits"),
    *("quality", "memory_index", "bot_turns"),
)


class Orchestrations:
    """A recorder of the orchestrations that were stopped and whose history was removed."""

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

    def deps(self, **until: float) -> EraseDependencies:
        return EraseDependencies(self.stop, self.forget, self.delete_document, **until)


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
    """Request an erasure, and make passes until no message is left. Return the view of the request."""
    view = await ask_for_erasure(user_id, documents, services)
    await make_passes(services, at_work)
    return view


async def make_passes(services: Services, at_work: Orchestrations, process: Services | None = None) -> int:
    """Handle messages until none is left, and return the number of passes. `process` are other services for
    the passes.
    """
    assert isinstance(services.queues, InMemoryTaskQueues)
    for passes in range(20):
        messages = services.queues.take(ERASURES_QUEUE)
        if not messages:
            return passes
        for message in messages:
            task = EraseUserTask.model_validate_json(message)
            await advance(task.erasure_id, process or services, at_work.deps())
    raise AssertionError("The erasure does not end.")


async def one_pass(services: Services, at_work: Orchestrations, **until: float) -> None:
    """Handle the only message in the queue. `until` is the deadline of the pass."""
    (message,) = services.queues.take(ERASURES_QUEUE)  # type: ignore[attr-defined]
    task = EraseUserTask.model_validate_json(message)
    await advance(task.erasure_id, services, at_work.deps(**until))


def everything(services: Services) -> list[tuple[str, str]]:
    """Return every value in the fakes as text, with its location."""
    entries: list[tuple[str, str]] = []
    for name in PORTS:
        for attribute, value in vars(getattr(services, name)).items():
            if attribute != "requests":  # recorded by the fake index, but not stored by a real one
                _collect(f"{name}.{attribute}", value, entries)
    return entries


def _collect(place: str, value: Any, entries: list[tuple[str, str]]) -> None:
    if isinstance(value, dict):
        for key, one in value.items():
            _collect(f"{place}[{key}]", one, entries)
    elif isinstance(value, list | tuple | set):
        for number, one in enumerate(value):
            _collect(f"{place}[{number}]", one, entries)
    elif isinstance(value, InMemoryTable):
        _collect(place, value.rows, entries)
    elif not isinstance(value, itertools.count):
        entries.append((place, f"{place} {value!r}"))


def stored_of(services: Services, marks: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the (location, text) of all stored values that contain one of the marks."""
    return [one for one in everything(services) if any(mark in one[1] for mark in marks)]


def traces(services: Services, marks: tuple[str, ...]) -> list[str]:
    """Return the locations of all stored values that contain one of the marks."""
    return [place for place, _ in stored_of(services, marks)]
