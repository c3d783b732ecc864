"""Tests for the script of a sub-agent: turns, retries and smaller profiles. Every path ends."""

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.answering.script import Step, run_agent
from shared.answering.steps import Observation, StepFailed, StepResult
from shared.answering.sub_agent import SubAgent
from shared.answering.subagent_models import (
    ReadTask,
    SubagentEnd,
    SubagentPlace,
    TakeSubagentTurn,
    TaskRead,
    TurnResult,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATE = NOW + timedelta(seconds=15)
GO_ON = TurnResult(status="go_on", tokens=100)
DONE = TurnResult(status="done", tokens=900, cost_usd=0.001, findings=3)
FAILED = TurnResult(status="failed", retryable=True)
CRASHED = StepFailed(error_type="InternalError", message="", retryable=False)
PLACE = SubagentPlace(run_id="run", path="s004c0")


def task(**changes: Any) -> TaskRead:
    values: dict[str, Any] = {
        "deadline": LATE,
        "max_turns": 3,
        "retry_count": 1,
        "retry_backoff_ms": 750,
        "profiles": ("comparator", "doc_reader"),
    }
    return TaskRead(**{**values, **changes})


@dataclass(frozen=True)
class ChildState:
    """The state of a sub-agent that has read its task and performed some turns."""

    task: TaskRead
    results: tuple[Observation, ...] = ()


def next_move(state: ChildState, now: datetime) -> Step | SubagentEnd:
    """Return the next action of the script for these results, with the clock at `now`."""
    script = run_agent(SubAgent(PLACE))
    try:
        command = next(script)
        for observation in (state.task, *state.results):
            command = script.send(StepResult(observation=observation))
        assert isinstance(command, Step)
        if command.before and now + timedelta(seconds=command.delay_s) >= command.before:
            script.send(None)
    except StopIteration as ended:
        last: SubagentEnd = ended.value
        return last
    return command


def observe(state: ChildState, result: Observation) -> ChildState:
    return ChildState(state.task, (*state.results, result))


def turn(state: ChildState, now: datetime = NOW) -> TakeSubagentTurn:
    move = next_move(state, now)
    assert isinstance(move, Step)
    assert isinstance(move.action, TakeSubagentTurn)
    return move.action


def pause_s(state: ChildState, now: datetime = NOW) -> float:
    move = next_move(state, now)
    assert isinstance(move, Step)
    return move.delay_s


def end(state: ChildState, now: datetime = NOW) -> SubagentEnd:
    move = next_move(state, now)
    assert isinstance(move, SubagentEnd)
    return move


def after(*results: Observation, **changes: Any) -> ChildState:
    state = ChildState(task(**changes))
    for result in results:
        assert isinstance(next_move(state, NOW), Step)
        state = observe(state, result)
    return state


def test_a_task_is_read_again_after_a_failure_that_may_pass() -> None:
    script = run_agent(SubAgent(PLACE))
    assert next(script) == Step(ReadTask())
    down = StepFailed(error_type="NetworkError", message="The storage is out of reach.", retryable=True)
    assert script.send(StepResult(observation=down)) == Step(ReadTask(), delay_s=2.0)
    command = script.send(StepResult(observation=task()))
    assert isinstance(command, Step)
    assert isinstance(command.action, TakeSubagentTurn)


@pytest.mark.parametrize(("retryable", "reads"), [(True, 2), (False, 1)])
def test_a_sub_agent_whose_task_is_out_of_reach_fails(retryable: bool, reads: int) -> None:
    lost = StepFailed(error_type="NotFoundError", message="", retryable=retryable)
    script = run_agent(SubAgent(PLACE))
    next(script)
    for _ in range(reads - 1):
        script.send(StepResult(observation=lost))
    with pytest.raises(StopIteration) as ended:
        script.send(StepResult(observation=lost))
    assert (ended.value.value.status, ended.value.value.turns) == ("failed", 0)


def test_it_begins_with_the_first_turn_of_the_first_profile() -> None:
    first = turn(after())
    assert (first.turn, first.attempt, first.profile, first.closing) == (1, 0, "comparator", False)


def test_a_report_ends_it() -> None:
    assert end(after(GO_ON, DONE)) == SubagentEnd(
        child_id="run:s004c0", status="done", turns=2, tokens=900, cost_usd=0.001
    )


def test_the_last_turn_is_told_to_close_and_none_follows_it() -> None:
    assert turn(after(GO_ON, GO_ON)).closing
    assert end(after(GO_ON, GO_ON, GO_ON)).status == "failed"
    assert turn(after(max_turns=1)).closing


def test_a_failed_turn_is_taken_once_more_after_the_pause() -> None:
    again = turn(after(FAILED))
    assert (again.turn, again.attempt, again.profile) == (1, 1, "comparator")
    assert pause_s(after(FAILED)) == 0.75
    assert not again.closing


def test_what_failed_twice_gives_way_to_a_smaller_profile_that_reports_at_once() -> None:
    reduced = turn(after(FAILED, FAILED))
    assert (reduced.attempt, reduced.profile, reduced.closing) == (2, "doc_reader", True)
    assert pause_s(after(FAILED, FAILED)) == 0


def test_without_a_smaller_profile_the_same_one_reports_from_what_is_there() -> None:
    alone = after(FAILED, FAILED, profiles=("doc_reader",))
    assert (turn(alone).profile, turn(alone).closing) == ("doc_reader", True)
    assert end(observe(alone, FAILED)).status == "failed"


def test_a_closing_turn_that_failed_twice_is_not_taken_by_the_same_profile_again() -> None:
    assert end(after(FAILED, FAILED, profiles=("doc_reader",), max_turns=1)).status == "failed"


def test_what_no_repetition_mends_is_not_repeated() -> None:
    refused = TurnResult(status="failed", retryable=False)
    assert turn(after(refused)).profile == "doc_reader"
    assert end(after(refused, profiles=("doc_reader",))).status == "failed"


def test_a_failure_after_findings_ends_as_partial() -> None:
    failure = TurnResult(status="failed", retryable=True, findings=2, tokens=500)
    ended = end(after(failure, CRASHED, FAILED))
    assert (ended.status, ended.tokens) == ("partial", 500)


def test_a_budget_that_ends_it_without_findings_is_a_failure() -> None:
    assert end(after(TurnResult(status="partial"))).status == "failed"
    assert end(after(TurnResult(status="partial", findings=1))).status == "partial"


def test_a_turn_that_went_well_has_its_retries_anew() -> None:
    assert turn(after(FAILED, GO_ON)).attempt == 0
    assert turn(after(FAILED, GO_ON, FAILED)).attempt == 1


def test_nothing_begins_after_the_deadline() -> None:
    assert end(after(), LATE).status == "failed"
    assert end(after(GO_ON), LATE).status == "failed"
    assert end(after(TurnResult(status="go_on", findings=1)), LATE).status == "partial"


def test_no_pause_is_begun_that_the_deadline_would_end() -> None:
    assert isinstance(next_move(after(FAILED), LATE - timedelta(milliseconds=751)), Step)
    assert end(after(FAILED), LATE - timedelta(milliseconds=750)).status == "failed"


@pytest.mark.parametrize("changes", [{"profiles": ()}, {"max_turns": 0}])
def test_a_start_that_allows_nothing_ends_at_once(changes: dict[str, Any]) -> None:
    assert end(ChildState(task(**changes))).status == "failed"


def test_every_path_ends_within_a_bound_and_no_attempt_is_numbered_twice() -> None:
    results: tuple[Observation, ...] = (
        GO_ON,
        FAILED,
        TurnResult(status="failed"),
        TurnResult(status="partial"),
        CRASHED,
    )
    for path in itertools.product(results, repeat=4):
        state, seen = ChildState(task()), set()
        for result in itertools.chain(path, itertools.repeat(FAILED)):
            move = next_move(state, NOW)
            if isinstance(move, SubagentEnd):
                break
            key = (turn(state).turn, turn(state).attempt)
            assert key not in seen
            seen.add(key)
            state = observe(state, result)
        assert len(seen) <= 3 * 4


def test_time_that_was_lost_with_a_worker_puts_the_deadline_off() -> None:
    late = LATE + timedelta(seconds=5)
    assert isinstance(next_move(after(GO_ON), late), SubagentEnd)
    lost = GO_ON.model_copy(update={"lost_s": 8.0})
    assert isinstance(next_move(after(lost, GO_ON), late), Step)
