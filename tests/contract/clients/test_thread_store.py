"""The contracts of `ThreadStore` and `TaskQueues`, in memory and with Azurite."""

import base64
from datetime import UTC, datetime, timedelta

import pytest

from shared.conversations.models import Thread, ThreadTurn
from shared.conversations.thread_store import MAX_TURNS_AT_ONCE, ThreadStore
from shared.conversations.window import ANSWER_CHARS, QUESTION_CHARS
from shared.platform.errors import CallerError, ConflictError, NotFoundError
from shared.platform.queues import TaskQueues
from shared.platform.tables import Table
from shared.runs.models import RunRecord
from shared.runs.run_store import RunStore
from shared.wiring import Connections
from tests.contract.clients.conftest import Connect, table_name
from tests.fakes.stores import InMemoryThreadStore
from tests.servers import Azurite, unique_name

NOW = datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)
STRANGE_OWNER = "a/b\\c#d?e'f%20ü"


@pytest.fixture(
    params=[
        "in memory",
        pytest.param("azurite", marks=pytest.mark.contract),
        pytest.param("azurite, unsorted", marks=pytest.mark.contract),
    ]
)
def threads(request: pytest.FixtureRequest) -> ThreadStore:
    if request.param == "in memory":
        return InMemoryThreadStore()
    connections: Connections = request.getfixturevalue("to_storage")
    is_sorted = request.param == "azurite"
    return ThreadStore(Table(connections.tables, table_name("threads"), is_sorted=is_sorted))


@pytest.fixture
def runs(table: Table) -> RunStore:
    return RunStore(table)


def thread(thread_id: str = "t1", owner_id: str = "anna", age_s: float = 0) -> Thread:
    at = NOW - timedelta(seconds=age_s)
    return Thread(thread_id=thread_id, owner_id=owner_id, title="Ünïcode 压力", created_at=at, updated_at=at)


def turn(number: int = 1, thread_id: str = "t1") -> ThreadTurn:
    return ThreadTurn(
        thread_id=thread_id, number=number, run_id=f"r{number}", question=f"q{number}\n'x'", asked_at=NOW
    )


async def test_a_thread_comes_back_with_its_first_turn(threads: ThreadStore) -> None:
    stored = await threads.create(thread(), [turn()])
    assert stored.revision
    assert await threads.get("anna", "t1") == stored
    stored_turn = await threads.turn("anna", "t1", 1)
    assert stored_turn is not None
    assert stored_turn.model_copy(update={"revision": None}) == turn()


async def test_a_thread_begins_with_as_many_turns_as_one_step_stores(threads: ThreadStore) -> None:
    long = [
        turn(number).model_copy(update={"question": "問" * QUESTION_CHARS, "answer": "答" * ANSWER_CHARS})
        for number in range(1, MAX_TURNS_AT_ONCE + 1)
    ]
    await threads.create(thread(), long)
    newest_turns = await threads.turns("anna", "t1", MAX_TURNS_AT_ONCE + 1)
    assert [one.number for one in newest_turns] == [one.number for one in reversed(long)]


async def test_an_owner_of_any_name_has_their_own_rows(threads: ThreadStore) -> None:
    await threads.create(thread(owner_id=STRANGE_OWNER), [turn()])
    await threads.create(thread("t2"))
    assert await threads.get(STRANGE_OWNER, "t1") is not None
    for owner in ("anna", "a", STRANGE_OWNER.upper(), ""):
        assert await threads.get(owner, "t1") is None
        assert await threads.turns(owner, "t1", 10) == []
        assert await threads.turn(owner, "t1", 1) is None
    assert [one.thread_id for one in (await threads.page(STRANGE_OWNER, 10)).threads] == ["t1"]
    assert [one.thread_id for one in (await threads.page("anna", 10)).threads] == ["t2"]


async def test_a_thread_id_is_taken_once(threads: ThreadStore) -> None:
    await threads.create(thread())
    with pytest.raises(ConflictError):
        await threads.create(thread())


async def test_the_thread_that_changed_last_is_listed_first(threads: ThreadStore) -> None:
    originals = [await threads.create(thread(f"t{age}", age_s=age)) for age in range(5)]
    first = await threads.page("anna", 2)
    assert [one.thread_id for one in first.threads] == ["t0", "t1"]
    second = await threads.page("anna", 2, first.cursor)
    assert [one.thread_id for one in second.threads] == ["t2", "t3"]
    last = await threads.page("anna", 2, second.cursor)
    assert ([one.thread_id for one in last.threads], last.cursor) == (["t4"], None)
    moved = originals[4].model_copy(update={"updated_at": NOW + timedelta(microseconds=1), "turn_count": 1})
    await threads.replace(originals[4], moved, turn(1, "t4"))
    page = await threads.page("anna", 10)
    assert [one.thread_id for one in page.threads] == ["t4", "t0", "t1", "t2", "t3"]
    assert page.threads[0].turn_count == 1
    with pytest.raises(CallerError):
        await threads.page("anna", 2, "bm90IG91cnM")


async def test_of_two_who_read_the_same_thread_the_second_writer_is_refused_with_its_turn(
    threads: ThreadStore,
) -> None:
    stored = await threads.create(thread())
    changed = stored.model_copy(update={"turn_count": 1, "updated_at": NOW + timedelta(seconds=1)})
    await threads.replace(stored, changed, turn())
    for late in (changed, stored.model_copy(update={"title": "late"})):
        with pytest.raises(ConflictError):
            await threads.replace(stored, late, turn(2))
    assert [one.number for one in await threads.turns("anna", "t1", 10)] == [1]
    with pytest.raises((ConflictError, NotFoundError)):
        await threads.replace(thread("t9"), thread("t9"))


async def test_a_deleted_thread_leaves_the_list_and_can_be_read_until_it_is_removed(
    threads: ThreadStore,
) -> None:
    stored = await threads.create(thread())
    renamed = await threads.replace(stored, stored.model_copy(update={"title": "new"}))
    deleted = await threads.replace(renamed, renamed.model_copy(update={"is_deleted": True}))
    assert (await threads.page("anna", 10)).threads == ()
    assert await threads.get("anna", "t1") == deleted
    assert [one.thread_id async for one in threads.unerased()] == ["t1"]
    await threads.remove(deleted)
    await threads.remove(deleted)
    assert await threads.get("anna", "t1") is None
    assert [one async for one in threads.unerased()] == []


async def test_turns_come_newest_first_and_of_their_thread_alone(threads: ThreadStore) -> None:
    stored = await threads.create(thread())
    await threads.create(thread("t1-2"), [turn(1, "t1-2")])
    for number in range(1, 13):
        changed = stored.model_copy(update={"turn_count": number})
        stored = await threads.replace(stored, changed, turn(number))
    newest = await threads.turns("anna", "t1", 3)
    assert [one.number for one in newest] == [12, 11, 10]
    assert [one.number for one in await threads.turns("anna", "t1", 5, before=10)] == [9, 8, 7, 6, 5]
    assert len(await threads.turns("anna", "t1", 100)) == 12


async def test_a_turn_is_replaced_as_it_was_read_and_not_brought_back(threads: ThreadStore) -> None:
    await threads.create(thread(), [turn()])
    read = await threads.turn("anna", "t1", 1)
    assert read is not None
    answered = await threads.replace_turn("anna", read.model_copy(update={"answer": "a" * 2000}))
    with pytest.raises(ConflictError):
        await threads.replace_turn("anna", read)
    assert await threads.turn("anna", "t1", 1) == answered
    await threads.remove_turn("anna", answered)
    await threads.remove_turn("anna", answered)
    with pytest.raises(NotFoundError):
        await threads.replace_turn("anna", answered)
    assert await threads.turns("anna", "t1", 10) == []


async def test_what_is_to_be_forgotten_is_noted_for_its_owner(threads: ThreadStore) -> None:
    assert await threads.forgotten_until("anna") is None
    await threads.ensure_table()
    for moment in (NOW, NOW + timedelta(days=1)):
        await threads.forget_before("anna", moment)
        assert await threads.forgotten_until("anna") == moment
    assert await threads.forgotten_until("ben") is None


async def test_runs_are_found_by_when_they_ended_and_deleted_for_good(runs: RunStore) -> None:
    for run_id, age_days in (("old", 3), ("new", 1)):
        ended = NOW - timedelta(days=age_days)
        await runs.create(
            RunRecord(
                run_id=run_id, thread_id="t", owner_id="u", question="q", created_at=NOW, finished_at=ended
            )
        )
    await runs.create(RunRecord(run_id="running", thread_id="t", owner_id="u", question="q", created_at=NOW))
    old_records = [record async for record in runs.ended_before(NOW - timedelta(days=2))]
    assert [record.run_id for record in old_records] == ["old"]
    await runs.replace(old_records[0].model_copy(update={"has_log": False}))
    assert [record.run_id async for record in runs.ended_before(NOW)] == ["new"]
    await runs.delete("new")
    await runs.delete("new")
    assert [record async for record in runs.ended_before(NOW)] == []
    with pytest.raises(NotFoundError):
        await runs.replace(old_records[0].model_copy(update={"run_id": "new"}))


@pytest.mark.contract
async def test_tables_of_another_account_are_reached_by_their_own_endpoint_and_key(
    azurite: Azurite, connect: Connect
) -> None:
    parts = dict(part.split("=", 1) for part in azurite.connection_string.strip(";").split(";"))
    settings = {"tables_endpoint": parts["TableEndpoint"], "tables_key": parts["AccountKey"]}
    elsewhere = connect(DocumentsStorage="UseDevelopmentStorage=true", **settings)
    store = ThreadStore(Table(elsewhere.tables, table_name("threads")))
    await store.ensure_table()
    await store.create(thread())
    assert await store.get("anna", "t1") is not None


@pytest.mark.contract
async def test_a_message_is_sent_as_triggers_read_it(to_storage: Connections) -> None:
    queue = unique_name("turns")
    queues = TaskQueues(to_storage.queues)
    await queues.send(queue, '{"ü": 1}')  # creates the queue
    await queues.ensure_queues([queue])  # it may exist already
    await queues.send(queue, "later", delay_s=60)
    received = await to_storage.queues.client().get_queue_client(queue).peek_messages(10)
    assert [base64.b64decode(message.content).decode() for message in received] == ['{"ü": 1}']
