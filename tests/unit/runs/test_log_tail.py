"""Tests for the in-memory tail of a log: the events it returns, eviction, and waking of readers."""

import asyncio

from shared.runs.log_lines import LogSlice
from shared.runs.run_log import KEPT_CHARS, LogTail


def append_lines(tail: LogTail, offset: int, *lines: str) -> int:
    end = offset + sum(len(line) + 1 for line in lines)
    tail.add(offset, lines, end, written_here=True)
    return end


def test_what_follows_an_offset_is_told_in_one() -> None:
    tail = LogTail()
    middle = append_lines(tail, 0, "a", "b")
    end = append_lines(tail, middle, "c")
    assert tail.since(0) == LogSlice(lines=("a", "b", "c"), next_offset=end)
    assert tail.since(middle) == LogSlice(lines=("c",), next_offset=end)
    assert tail.since(end) is None


def test_a_gap_is_not_skipped() -> None:
    tail = LogTail()
    append_lines(tail, 0, "a")
    append_lines(tail, 9, "c")
    assert tail.since(0) == LogSlice(lines=("a",), next_offset=2)
    assert (tail.since(2), tail.is_behind(2)) == (None, True)


def test_it_keeps_no_more_than_its_bound() -> None:
    tail = LogTail()
    offset = 0
    for _ in range(10):
        offset = append_lines(tail, offset, "x" * (KEPT_CHARS // 4))
    log_slice = tail.since(offset - 4 * (KEPT_CHARS // 4 + 1))
    assert log_slice is not None
    assert len(log_slice.lines) == 4
    assert (tail.since(0), tail.is_behind(0)) == (None, True)
    append_lines(tail, offset, "x" * (KEPT_CHARS + 1))
    assert tail.since(offset) is None


async def test_all_who_wait_are_woken_and_nobody_waits_for_what_is_there() -> None:
    tail = LogTail()
    waiting = [asyncio.create_task(tail.wait_for_lines(0, 5)) for _ in range(3)]
    await asyncio.sleep(0)
    append_lines(tail, 0, "a")
    assert await asyncio.gather(*waiting) == [True, True, True]
    assert await tail.wait_for_lines(0, 0) is True
    assert await tail.wait_for_lines(2, 0.01) is False


async def test_one_look_at_storage_counts_for_all_for_a_while() -> None:
    tail = LogTail()
    tail.note_empty(7)
    assert tail.was_empty(7, 5)
    assert not tail.was_empty(8, 5)
    await asyncio.sleep(0.02)
    assert not tail.was_empty(7, 0.01)


async def test_a_log_that_was_deleted_keeps_nobody_busy() -> None:
    tail = LogTail()
    append_lines(tail, 5, "gone")
    assert await tail.wait_for_lines(0, 0) is True
    tail.note_empty(0)  # storage has no events at this offset
    assert await tail.wait_for_lines(0, 0.01) is False
