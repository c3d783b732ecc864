"""Tests for the run script, which yields the same actions for equal results and always ends."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.answering.script import MAX_PATIENT_TRIES, Reply, RunEnd, StepResults
from shared.answering.steps import (
    AnswerArrived,
    AnswerTimedOut,
    AnswerWritten,
    CommitAnswer,
    LooksFurther,
    Observation,
    Prepared,
    ReportFailure,
    RunClosed,
    StepFailed,
    StepFields,
    SubagentsChosen,
    SubagentsEnded,
    TakeAnswer,
    TakeTurn,
    UserAsked,
)
from shared.answering.subagent_models import SubagentStart
from shared.runs.plan import TodoItem
from tests.scripts import delay_s, next_action, observe, start

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TODO = (
    TodoItem(position=1, description="The limit is known", acceptance_criteria="cited"),
    TodoItem(position=2, description="It is explained", acceptance_criteria="cited", dependencies=(1,)),
)
PREPARED = Prepared(
    query_type="CONTENT_SEARCH", intent="fact_lookup", todo=TODO, found_count=4, max_looks=2, max_turns=3
)
ASKED = UserAsked(query_type="CONTENT_SEARCH", intent="fact_lookup", todo=TODO, expires_at=NOW)
START = SubagentStart(run_id="r", path="s002c0", profile="doc_reader")
CALLS = LooksFurther(calls=2, gaps=0)
GAP = LooksFurther(calls=0, gaps=1)
WRITTEN = AnswerWritten(abstained=False)
DOWN = StepFailed(error_type="NetworkError", message="The model is out of reach.", retryable=True)
REFUSED = StepFailed(error_type="AuthenticationError", message="Refused.", retryable=False)


def run(*observations: Observation) -> tuple[list[str], StepResults]:
    """Return the kinds of the actions before and after each observation, and the final state."""
    state = start()
    kinds = [kind_of(state)]
    for observation in observations:
        state = observe(state, observation)
        kinds.append(kind_of(state))
    return kinds, state


def kind_of(state: StepResults) -> str:
    action = next_action(state)
    return action.kind if isinstance(action, StepFields) else type(action).__name__


def turn_of(state: StepResults) -> TakeTurn:
    action = next_action(state)
    assert isinstance(action, TakeTurn)
    return action


def test_a_fact_takes_three_steps() -> None:
    kinds, _ = run(PREPARED, WRITTEN, RunClosed())
    assert kinds == ["prepare", "turn", "commit_answer", "RunEnd"]


def test_small_talk_is_committed_as_the_plan_answered_it() -> None:
    assert run(WRITTEN, RunClosed())[0] == ["prepare", "commit_answer", "RunEnd"]


@pytest.mark.parametrize("answer", [AnswerArrived(), AnswerTimedOut()])
def test_a_person_is_asked_before_the_first_turn(answer: Observation) -> None:
    kinds, state = run(ASKED, answer)
    assert kinds == ["prepare", "Reply", "take_answer"]
    action = next_action(state)
    assert isinstance(action, TakeAnswer)
    assert (action.ask_step, action.timed_out) == (1, isinstance(answer, AnswerTimedOut))
    assert turn_of(observe(state, PREPARED)).prepared_step == action.step


@pytest.mark.parametrize("answer", [AnswerArrived(), AnswerTimedOut()])
def test_a_question_of_the_model_is_answered_before_its_next_turn(answer: Observation) -> None:
    asks = LooksFurther(calls=1, gaps=0, expires_at=NOW)
    kinds, state = run(PREPARED, asks, answer)
    assert kinds == ["prepare", "turn", "Reply", "turn"]
    assert turn_of(state).earlier == (2,)
    waiting = next_action(run(PREPARED, asks)[1])
    assert isinstance(waiting, Reply)
    assert (waiting.ask_step, waiting.until) == (2, NOW)


def test_sub_agents_of_a_turn_work_before_the_next_one() -> None:
    children = (START,)
    chosen = SubagentsChosen(children=children, until=NOW, by_model=True)
    kinds, state = run(PREPARED, chosen, SubagentsEnded(ends=()))
    assert kinds == ["prepare", "turn", "Children", "turn"]
    assert (turn_of(state).earlier, turn_of(state).delegation_step) == ((2,), 0)
    first = SubagentsChosen(children=children, until=NOW)
    before = turn_of(run(PREPARED, first, SubagentsEnded(ends=()))[1])
    assert (before.earlier, before.delegation_step) == ((), 2)


def test_turns_build_on_each_other_until_the_last_one_must_answer() -> None:
    first, second, third = (turn_of(run(PREPARED, *[CALLS] * turn_count)[1]) for turn_count in range(3))
    assert [turn.earlier for turn in (first, second, third)] == [(), (2,), (2, 3)]
    assert [turn.may_call for turn in (first, second, third)] == [True, True, False]


def test_gaps_are_searched_for_once() -> None:
    turn = turn_of(run(PREPARED, GAP)[1])
    assert (turn.may_call, turn.may_look) == (True, False)
    assert turn_of(run(PREPARED, CALLS)[1]).may_look


def test_a_gap_counts_as_another_attempt_at_what_is_to_be_done() -> None:
    assert [item.attempts for item in turn_of(run(PREPARED, GAP)[1]).todo] == [1, 2]


def test_a_step_that_may_succeed_later_is_tried_twice() -> None:
    assert run(PREPARED, DOWN)[0][-1] == "turn"
    assert run(PREPARED, DOWN, DOWN)[0][-1] == "report_failure"


def test_a_step_that_cannot_succeed_is_not_tried_again() -> None:
    action = next_action(run(PREPARED, REFUSED)[1])
    assert isinstance(action, ReportFailure)
    assert action.error_type == "AuthenticationError"
    assert next_action(run(REFUSED, RunClosed())[1]) == RunEnd("failed", abstained=False)


def test_tries_are_counted_for_each_step() -> None:
    assert run(DOWN, PREPARED, DOWN)[0][-1] == "turn"


def test_an_end_that_cannot_be_stored_is_tried_for_minutes_then_given_up() -> None:
    kinds, _ = run(PREPARED, WRITTEN, *[DOWN] * (2 * MAX_PATIENT_TRIES))
    assert kinds.count("commit_answer") == MAX_PATIENT_TRIES
    assert kinds.count("report_failure") == MAX_PATIENT_TRIES
    assert kinds[-1] == "RunEnd"


def test_a_step_waits_longer_each_time_and_as_long_as_it_was_asked_to() -> None:
    patient = DOWN.model_copy(update={"retry_after_s": 20.0})
    assert delay_s(run(PREPARED, patient)[1]) == 20.0
    delays = [delay_s(run(PREPARED, WRITTEN, *[DOWN] * tries)[1]) for tries in range(8)]
    assert delays == [0.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    assert delay_s(run(DOWN, PREPARED)[1]) == 0.0


def test_a_run_that_was_closed_by_another_ends() -> None:
    assert run(PREPARED, RunClosed())[0][-1] == "RunEnd"


def test_todo_items_are_closed_with_the_answer() -> None:
    for abstained, status in ((False, "done"), (True, "failed")):
        action = next_action(run(PREPARED, AnswerWritten(abstained=abstained))[1])
        assert isinstance(action, CommitAnswer)
        assert {item.status for item in action.todo} == {status}


@given(st.lists(st.sampled_from([PREPARED, CALLS, GAP, DOWN, REFUSED]), min_size=60, max_size=60))
def test_whatever_is_observed_every_phase_is_left_in_the_end(observations: list[Observation]) -> None:
    state = start()
    for observation in observations:
        action = next_action(state)
        assert next_action(state) == action
        if isinstance(action, RunEnd):
            return
        is_failure = isinstance(observation, StepFailed) and not isinstance(action, Reply)
        state = observe(state, observation if is_failure else answering(action))
    pytest.fail("the loop did not end")


def answering(action: object) -> Observation:
    """Return the observation that leads to the longest sequence of steps."""
    match action:
        case TakeTurn():
            return CALLS if action.may_call else WRITTEN
        case TakeAnswer():
            return PREPARED
        case Reply():
            return AnswerTimedOut()
        case CommitAnswer() | ReportFailure():
            return RunClosed()
        case _:
            return ASKED
