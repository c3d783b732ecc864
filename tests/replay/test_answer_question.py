"""`answer_question` on a virtual clock: the same actions on every replay, an end whatever happens."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrations.answer_question import answer_question
from shared.models.plan import TodoItem
from shared.models.steps import (
    AnswerWritten,
    EvidenceFound,
    Observation,
    PlanMade,
    RunClosed,
    StepFailed,
    StepResult,
)
from tests.replay.harness import Reply, Run, Script, simulate
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
DOWN = StepFailed(error_type="NetworkError", message="The model is out of reach.", retryable=True)


def answering(answers: dict[str, Observation | Reply]) -> Callable[[Any], object]:
    def perform_step(given: Any) -> object:
        answer = answers[given["action"]["kind"]]
        return answer if isinstance(answer, Reply) else StepResult(observation=answer).model_dump(mode="json")

    return perform_step


def ask(**changes: Observation | Reply) -> Run:
    script = Script(activities={"perform_step": answering({**GOOD, **changes})})
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
    assert status["todo"] == [{"position": 1, "status": "done"}]


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


@pytest.mark.parametrize("path", sorted(HISTORIES.glob("answer_question*.json")), ids=lambda path: path.stem)
def test_running_instances_survive_a_deployment(path: Path) -> None:
    replay_recording(path, answer_question)


def test_there_are_histories_to_replay() -> None:
    assert len(list(HISTORIES.glob("answer_question*.json"))) >= 2
