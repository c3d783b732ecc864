"""Tests for a run's log as an event stream: numbered, resumable and identical on every read."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from functions.http.event_stream import follow, is_at_the_end, last_event_id
from shared.platform.errors import CallerError
from shared.runs.events import RunEvent
from shared.runs.log_lines import EventName, LogSlice
from shared.runs.memory_run_log import MemoryRunLog
from shared.runs.run_log import LogTail
from tests.fakes.run_log import run_event


async def never() -> None:
    raise AssertionError("the run is alive")


async def log_of(*names: EventName) -> MemoryRunLog:
    log = MemoryRunLog()
    await log.create("r")
    await log.append("r", [run_event(name) for name in names])
    return log


async def frames(log: MemoryRunLog, after: int = 0, seconds: float = 5) -> list[bytes]:
    return [frame async for frame in follow(log, "r", after, seconds, never)]


async def test_events_are_numbered_from_one_and_end_with_the_last() -> None:
    log = await log_of("STATUS")
    await log.append("r", [run_event("TOKEN", step=3, text="ü\nTOKEN"), run_event("COMPLETE")])
    received = await frames(log)
    assert received[1] == 'id: 2\nevent: token\ndata: {"step":3,"text":"ü\\nTOKEN"}\n\n'.encode()
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
    monkeypatch.setattr("functions.http.event_stream._CHECK_AFTER_S", 0.0)
    log = await log_of("TOKEN")

    async def close() -> None:
        await log.append("r", [run_event("ERROR")])

    received = [frame async for frame in follow(log, "r", 0, 5, close)]
    assert received[-1].startswith(b"id: 2\nevent: error\n")


async def test_a_silent_stream_is_kept_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("functions.http.event_stream.KEEP_ALIVE_S", 0.0)
    assert b": keep-alive\n\n" in await frames(await log_of("TOKEN"), seconds=0.2)


@pytest.mark.parametrize(("header", "number"), [(None, 0), ("", 0), (" 12 ", 12)])
def test_last_event_id_is_read(header: str | None, number: int) -> None:
    assert last_event_id(header) == number


@pytest.mark.parametrize("header", ["-1", "abc", "1.5", "²"])
def test_a_last_event_id_that_is_no_number_is_refused(header: str) -> None:
    with pytest.raises(CallerError):
        last_event_id(header)


class WatchedLog(MemoryRunLog):
    """A log that passes appended events to local watchers, like that of the writing process, and counts
    reads.
    """

    def __init__(self) -> None:
        super().__init__()
        self.tail = LogTail()
        self.readings = 0

    @contextmanager
    def watch(self, run_id: str) -> Iterator[LogTail]:
        yield self.tail

    async def read(self, run_id: str, offset: int = 0) -> LogSlice:
        self.readings += 1
        return await super().read(run_id, offset)

    async def append(self, run_id: str, events: Sequence[RunEvent], *, at_offset: int | None = None) -> int:
        end = await super().append(run_id, events, at_offset=at_offset)
        lines = [event.to_line() for event in events]
        self.tail.add(end - len(lines), lines, end, written_here=True)
        return end


async def test_a_reader_in_the_process_of_the_writer_asks_storage_for_nothing() -> None:
    log = WatchedLog()
    await log.create("r")
    await log.append("r", [run_event("STATUS")])
    received = []
    async for frame in follow(log, "r", 0, 5, never):
        received.append(frame)
        await log.append("r", [run_event("TOKEN" if len(received) < 9 else "COMPLETE")])
    assert len(received) == 10
    assert log.readings == 0
    assert await frames(log) == received


async def test_what_a_reader_was_told_does_not_hide_what_others_write() -> None:
    log = WatchedLog()
    await log.create("r")
    await log.append("r", [run_event("STATUS")])
    received = []
    async for frame in follow(log, "r", 0, 5, never):
        received.append(frame)
        if len(received) == 1:  # another process writes, so local watchers are not notified
            await MemoryRunLog.append(log, "r", [run_event("TOKEN")])
        elif len(received) == 2:
            await log.append("r", [run_event("COMPLETE")])
    assert [frame.split(b"\n")[0] for frame in received] == [b"id: 1", b"id: 2", b"id: 3"]


async def test_many_readers_ask_storage_as_often_as_one() -> None:
    log = WatchedLog()
    await log.create("r")
    reading = [asyncio.create_task(frames(log)) for _ in range(50)]
    await asyncio.sleep(0.1)
    began = log.readings
    names: tuple[EventName, ...] = ("STATUS", "TOKEN", "TOKEN", "COMPLETE")
    for name in names:
        await MemoryRunLog.append(log, "r", [run_event(name)])
        await asyncio.sleep(0.06)
    received = await asyncio.gather(*reading)
    assert all(one == received[0] for one in received)
    assert len(received[0]) == 4
    assert log.readings - began < 150  # separate polling would need some 500 reads each


async def test_a_slow_reader_is_sent_away_on_purpose_in_the_middle_of_a_piece() -> None:
    names: list[EventName] = ["TOKEN"] * 50
    log = await log_of(*names)
    received = []
    async for frame in follow(log, "r", 0, 0.1, never):
        received.append(frame)
        await asyncio.sleep(0.03)
    assert received[-1] == b": resume with Last-Event-ID\n\n"
    assert 1 < len(received) < 20


@pytest.mark.parametrize(("after", "is_over"), [(0, False), (1, False), (2, True)])
async def test_whoever_has_seen_the_last_event_has_nothing_to_wait_for(after: int, is_over: bool) -> None:
    log = await log_of("TOKEN", "COMPLETE")
    assert is_at_the_end(await log.read("r"), after) is is_over


async def test_nobody_has_seen_what_was_not_written_yet() -> None:
    with pytest.raises(CallerError):
        is_at_the_end(await (await log_of("TOKEN")).read("r"), 2)


async def test_what_the_reader_knows_of_the_beginning_is_not_read_again() -> None:
    log = await log_of("STATUS")
    first_slice = await log.read("r")
    await log.append("r", [run_event("COMPLETE")])
    received = [frame async for frame in follow(log, "r", 0, 5, never, first_slice=first_slice)]
    assert received == await frames(log)


async def test_a_run_that_was_just_begun_here_is_waited_for_without_asking_storage_all_the_time() -> None:
    log = WatchedLog()
    await log.create("r")
    await MemoryRunLog.append(log, "r", [run_event("STATUS")])  # before the first watcher
    first_slice = await log.read("r")
    log.readings = 0

    async def work() -> None:
        await asyncio.sleep(0.3)  # the time until the first step
        await log.append("r", [run_event("COMPLETE")])

    working = asyncio.create_task(work())
    received = [frame async for frame in follow(log, "r", 0, 5, never, first_slice=first_slice)]
    await working
    assert len(received) == 2
    assert 1 <= log.readings <= 3  # the run may have continued in another process
