"""A run's log as frames: numbered, resumable, equal on every reading."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from functions.event_stream import follow, last_event_id
from shared.agents.memory_log import MemoryRunLog
from shared.errors import CallerError
from shared.models.events import EventName, LogSlice, RunEvent


async def never() -> None:
    raise AssertionError("the run is alive")


async def log_of(*names: EventName) -> MemoryRunLog:
    log = MemoryRunLog()
    await log.create("r")
    await log.append("r", [RunEvent(name=name, data={"text": f"ü\n{name}"}) for name in names])
    return log


async def frames(log: MemoryRunLog, after: int = 0, seconds: float = 5) -> list[bytes]:
    return [frame async for frame in follow(log, "r", after, seconds, never)]


async def test_events_are_numbered_from_one_and_end_with_the_last() -> None:
    received = await frames(await log_of("STATUS", "TOKEN", "COMPLETE"))
    assert received[1] == 'id: 2\nevent: token\ndata: {"text":"ü\\nTOKEN"}\n\n'.encode()
    assert len(received) == 3


async def test_resuming_gives_the_same_bytes_from_there_on() -> None:
    log = await log_of("STATUS", "TOKEN", "TOKEN", "COMPLETE")
    whole = await frames(log)
    for seen in range(4):
        assert await frames(log, after=seen) == whole[seen:]


async def test_a_reader_who_has_seen_the_end_gets_an_empty_stream() -> None:
    assert await frames(await log_of("COMPLETE"), after=1) == []


async def test_a_stream_ends_on_purpose_and_says_how_to_go_on() -> None:
    assert (await frames(await log_of("TOKEN"), seconds=0))[-1] == b": resume with Last-Event-ID\n\n"


async def test_a_run_that_died_is_closed_for_its_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("functions.event_stream._CHECK_AFTER_S", 0.0)
    log = await log_of("TOKEN")

    async def close() -> None:
        await log.append("r", [RunEvent(name="ERROR", data={"message": "stopped"})])

    received = [frame async for frame in follow(log, "r", 0, 5, close)]
    assert received[-1].startswith(b"id: 2\nevent: error\n")


async def test_a_silent_stream_is_kept_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("functions.event_stream.KEEP_ALIVE_S", 0.0)
    assert b": keep-alive\n\n" in await frames(await log_of("TOKEN"), seconds=0.2)


@pytest.mark.parametrize(("header", "number"), [(None, 0), ("", 0), (" 12 ", 12)])
def test_last_event_id_is_read(header: str | None, number: int) -> None:
    assert last_event_id(header) == number


@pytest.mark.parametrize("header", ["-1", "abc", "1.5", "²"])
def test_a_last_event_id_that_is_no_number_is_refused(header: str) -> None:
    with pytest.raises(CallerError):
        last_event_id(header)


class WatchedLog(MemoryRunLog):
    """Tells its watchers of appends, and counts readings."""

    def __init__(self) -> None:
        super().__init__()
        self.grown = asyncio.Event()
        self.readings = 0

    @contextmanager
    def watch(self, run_id: str) -> Iterator[asyncio.Event]:
        yield self.grown

    async def read(self, run_id: str, offset: int = 0) -> LogSlice:
        self.readings += 1
        return await super().read(run_id, offset)

    async def append(self, run_id: str, events: Sequence[RunEvent], *, at_offset: int | None = None) -> int:
        end = await super().append(run_id, events, at_offset=at_offset)
        self.grown.set()
        return end


async def test_a_reader_beside_the_writer_reads_once_for_each_append() -> None:
    log = WatchedLog()
    await log.create("r")
    await log.append("r", [RunEvent(name="STATUS", data={})])
    received = []
    async for frame in follow(log, "r", 0, 5, never):
        received.append(frame)
        await log.append("r", [RunEvent(name="TOKEN" if len(received) < 9 else "COMPLETE", data={})])
    assert len(received) == 10
    assert log.readings == 10


async def test_what_the_reader_knows_of_the_beginning_is_not_read_again() -> None:
    log = await log_of("STATUS")
    begun = await log.read("r")
    await log.append("r", [RunEvent(name="COMPLETE", data={})])
    received = [frame async for frame in follow(log, "r", 0, 5, never, begun=begun)]
    assert received == await frames(log)
