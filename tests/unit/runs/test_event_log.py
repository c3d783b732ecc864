"""Tests that two attempts at one step never interleave in the log."""

import json
from datetime import datetime

import pytest

from shared.runs.event_log import (
    EventLog,
    RunClosedError,
    StaleAttemptError,
    open_child_log,
    open_event_log,
    staged_child_log,
)
from shared.runs.events import DoneLine, ReservedLine, SubagentStatus, TokenEvent, events_of
from shared.runs.memory_run_log import MemoryRunLog
from shared.runs.run_log import RunLog
from tests.fakes.run_log import ForgetfulLog, run_event

STARTED = SubagentStatus(phase="started", turn=0, passages=0, findings=0, proved=0)


async def child_log(log: MemoryRunLog, index: int) -> EventLog:
    """Start an attempt of a sub-agent that step 3 started."""
    read = await log.read("r")
    known_lines = (events_of(read), read.next_offset)
    return await open_child_log(log, "r", (3, index, "comparator"), (), known_lines)


async def read_events(log: RunLog) -> list[tuple[str, int, str | None]]:
    events = [json.loads(line) for line in (await log.read("r")).lines]
    return [(event["name"], event["data"]["step"], event["data"].get("state")) for event in events]


async def test_a_first_attempt_is_started_and_a_second_restarted() -> None:
    log = MemoryRunLog()
    await log.create("r")
    await (await open_event_log(log, "r", 3)).write(TokenEvent(text="half"))
    await (await open_event_log(log, "r", 3)).write(TokenEvent(text="whole"))
    assert await read_events(log) == [
        ("STATUS", 3, "started"),
        ("TOKEN", 3, None),
        ("STATUS", 3, "restarted"),
        ("TOKEN", 3, None),
    ]


async def test_an_attempt_that_was_overtaken_writes_nothing_more() -> None:
    log = MemoryRunLog()
    await log.create("r")
    slow = await open_event_log(log, "r", 3)
    await open_event_log(log, "r", 3)
    before = await read_events(log)
    with pytest.raises(StaleAttemptError):
        await slow.write(TokenEvent(text="late"))
    assert await read_events(log) == before


async def test_another_step_may_write_in_between() -> None:
    log = MemoryRunLog()
    await log.create("r")
    first, second = await open_event_log(log, "r", 1), await open_event_log(log, "r", 2)
    await second.write(TokenEvent(text="b"))
    await first.write(TokenEvent(text="a"))
    assert [(name, step) for name, step, _ in await read_events(log)][-2:] == [("TOKEN", 2), ("TOKEN", 1)]


async def test_nothing_follows_the_last_event() -> None:
    log = MemoryRunLog()
    await log.create("r")
    slow = await open_event_log(log, "r", 1)
    await (await open_event_log(log, "r", 2)).write(run_event("ERROR"))
    before = await read_events(log)
    with pytest.raises(RunClosedError):
        await open_event_log(log, "r", 3)
    with pytest.raises(RunClosedError):
        await slow.write(TokenEvent(text="late"))
    assert await read_events(log) == before


async def test_an_append_whose_answer_was_lost_is_not_written_twice() -> None:
    log = ForgetfulLog()
    await log.create("r")
    await (await open_event_log(log, "r", 3)).write(TokenEvent(text="once"))
    assert await read_events(log) == [("STATUS", 3, "started"), ("TOKEN", 3, None)]


async def test_sub_agents_join_a_step_without_beginning_an_attempt_at_it() -> None:
    log = MemoryRunLog()
    await log.create("r")
    step = await open_event_log(log, "r", 3)
    one = await child_log(log, 0)
    other = await child_log(log, 1)
    await one.write(STARTED)
    await other.write(run_event("TOOL_STARTED"))
    await step.write(run_event("THOUGHT"))  # no other attempt has taken over the step
    events = [json.loads(line)["data"] for line in (await log.read("r")).public]
    assert datetime.fromisoformat(events[1].pop("at")).tzinfo is not None
    assert events[1] == {
        "step": 3,
        "child": 0,
        "profile": "comparator",
        "state": "sub_agent",
        "phase": "started",
        "turn": 0,
        "passages": 0,
        "findings": 0,
        "proved": 0,
    }
    assert (events[2]["child"], "child" in events[3]) == (1, False)


async def test_a_later_attempt_at_the_step_does_not_silence_its_sub_agents() -> None:
    log = MemoryRunLog()
    await log.create("r")
    child = await child_log(log, 0)
    await open_event_log(log, "r", 3)
    await child.write(STARTED)
    assert [name for name, *_ in await read_events(log)] == ["attempt", "STATUS", "STATUS"]


async def test_the_mark_of_a_later_step_closes_sub_agents() -> None:
    log = MemoryRunLog()
    await log.create("r")
    child = await child_log(log, 0)
    await open_event_log(log, "r", 5)
    with pytest.raises(RunClosedError):
        await child.write(STARTED)
    with pytest.raises(RunClosedError):
        await child_log(log, 0)


async def test_a_later_attempt_of_a_sub_agent_stops_the_one_before_and_no_other() -> None:
    log = MemoryRunLog()
    await log.create("r")
    late, other = await child_log(log, 0), await child_log(log, 1)
    await (await child_log(log, 0)).write(STARTED)
    await other.write(STARTED)
    with pytest.raises(StaleAttemptError):
        await late.write(STARTED)


async def test_nothing_of_a_sub_agent_follows_the_end_of_the_run() -> None:
    log = MemoryRunLog()
    await log.create("r")
    child = await child_log(log, 0)
    await log.append("r", [run_event("ERROR")])
    with pytest.raises(RunClosedError):
        await child.write(STARTED)
    with pytest.raises(RunClosedError):
        await child_log(log, 1)
    assert await read_names(log) == ["attempt", "ERROR"]


async def read_names(log: MemoryRunLog) -> list[str]:
    return [json.loads(line)["name"] for line in (await log.read("r")).lines]


async def turn_log(log: MemoryRunLog, turn: int) -> EventLog:
    """Start an attempt at a turn of a sub-agent that performs several turns concurrently."""
    read = await log.read("r")
    known_lines = (events_of(read), read.next_offset)
    event_log = staged_child_log(log, "r", (1, 0, None), known_lines, turn)
    await event_log.write(ReservedLine(tokens=turn))
    return event_log


async def test_attempts_at_several_turns_of_a_child_write_in_between() -> None:
    log = MemoryRunLog()
    await log.create("r")
    first, second = await turn_log(log, 1), await turn_log(log, 2)
    await first.write(DoneLine(result={}))
    await second.write(DoneLine(result={}))
    lines = events_of(await log.read("r"))
    assert [(line.name, getattr(line, "turn", None)) for line in lines] == [
        *(("attempt", 1), ("reserved", 1)),
        *(("attempt", 2), ("reserved", 2)),
        *(("done", 1), ("done", 2)),
    ]


async def test_a_later_attempt_at_a_turn_stops_the_one_before() -> None:
    log = MemoryRunLog()
    await log.create("r")
    slow, other = await turn_log(log, 1), await turn_log(log, 2)
    again = await turn_log(log, 1)
    with pytest.raises(StaleAttemptError):
        await slow.write(DoneLine(result={}))
    await other.write(DoneLine(result={}))
    await again.write(DoneLine(result={}))
