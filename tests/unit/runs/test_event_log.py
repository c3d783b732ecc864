"""Two attempts at one step never mix in the log."""

import json
from collections.abc import Sequence
from datetime import datetime

import pytest

from shared.runs.event_log import RunClosedError, StaleAttemptError, join_event_log, open_event_log
from shared.runs.events import RunEvent, SubagentStatus, TokenEvent
from shared.runs.memory_run_log import MemoryRunLog
from tests.fakes.run_log import run_event

STARTED = SubagentStatus(phase="started", turn=0, passages=0, findings=0, proved=0)


async def written(log: MemoryRunLog) -> list[tuple[str, int, str | None]]:
    events = [json.loads(line) for line in (await log.read("r")).lines]
    return [(event["name"], event["data"]["step"], event["data"].get("state")) for event in events]


async def test_a_first_attempt_is_started_and_a_second_restarted() -> None:
    log = MemoryRunLog()
    await log.create("r")
    await (await open_event_log(log, "r", 3)).write(TokenEvent(text="half"))
    await (await open_event_log(log, "r", 3)).write(TokenEvent(text="whole"))
    assert await written(log) == [
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
    before = await written(log)
    with pytest.raises(StaleAttemptError):
        await slow.write(TokenEvent(text="late"))
    assert await written(log) == before


async def test_another_step_may_write_in_between() -> None:
    log = MemoryRunLog()
    await log.create("r")
    first, second = await open_event_log(log, "r", 1), await open_event_log(log, "r", 2)
    await second.write(TokenEvent(text="b"))
    await first.write(TokenEvent(text="a"))
    assert [(name, step) for name, step, _ in await written(log)][-2:] == [("TOKEN", 2), ("TOKEN", 1)]


async def test_nothing_follows_the_last_event() -> None:
    log = MemoryRunLog()
    await log.create("r")
    slow = await open_event_log(log, "r", 1)
    await (await open_event_log(log, "r", 2)).write(run_event("ERROR"))
    before = await written(log)
    with pytest.raises(RunClosedError):
        await open_event_log(log, "r", 3)
    with pytest.raises(RunClosedError):
        await slow.write(TokenEvent(text="late"))
    assert await written(log) == before


class ForgetfulLog(MemoryRunLog):
    """Appends, then loses the answer: the transport sends the same once more."""

    async def append(self, run_id: str, events: Sequence[RunEvent], *, at_offset: int | None = None) -> int:
        await super().append(run_id, events, at_offset=at_offset)
        return await super().append(run_id, events, at_offset=at_offset)


async def test_an_append_whose_answer_was_lost_is_not_written_twice() -> None:
    log = ForgetfulLog()
    await log.create("r")
    await (await open_event_log(log, "r", 3)).write(TokenEvent(text="once"))
    assert await written(log) == [("STATUS", 3, "started"), ("TOKEN", 3, None)]


async def test_sub_agents_join_a_step_without_beginning_an_attempt_at_it() -> None:
    log = MemoryRunLog()
    await log.create("r")
    step = await open_event_log(log, "r", 3)
    one, _ = await join_event_log(log, "r", 3, 0, "comparator")
    other, _ = await join_event_log(log, "r", 3, 1, "doc_reader")
    await one.write(STARTED)
    await other.write(run_event("TOOL_STARTED"))
    await step.write(run_event("THOUGHT"))  # nobody has taken the step over
    events = [json.loads(line)["data"] for line in (await log.read("r")).lines]
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
    child, _ = await join_event_log(log, "r", 3, 0, "comparator")
    await open_event_log(log, "r", 3)
    await child.write(STARTED)
    assert len(await written(log)) == 2


async def test_nothing_of_a_sub_agent_follows_the_end_of_the_run() -> None:
    log = MemoryRunLog()
    await log.create("r")
    child, _ = await join_event_log(log, "r", 3, 0, "comparator")
    await log.append("r", [run_event("ERROR")])
    with pytest.raises(RunClosedError):
        await child.write(STARTED)
    with pytest.raises(RunClosedError):
        await join_event_log(log, "r", 3, 1, "comparator")
    assert len(await written_names(log)) == 1


async def written_names(log: MemoryRunLog) -> list[str]:
    return [json.loads(line)["name"] for line in (await log.read("r")).lines]
