"""The contract of `RunLog`, in memory and with Azurite."""

import asyncio

import pytest

from shared.platform.blobs import BlobStore
from shared.platform.errors import ConflictError, NotFoundError, PayloadTooLargeError
from shared.runs.blob_run_log import MAX_APPEND_BYTES, BlobRunLog
from shared.runs.event_log import open_event_log
from shared.runs.events import RunEvent, TokenEvent, parse_event
from shared.runs.run_log import RunLog
from tests.contract.clients.conftest import Connect
from tests.fakes.run_log import InMemoryRunLog, run_event
from tests.servers import Azurite, unique_name


@pytest.fixture(params=["in memory", pytest.param("azurite", marks=pytest.mark.contract)])
async def log(request: pytest.FixtureRequest, connect: Connect) -> RunLog:
    run_log: RunLog = InMemoryRunLog()
    if request.param == "azurite":
        azurite: Azurite = request.getfixturevalue("azurite")
        connections = connect(DocumentsStorage=azurite.connection_string)
        container = unique_name("run-log")
        await BlobStore(connections.blobs).ensure_containers([container])
        run_log = BlobRunLog(connections.blobs, container)
    await run_log.create("r1")
    return run_log


def token(text: str) -> RunEvent:
    return TokenEvent(text=text)


async def test_a_new_log_is_empty(log: RunLog) -> None:
    assert (await log.read("r1")).lines == ()
    assert (await log.read("r1")).next_offset == 0


async def test_events_come_back_as_lines_in_order_also_those_of_many_bytes(log: RunLog) -> None:
    events = [token("Überdruck: 12 bar"), token("压力阀 🔧\n\u2028new line\u0085")]
    end = await log.append("r1", events)
    page = await log.read("r1")
    assert [parse_event(line) for line in page.lines] == events
    assert page.next_offset == end


async def test_reading_goes_on_where_it_ended(log: RunLog) -> None:
    middle = await log.append("r1", [token("ä")])
    end = await log.append("r1", [token("b"), token("c")])
    rest = await log.read("r1", middle)
    assert [parse_event(line).data["text"] for line in rest.lines] == ["b", "c"]
    assert await log.read("r1", end) == rest.model_copy(update={"lines": (), "next_offset": end})


async def test_an_append_at_the_end_succeeds_and_one_elsewhere_is_a_conflict(log: RunLog) -> None:
    end = await log.append("r1", [token("a")], at_offset=0)
    with pytest.raises(ConflictError):
        await log.append("r1", [token("late")], at_offset=0)
    assert await log.append("r1", [token("b")], at_offset=end) > end
    assert len((await log.read("r1")).lines) == 2


async def test_of_many_writers_at_one_offset_exactly_one_wins(log: RunLog) -> None:
    attempts = [log.append("r1", [token(str(n)), token(str(n))], at_offset=0) for n in range(8)]
    outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    assert sum(isinstance(outcome, int) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, ConflictError) for outcome in outcomes) == 7
    assert len((await log.read("r1")).lines) == 2


async def test_readers_never_see_part_of_an_append(log: RunLog) -> None:
    async def write() -> None:
        for n in range(20):
            await log.append("r1", [token(f"{n} ä" * 50)] * 3)

    writing = asyncio.create_task(write())
    while not writing.done():
        assert len((await log.read("r1")).lines) % 3 == 0
        await asyncio.sleep(0)
    await writing
    assert len((await log.read("r1")).lines) == 60


async def test_creating_a_log_again_keeps_what_it_holds(log: RunLog) -> None:
    await log.append("r1", [token("a")])
    await log.create("r1")
    assert len((await log.read("r1")).lines) == 1


async def test_a_log_that_is_not_there_is_not_found(log: RunLog) -> None:
    with pytest.raises(NotFoundError):
        await log.read("never")
    with pytest.raises(NotFoundError):
        await log.append("never", [token("a")])


async def test_a_deleted_log_is_gone_and_deleting_it_again_is_no_error(log: RunLog) -> None:
    await log.delete("r1")
    await log.delete("r1")
    with pytest.raises(NotFoundError):
        await log.read("r1")


@pytest.fixture
async def blob_log(azurite: Azurite, connect: Connect) -> BlobRunLog:
    connections = connect(DocumentsStorage=azurite.connection_string)
    container = unique_name("run-log")
    await BlobStore(connections.blobs).ensure_containers([container])
    return BlobRunLog(connections.blobs, container)


@pytest.mark.contract
async def test_whoever_watches_a_run_is_told_what_is_appended_as_storage_would(blob_log: BlobRunLog) -> None:
    for run_id in ("r1", "r2"):
        await blob_log.create(run_id)
    with blob_log.watch("r1") as first, blob_log.watch("r1") as second, blob_log.watch("r2") as other:
        end = await blob_log.append("r1", [token("ü"), token("x")], at_offset=0)
        await blob_log.append("r1", [token("y")], at_offset=end)
        assert first.since(0) == await blob_log.read("r1")
        assert first.since(end) == second.since(end) == await blob_log.read("r1", end)
        assert (first.since(1), other.since(0)) == (None, None)
        assert (await first.wait_for_lines(0, 0), await other.wait_for_lines(0, 0)) == (True, False)
    with blob_log.watch("r1") as later:
        assert later.since(0) is None


@pytest.mark.contract
async def test_a_long_log_is_read_in_pieces_of_whole_lines(blob_log: BlobRunLog) -> None:
    await blob_log.create("r1")
    events = [token("a" * 50_000) for _ in range(9)] + [token("b" * 400_000), token("c")]
    for event in events:
        await blob_log.append("r1", [event])
    lines: list[str] = []
    pieces, offset = 0, 0
    while (piece := await blob_log.read_piece("r1", offset)).lines:
        pieces, offset = pieces + 1, piece.next_offset
        lines += piece.lines
    assert tuple(lines) == (await blob_log.read("r1")).lines
    assert pieces == 3


@pytest.mark.contract
async def test_a_journal_at_its_limits_takes_only_the_end_of_its_run(
    connect: Connect, azurite: Azurite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.runs.blob_run_log.MAX_APPENDS", 2)
    connections = connect(DocumentsStorage=azurite.connection_string)
    container = unique_name("run-log")
    await BlobStore(connections.blobs).ensure_containers([container])
    log = BlobRunLog(connections.blobs, container)
    await log.create("r")
    with pytest.raises(PayloadTooLargeError):
        await log.append("r", [token("x" * MAX_APPEND_BYTES)])
    for _ in range(2):
        await log.append("r", [token("a")])
    with pytest.raises(PayloadTooLargeError):
        await log.append("r", [token("b")])
    attempt = await open_event_log(log, "r", 9)
    await attempt.write(run_event("ERROR"))
    assert len((await log.read("r")).lines) == 4
