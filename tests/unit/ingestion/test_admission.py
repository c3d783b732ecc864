"""Tests for admission: every queued document is ingested, even if processes die."""

import asyncio
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import azure.durable_functions as df
import pytest

from shared.documents import open_work_store
from shared.documents.ids import document_id, ingestion_id
from shared.documents.state_store import DocumentStore
from shared.ingestion import admission, admission_rules
from shared.ingestion.admission import Admissions
from shared.ingestion.admission_rules import PLACES, PLACES_WHILE_ASKED
from shared.ingestion.models import WatchMessage
from shared.ingestion.task import fresh_state, request_ingestion
from shared.platform.errors import ConflictError
from shared.platform.instances import Instances
from shared.platform.names import INGESTIONS_QUEUE
from shared.platform.tracing import TraceLink, context_of, root, traceparent
from shared.wiring import Services
from tests.fakes.services import fake_services
from tests.fakes.table import InMemoryTable
from tests.tracing_fixture import Recorded, recorded, start_recording

__all__ = ["recorded", "start_recording"]
_STATUS = df.OrchestrationRuntimeStatus


class Host:
    """A durable client whose instances run until a test ends them."""

    def __init__(self) -> None:
        self.running: list[str] = []
        self.payloads: dict[str, Any] = {}
        self.starts = 0

    async def get_status(self, instance: str) -> Any:
        status = _STATUS.Running if instance in self.running else None
        return SimpleNamespace(runtime_status=status)

    async def start_new(self, name: str, instance: str, payload: Any) -> str:
        if instance in self.running:
            raise Exception("It runs.")  # noqa: TRY002 - what the SDK raises
        self.running.append(instance)
        self.payloads[instance] = payload
        self.starts += 1
        return instance


@pytest.fixture
def services() -> Services:
    return fake_services()


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.fixture(autouse=True)
def looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission_rules, "FIRST_LOOK", timedelta(0))
    monkeypatch.setattr(open_work_store, "_SHORTEST_S", 0.0)


def admissions(services: Services, host: Host) -> Admissions:
    return Admissions(services, Instances(host))


async def add(services: Services, name: str) -> None:
    await request_ingestion(fresh_state(name), services.documents)


async def end(services: Services, host: Host, name: str) -> None:
    """End an ingestion as its final activity does."""
    work = await services.documents.open_work.get(document_id(name))
    assert work is not None
    await services.documents.open_work.delete(work.doc_id, work.revision or "")
    host.running.remove(ingestion_id(name))


async def places(services: Services) -> list[str]:
    return [place.blob_name for place in (await services.documents.open_work.admission()).places]


def messages(services: Services) -> list[str]:
    queues: Any = services.queues
    return [WatchMessage.from_stored(message).token for message in queues.take(INGESTIONS_QUEUE)]


def other_process(services: Services) -> Services:
    """Return the services of another process that shares the tables and queues."""
    table: Any = services.documents._table
    return fake_services(documents=DocumentStore(table), queues=services.queues)


async def test_a_thousand_documents_are_in_progress_a_few_at_a_time_and_all_end(
    services: Services, host: Host
) -> None:
    names = [f"bulk/{number}.txt" for number in range(1000)]
    for name in names:
        await add(services, name)
        await admissions(services, host).admit()
    done = set[str]()
    while in_progress := await places(services):
        assert len(host.running) == len(in_progress) < PLACES
        name = in_progress[0]
        await end(services, host, name)
        await admissions(services, host).admit(leaving=document_id(name))
        done.add(name)
    assert done == {*names}
    assert host.starts == 1000


@pytest.mark.parametrize("is_traced", [True, False], ids=["traced", "begun before the export"])
async def test_a_document_that_takes_over_a_place_has_its_own_trace(
    services: Services, host: Host, recorded: Recorded, *, is_traced: bool
) -> None:
    for number in range(PLACES):
        await add(services, f"bulk/{number}.txt")
    await admissions(services, host).admit()
    first, running = (await places(services))[0], {*host.running}
    await end(services, host, first)
    with root("ingest close", "internal") if is_traced else nullcontext():
        ended = context_of(traceparent())
        await admissions(services, host).admit(leaving=document_id(first))
    (started,) = {*host.running} - running
    own = context_of(TraceLink.model_validate(host.payloads[started]["trace"]).own)
    assert own.is_valid
    assert own.trace_id != ended.trace_id
    assert recorded.parent_of("start_ingestion") is None


async def test_an_execution_that_died_is_started_again_by_the_watch(services: Services, host: Host) -> None:
    await add(services, "a.txt")
    await admissions(services, host).admit()
    (token,) = messages(services)
    host.running.clear()
    await admissions(services, host).look(token)
    assert (host.starts, host.running) == (2, [ingestion_id("a.txt")])
    (token,) = messages(services)
    await admissions(services, host).look(token)
    assert host.starts == 2, "it runs"


async def test_an_execution_that_dies_again_and_again_rests_and_others_get_its_place(
    services: Services, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "WATCH_S", 0.0)
    await add(services, "a.txt")
    await admissions(services, host).admit()
    for _ in range(5):
        host.running.clear()
        await admissions(services, host).look()
    assert (host.starts, await places(services)) == (4, [])
    work = await services.documents.open_work.get(document_id("a.txt"))
    assert work is not None
    assert work.due_at is not None
    assert work.due_at > datetime.now(UTC)


async def test_the_place_of_a_document_without_work_is_given_to_the_next(
    services: Services, host: Host
) -> None:
    for number in range(PLACES):
        await add(services, f"bulk/{number}.txt")
    await admissions(services, host).admit()
    first = (await places(services))[0]
    await end(services, host, first)  # the process died before it released the slot
    (token,) = messages(services)
    await admissions(services, host).look(token)
    assert first not in await places(services)
    assert f"bulk/{PLACES - 1}.txt" in await places(services)


async def test_the_watch_goes_on_while_there_is_work_and_each_message_counts_once(
    services: Services, host: Host
) -> None:
    await add(services, "a.txt")
    await admissions(services, host).admit()
    (first,) = messages(services)
    await admissions(services, host).look(first)
    (second,) = messages(services)
    await admissions(services, host).look(first)  # the message is delivered twice
    assert messages(services) == []
    await end(services, host, "a.txt")
    await admissions(services, host).look(second)
    assert messages(services) == []
    assert (await services.documents.open_work.admission()).watch == ""
    await add(services, "b.txt")
    await admissions(services, host).admit()
    assert len(messages(services)) == 1


async def test_a_watch_that_was_lost_is_replaced_by_the_timers_look(
    services: Services, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(services, "a.txt")
    await admissions(services, host).admit()
    (lost,) = messages(services)
    await admissions(services, host).look()
    assert messages(services) == [], "it may still come"
    monkeypatch.setattr(admission, "_LOST", timedelta(0))
    await admissions(services, host).look()
    (token,) = messages(services)
    assert token not in ("", lost)


async def test_a_wish_that_came_while_its_instance_ended_is_looked_at_soon(
    services: Services, host: Host
) -> None:
    host.running.append(ingestion_id("a.txt"))
    await add(services, "a.txt")
    await admissions(services, host).admit()
    assert "" in messages(services)
    host.running.clear()
    await admissions(services, host).look()
    assert host.running == [ingestion_id("a.txt")]


async def test_a_place_that_stays_empty_is_given_to_what_another_process_has_stored(
    services: Services, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a free slot goes to a document that another process queued while all slots were taken."""
    monkeypatch.setattr(open_work_store, "_SHORTEST_S", 3600.0)
    for number in range(PLACES - 1):
        await add(services, f"bulk/{number}.txt")
    await admissions(services, host).admit()
    other = other_process(services)
    await add(other, "bulk/late.txt")
    await admissions(other, host).admit()
    assert "bulk/late.txt" not in await places(services)
    await end(services, host, "bulk/0.txt")
    await admissions(services, host).admit(leaving=document_id("bulk/0.txt"))
    assert "bulk/late.txt" in await places(services)


async def test_what_another_process_has_ended_is_not_admitted(services: Services, host: Host) -> None:
    for name in ("a.txt", "b.txt"):
        await add(services, name)
    other = other_process(services)
    work = await other.documents.open_work.get(document_id("a.txt"))
    assert work is not None
    await other.documents.open_work.delete(work.doc_id, work.revision or "")
    await admissions(services, host).admit()
    assert await places(services) == ["b.txt"]


async def test_two_processes_never_admit_more_than_there_are_places(services: Services, host: Host) -> None:
    other = other_process(services)
    for number in range(40):
        await add(services if number % 2 else other, f"bulk/{number}.txt")
    await asyncio.gather(*(admissions(one, host).admit() for one in [services, other] * 5))
    assert len(await places(services)) == PLACES - 1 == host.starts


async def test_fewer_places_are_given_while_people_ask(services: Services, host: Host) -> None:
    await other_process(services).documents.open_work.note_question()
    for number in range(40):
        await add(services, f"bulk/{number}.txt")
    await admissions(services, host).admit()
    assert len(await places(services)) == PLACES_WHILE_ASKED - 1


async def test_a_row_of_the_backlog_is_deleted_only_if_nothing_was_asked_since() -> None:
    services = fake_services()
    await add(services, "a.txt")
    store = services.documents.open_work
    first = await store.get(document_id("a.txt"))
    assert first is not None
    state = await services.documents.get(first.doc_id)
    assert state is not None
    await request_ingestion(state, services.documents)
    with pytest.raises(ConflictError):
        await store.delete(first.doc_id, first.revision or "")
    assert await store.get(first.doc_id) is not None


async def test_a_scan_keeps_what_this_process_writes_meanwhile() -> None:
    class SlowTable(InMemoryTable):
        async def query(self, condition: str = "", *, page_size: int | None = None) -> Any:
            async for row in super().query(condition):
                yield row
            await meanwhile()

    async def meanwhile() -> None:
        await add(services, "new.txt")
        await end_of("old.txt")

    async def end_of(name: str) -> None:
        work = await services.documents.open_work.get(document_id(name))
        assert work is not None
        await services.documents.open_work.delete(work.doc_id, work.revision or "")

    services = fake_services(documents=DocumentStore(SlowTable()))
    await add(services, "old.txt")
    backlog = await services.documents.open_work.backlog(is_fresh=True)
    assert [work.blob_name for work in backlog] == ["new.txt"]
