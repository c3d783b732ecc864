"""`answer_question` on a virtual clock: the actions are the same on every replay, and every run ends."""

from collections.abc import Callable
from typing import Any

import pytest

from orchestrations.payloads import RETRY
from orchestrations.run_agent import answer_question
from shared.answering.steps import (
    AnswerWritten,
    LooksFurther,
    Observation,
    Prepared,
    RunClosed,
    StepFailed,
    StepResult,
    UserAsked,
)
from shared.runs.plan import TodoItem
from tests.replay.harness import RaisedEvent, Reply, Run, Script, simulate
from tests.replay.history import moment

TODO = TodoItem(position=1, description="The limit is known", acceptance_criteria="It is cited")
GOOD: dict[str, Observation] = {
    "prepare": Prepared(
        query_type="CONTENT_SEARCH",
        intent="fact_lookup",
        todo=(TODO,),
        found_count=3,
        max_looks=2,
        max_turns=4,
    ),
    "turn": AnswerWritten(abstained=False),
    "commit_answer": RunClosed(),
    "report_failure": RunClosed(),
}
DOWN = StepFailed(
    error_type="NetworkError", message="The model is out of reach.", retryable=True, remaining_s=20.0
)


def answering(answers: dict[str, Observation | Reply]) -> Callable[[Any], object]:
    def perform_step(payload: Any) -> object:
        answer = answers[payload["action"]["kind"]]
        return answer if isinstance(answer, Reply) else StepResult(observation=answer).model_dump(mode="json")

    return perform_step


def ask(*events: RaisedEvent, **changes: Observation | Reply) -> Run:
    """Run a question. To record a history, call `record` on the result of this function."""
    script = Script(activities={"perform_step": answering({**GOOD, **changes})}, events=events)
    return simulate(answer_question, {"run_id": "instance-1"}, script)


def kinds(run: Run) -> list[str]:
    return [payload["action"]["kind"] for _, payload in run.calls]


def test_a_question_becomes_a_committed_answer() -> None:
    run = ask()
    assert kinds(run) == ["prepare", "turn", "commit_answer"]
    assert run.output == {"outcome": "completed", "abstained": False}
    assert run.left_open == []


def test_the_status_shows_where_the_run_stands() -> None:
    status = ask().custom_status
    assert status["phase"] == "end"
    assert status["todo"] == [{"position": 1, "status": "done", "attempts": 1}]


def test_a_service_that_stays_down_ends_the_run_with_a_report() -> None:
    run = ask(turn=DOWN)
    assert kinds(run)[-3:] == ["turn", "turn", "report_failure"]
    assert run.output["outcome"] == "failed"


def test_a_run_whose_steps_are_lost_again_and_again_fails_and_can_be_restarted() -> None:
    run = ask(turn=Reply(failure="the worker died"))
    assert kinds(run)[1:] == ["turn"] * RETRY.max_number_of_attempts
    assert "the worker died" in (run.error or "")
    assert run.left_open == []


def test_input_may_be_text() -> None:
    script = Script(activities={"perform_step": answering(dict(GOOD))})
    assert simulate(answer_question, '{"run_id": "instance-1"}', script).error is None


DAY_S = 86400.0
# The SDK warns about an event that is not awaited yet.
early_event = pytest.mark.filterwarnings("ignore:Potential duplicate Task completion")
AMBIGUOUS: dict[str, Observation] = {
    "prepare": UserAsked(
        query_type="CONTENT_SEARCH", intent="fact_lookup", todo=(TODO,), expires_at=moment(3 * DAY_S)
    ),
    "take_answer": GOOD["prepare"],
}


def test_a_run_waits_for_days_and_goes_on_with_the_answer() -> None:
    run = ask(RaisedEvent("answered-1", {}, at_s=2 * DAY_S), **AMBIGUOUS)
    assert kinds(run) == ["prepare", "take_answer", "turn", "commit_answer"]
    assert not take_answer_action(run)["timed_out"]
    # The timer was cancelled. An open timer would keep the run from completing.
    assert run.finished_after_s == 2 * DAY_S
    assert run.left_open == []


def test_a_run_waits_for_an_answer_that_the_model_asked_for() -> None:
    asks = LooksFurther(calls=1, gaps=0, expires_at=moment(3 * DAY_S))
    turns = iter((asks, AnswerWritten(abstained=False)))
    answers = answering({**GOOD})

    def perform_step(payload: Any) -> object:
        if payload["action"]["kind"] == "turn":
            return StepResult(observation=next(turns)).model_dump(mode="json")
        return answers(payload)

    script = Script(
        activities={"perform_step": perform_step}, events=(RaisedEvent("answered-2", {}, at_s=DAY_S),)
    )
    run = simulate(answer_question, {"run_id": "instance-1"}, script)
    assert kinds(run) == ["prepare", "turn", "turn", "commit_answer"]
    assert run.finished_after_s == DAY_S
    assert run.left_open == []


def test_a_run_that_nobody_answers_goes_on_when_the_time_is_over() -> None:
    run = ask(**AMBIGUOUS)
    assert take_answer_action(run)["timed_out"]
    assert run.output["outcome"] == "completed"
    assert run.finished_after_s == 3 * DAY_S


def test_a_run_that_begins_again_waits_no_longer_than_its_question_is_open() -> None:
    earlier = Reply(StepResult(observation=AMBIGUOUS["prepare"]).model_dump(mode="json"), after_s=2 * DAY_S)
    run = ask(**{**AMBIGUOUS, "prepare": earlier})
    assert take_answer_action(run)["timed_out"]
    assert run.finished_after_s == 3 * DAY_S


def test_a_run_that_begins_again_after_its_question_expired_does_not_wait() -> None:
    earlier = Reply(StepResult(observation=AMBIGUOUS["prepare"]).model_dump(mode="json"), after_s=4 * DAY_S)
    run = ask(**{**AMBIGUOUS, "prepare": earlier})
    assert take_answer_action(run)["timed_out"]
    assert run.finished_after_s == 4 * DAY_S
    assert run.left_open == []


@early_event
@pytest.mark.parametrize("at_s", [0.0, 1.0])
def test_an_answer_that_comes_before_the_wait_begins_is_not_lost(at_s: float) -> None:
    slow = Reply(StepResult(observation=AMBIGUOUS["prepare"]).model_dump(mode="json"), after_s=5)
    early = RaisedEvent("answered-1", {}, at_s=at_s)
    run = ask(early, RaisedEvent("answered-1", {}, at_s=9.0), **{**AMBIGUOUS, "prepare": slow})
    assert not take_answer_action(run)["timed_out"]
    assert run.finished_after_s == 5


@early_event
def test_an_event_of_another_question_ends_no_wait() -> None:
    run = ask(RaisedEvent("answered-2", {}, at_s=10), **AMBIGUOUS)
    assert take_answer_action(run)["timed_out"]


def test_a_step_that_fails_after_the_wait_is_tried_again() -> None:
    run = ask(RaisedEvent("answered-1", {}, at_s=10), **{**AMBIGUOUS, "turn": DOWN})
    assert kinds(run)[-3:] == ["turn", "turn", "report_failure"]
    assert run.left_open == []


def test_a_turn_that_looks_further_is_followed_by_another() -> None:
    turns = iter([LooksFurther(calls=2, gaps=0), LooksFurther(calls=0, gaps=1), GOOD["turn"]])

    def perform_step(payload: Any) -> object:
        kind = payload["action"]["kind"]
        observation = next(turns) if kind == "turn" else GOOD[kind]
        return StepResult(observation=observation).model_dump(mode="json")

    run = simulate(
        answer_question, {"run_id": "instance-1"}, Script(activities={"perform_step": perform_step})
    )
    assert kinds(run) == ["prepare", "turn", "turn", "turn", "commit_answer"]
    assert [payload["action"]["earlier"] for _, payload in run.calls[1:4]] == [[], [2], [2, 3]]


def take_answer_action(run: Run) -> dict[str, Any]:
    (action,) = [payload["action"] for _, payload in run.calls if payload["action"]["kind"] == "take_answer"]
    return dict(action)
