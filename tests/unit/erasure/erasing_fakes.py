"""Two people's lives on fakes, the passes of an erasure by hand, and every trace that the fakes hold."""

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
    """Ask for it, and make one pass after the other until no message is left; the view when it began."""
    view = await ask_for_erasure(user_id, documents, services)
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


async def one_pass(services: Services, at_work: Orchestrations, **until: float) -> None:
    """Handle the one message that waits. `until`: when its time is up."""
    (message,) = services.queues.take(ERASURES_QUEUE)  # type: ignore[attr-defined]
    task = EraseUserTask.model_validate_json(message)
    await advance(task.erasure_id, services, at_work.deps(**until))


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
    elif isinstance(value, InMemoryTable):
        _collect(place, value.rows, found)
    elif not isinstance(value, itertools.count):
        found.append((place, f"{place} {value!r}"))


def stored_of(services: Services, marks: tuple[str, ...]) -> list[tuple[str, str]]:
    """All that tells of any of these, with its place."""
    return [one for one in everything(services) if any(mark in one[1] for mark in marks)]


def traces(services: Services, marks: tuple[str, ...]) -> list[str]:
    """Places that tell of any of these."""
    return [place for place, _ in stored_of(services, marks)]
