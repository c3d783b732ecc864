"""Tests for the journal: complete steps, the reply that counts, and the allowed order of events."""

import asyncio
from datetime import UTC, datetime

import pytest

from shared.platform.blobs import BlobStore
from shared.runs.event_log import RunClosedError, StaleAttemptError, open_event_log
from shared.runs.events import DoneLine, ReplyLine, TokenEvent
from shared.runs.journal import INLINE_BYTES, keep_reply, read_journal
from shared.runs.memory_run_log import MemoryRunLog
from shared.runs.models import Choice, RunAnswer
from tests.fakes.blob_store import InMemoryBlobStore
from tests.fakes.run_log import run_event

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = Choice(said="2", numbers=(2,))


async def new_log() -> MemoryRunLog:
    log = MemoryRunLog()
    await log.create("r")
    return log


async def public_lines(log: MemoryRunLog) -> list[str]:
    return list((await log.read("r")).public)


async def test_nothing_of_a_step_follows_its_completion() -> None:
    log = await new_log()
    first = await open_event_log(log, "r", 2)
    await first.write(TokenEvent(text="whole"), DoneLine(result={}))
    late = await open_event_log(log, "r", 3)  # a later step continues the log
    await late.write(TokenEvent(text="more"))
    before = await public_lines(log)
    slow = await open_event_log(log, "r", 4)
    await (await open_event_log(log, "r", 5)).write(TokenEvent(text="in between"))
    await log.append("r", [DoneLine(step=4, result={})])
    for _ in range(2):  # a superseded attempt stays superseded
        with pytest.raises(StaleAttemptError):
            await slow.write(TokenEvent(text="late"))
    assert (await public_lines(log))[: len(before)] == before
    assert not any("late" in line for line in await public_lines(log))


async def test_internal_lines_are_not_numbered() -> None:
    log = await new_log()
    attempt = await open_event_log(log, "r", 1)
    await attempt.write(TokenEvent(text="a"), DoneLine(result={}))
    await log.append("r", [ReplyLine(step=1, choice=SECOND, at=NOW)])
    await (await open_event_log(log, "r", 2)).write(TokenEvent(text="b"))
    log_slice = await log.read("r")
    assert len(log_slice.lines) == 6
    assert [line.partition(",")[0] for line in log_slice.public] == [
        '{"name":"STATUS"',
        '{"name":"TOKEN"',
        '{"name":"STATUS"',
        '{"name":"TOKEN"',
    ]


async def test_of_an_answer_and_the_timeout_the_first_one_counts() -> None:
    log = await new_log()
    replies = await asyncio.gather(
        *(keep_reply(log, "r", 2, choice, NOW) for choice in (Choice(), SECOND, Choice()))
    )
    assert len({reply.model_dump_json() for reply in replies}) == 1
    assert await keep_reply(log, "r", 2, SECOND, NOW) == replies[0]
    assert (await keep_reply(log, "r", 5, SECOND, NOW)).choice == SECOND  # a reply to another question


async def test_a_reply_after_the_end_changes_nothing() -> None:
    log = await new_log()
    await log.append("r", [run_event("ERROR")])
    before = await log.read("r")
    with pytest.raises(RunClosedError):
        await keep_reply(log, "r", 2, SECOND, NOW)
    assert await log.read("r") == before


@pytest.mark.parametrize("chars", [100, 2 * INLINE_BYTES])
async def test_the_first_value_that_was_written_counts(chars: int) -> None:
    log = await new_log()
    blobs: BlobStore = InMemoryBlobStore()
    first, second = (RunAnswer(run_id="r", text=letter * chars) for letter in "ab")
    for value in (first, second):
        journal = await read_journal(log, blobs, "r")
        attempt = await open_event_log(log, "r", 2)
        attempt.stage(await journal.stage(2, value, "answer"))
        await attempt.write()
    fresh = await read_journal(log, blobs, "r")
    assert await fresh.find(2, RunAnswer, "answer") == first
    assert await fresh.find(3, RunAnswer, "answer") is None
