"""`answer_question` on a virtual clock: the same actions on every replay, an end whatever happens."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrations.answer_question import answer_question
from shared.answering.steps import (
    AnswerTaken,
    AnswerWritten,
    DocumentsResolved,
    EvidenceFound,
    Observation,
    PlanMade,
    RunClosed,
    StepFailed,
    StepResult,
    UserAsked,
)
from shared.runs.plan import TodoItem
from tests.replay.harness import RaisedEvent, Reply, Run, Script, simulate
from tests.replay.recording import replay_recording

HISTORIES = Path(__file__).parent.parent / "histories"
TODO = TodoItem(position=1, description="The limit is known", acceptance_criteria="It is cited")
GOOD: dict[str, Observation] = {
    "make_plan": PlanMade(query_type="CONTENT_SEARCH", intent="fact_lookup", todo=(TODO,)),
    "retrieve_blocks": EvidenceFound(hit_count=3, document_count=1, top_score=0.9, score_spread=0.3),
    "write_answer": AnswerWritten(abstained=False, citation_count=2, unsupported_claims=0),
    "commit_answer": RunClosed(),
    "report_failure": RunClosed(),
}
DOWN = StepFailed(
    error_type="NetworkError", message="The model is out of reach.", retryable=True, remaining_s=20.0
)


def answering(answers: dict[str, Observation | Reply]) -> Callable[[Any], object]:
    def perform_step(given: Any) -> object:
        answer = answers[given["action"]["kind"]]
        return answer if isinstance(answer, Reply) else StepResult(observation=answer).model_dump(mode="json")

    return perform_step


def ask(*events: RaisedEvent, **changes: Observation | Reply) -> Run:
    """Run a question; `tests.replay.test_answer_question.ask(...).record(...)` makes a history."""
    script = Script(activities={"perform_step": answering({**GOOD, **changes})}, events=events)
    return simulate(answer_question, {"run_id": "instance-1"}, script)


def kinds(run: Run) -> list[str]:
    return [given["action"]["kind"] for _, given in run.calls]


def test_a_question_becomes_a_committed_answer() -> None:
    run = ask()
    assert kinds(run) == ["make_plan", "retrieve_blocks", "write_answer", "commit_answer"]
    assert run.output == {"outcome": "completed", "abstained": False}
    assert run.left_open == []


def test_the_status_shows_where_the_run_stands() -> None:
    status = ask().custom_status
    assert status["phase"] == "end"
    assert status["todo"] == [{"position": 1, "status": "done", "attempts": 1}]


def test_a_service_that_stays_down_ends_the_run_with_a_report() -> None:
    run = ask(write_answer=DOWN)
    assert kinds(run)[-3:] == ["write_answer", "write_answer", "report_failure"]
    assert run.output["outcome"] == "failed"


def test_an_activity_that_raises_is_reported_too() -> None:
    run = ask(retrieve_blocks=Reply(failure="a defect"))
    assert kinds(run)[-1] == "report_failure"
    assert run.calls[-1][1]["action"]["error_type"] == "InternalError"
    assert "a defect" not in str(run.calls[-1])


def test_a_report_that_fails_does_not_keep_the_run_alive() -> None:
    run = ask(retrieve_blocks=Reply(failure="a defect"), report_failure=Reply(failure="another"))
    assert run.output["outcome"] == "failed"


def test_input_may_be_text() -> None:
    script = Script(activities={"perform_step": answering(dict(GOOD))})
    assert simulate(answer_question, '{"run_id": "instance-1"}', script).error is None


DAY_S = 86400.0
# The SDK's own remark on an event that is not awaited yet.
early_event = pytest.mark.filterwarnings("ignore:Potential duplicate Task completion")
AMBIGUOUS: dict[str, Observation] = {
    "make_plan": PlanMade(
        query_type="CONTENT_SEARCH",
        intent="fact_lookup",
        todo=(TODO,),
        names_documents=True,
        max_attempts=2,
    ),
    "resolve_documents": DocumentsResolved(document_count=0, is_ambiguous=True),
    "ask_user": UserAsked(timeout_s=3 * DAY_S),
    "take_answer": AnswerTaken(is_choice=True),
}
CLARIFYING = ["make_plan", "resolve_documents", "ask_user", "take_answer"]


def test_a_run_waits_for_days_and_goes_on_with_the_answer() -> None:
    run = ask(RaisedEvent("answered-3", {}, at_s=2 * DAY_S), **AMBIGUOUS)
    assert kinds(run) == [*CLARIFYING, "retrieve_blocks", "write_answer", "commit_answer"]
    assert not taken(run)["timed_out"]
    assert run.finished_after_s == 2 * DAY_S  # the timer was cancelled: an open one would hold the run
    assert run.left_open == []


def test_a_run_that_nobody_answers_goes_on_when_the_time_is_over() -> None:
    run = ask(**AMBIGUOUS)
    assert taken(run)["timed_out"]
    assert run.output["outcome"] == "completed"
    assert run.finished_after_s == 3 * DAY_S


@early_event
@pytest.mark.parametrize("at_s", [0.0, 1.0])
def test_an_answer_that_comes_before_the_wait_begins_is_not_lost(at_s: float) -> None:
    slow = Reply(StepResult(observation=AMBIGUOUS["ask_user"]).model_dump(mode="json"), after_s=5)
    early = RaisedEvent("answered-3", {}, at_s=at_s)
    run = ask(early, RaisedEvent("answered-3", {}, at_s=9.0), **{**AMBIGUOUS, "ask_user": slow})
    assert not taken(run)["timed_out"]
    assert run.finished_after_s == 5


@early_event
def test_an_event_of_another_question_ends_no_wait() -> None:
    run = ask(RaisedEvent("answered-2", {}, at_s=10), **AMBIGUOUS)
    assert taken(run)["timed_out"]


def test_a_step_that_fails_after_the_wait_is_tried_again() -> None:
    run = ask(RaisedEvent("answered-3", {}, at_s=10), **{**AMBIGUOUS, "write_answer": DOWN})
    assert kinds(run)[-3:] == ["write_answer", "write_answer", "report_failure"]
    assert run.left_open == []


def test_an_answer_that_there_is_none_is_looked_for_once_more() -> None:
    abstained = AnswerWritten(abstained=True, citation_count=0, unsupported_claims=0)
    planned = AMBIGUOUS["make_plan"].model_copy(update={"names_documents": False})
    run = ask(make_plan=planned, write_answer=abstained)
    assert kinds(run) == ["make_plan", "retrieve_blocks", "write_answer", "retrieve_blocks", "commit_answer"]
    assert run.output == {"outcome": "completed", "abstained": True}


def taken(run: Run) -> dict[str, Any]:
    (action,) = [given["action"] for _, given in run.calls if given["action"]["kind"] == "take_answer"]
    return dict(action)


@pytest.mark.parametrize("path", sorted(HISTORIES.glob("answer_question*.json")), ids=lambda path: path.stem)
def test_running_instances_survive_a_deployment(path: Path) -> None:
    replay_recording(path, answer_question)


def test_there_are_histories_to_replay() -> None:
    assert len(list(HISTORIES.glob("answer_question*.json"))) >= 4
