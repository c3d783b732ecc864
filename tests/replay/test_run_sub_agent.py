"""`run_sub_agent` on a virtual clock: turns, pauses, smaller profiles, and an end before the deadline."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from orchestrations.run_agent import run_sub_agent
from shared.answering.steps import StepResult
from shared.answering.subagent_models import TaskRead, TurnResult
from tests.replay.harness import Reply, Run, Script, simulate
from tests.replay.history import START

INPUT = {"run_id": "run-1", "path": "s004c0"}
DEADLINE_S = 15
GO_ON = TurnResult(status="go_on", tokens=1050)
DONE = TurnResult(status="done", tokens=3000, cost_usd=0.002, findings=4)
FAILED = TurnResult(status="failed", retryable=True, warnings=("MODEL_FAILED",))
TASK = TaskRead(
    deadline=START + timedelta(seconds=DEADLINE_S),
    max_turns=3,
    retry_count=1,
    retry_backoff_ms=750,
    profiles=("comparator", "doc_reader"),
)

Answer = TurnResult | Reply


def work(*answers: Answer) -> Run:
    """Run a child. To record a history, call `record` on the result with the name "run_sub_agent"."""
    left = iter(answers)

    def perform_step(payload: Any) -> object:
        if payload["action"]["kind"] == "read_task":
            return encode_result(TASK)
        answer = next(left)
        return answer if isinstance(answer, Reply) else encode_result(answer)

    script = Script(activities={"perform_step": perform_step})
    return simulate(run_sub_agent, INPUT, script)


def encode_result(result: TurnResult | TaskRead) -> dict[str, Any]:
    return StepResult(observation=result).model_dump(mode="json")


def turns(run: Run) -> Sequence[tuple[int, int, str, bool]]:
    actions = [payload["action"] for _, payload in run.calls[1:]]
    return [(turn["turn"], turn["attempt"], turn["profile"], turn["closing"]) for turn in actions]


def test_turns_follow_each_other_until_the_report_stands() -> None:
    run = work(GO_ON, DONE)
    assert turns(run) == [(1, 0, "comparator", False), (2, 0, "comparator", False)]
    assert run.output == {
        "child_id": "run-1:s004c0",
        "status": "done",
        "turns": 2,
        "tokens": 3000,
        "cost_usd": 0.002,
    }
    assert (run.finished_after_s, run.left_open) == (0, [])


def test_a_short_one_reads_its_task_and_takes_a_turn_without_a_timer() -> None:
    run = work(DONE)
    assert [payload["action"]["kind"] for _, payload in run.calls] == ["read_task", "sub_agent_turn"]
    assert {(payload["run_id"], payload["path"]) for _, payload in run.calls} == {("run-1", "s004c0")}
    assert run.finished_after_s == 0


def test_the_last_turn_is_told_to_close() -> None:
    assert turns(work(GO_ON, GO_ON, DONE))[-1] == (3, 0, "comparator", True)


def test_a_failure_is_repeated_after_its_pause_and_then_reduced() -> None:
    run = work(FAILED, FAILED, DONE)
    assert turns(run) == [
        (1, 0, "comparator", False),
        (1, 1, "comparator", False),
        (1, 2, "doc_reader", True),
    ]
    assert run.finished_after_s == 0.75
    assert run.output["status"] == "done"


def test_a_turn_that_was_lost_is_taken_again_and_is_no_failure_of_the_profile() -> None:
    run = work(Reply(failure="the worker died"), Reply(failure="the next is not ready"), DONE)
    assert turns(run) == [(1, 0, "comparator", False)] * 3
    assert run.output["status"] == "done"


def test_nothing_is_begun_after_the_deadline() -> None:
    slow = Reply(encode_result(TurnResult(status="go_on", findings=2)), after_s=DEADLINE_S + 1)
    run = work(slow, DONE)
    assert len(turns(run)) == 1
    assert run.output["status"] == "partial"


def test_no_pause_reaches_beyond_the_deadline() -> None:
    run = work(Reply(encode_result(FAILED), after_s=DEADLINE_S - 0.5), DONE)
    assert len(turns(run)) == 1
    assert run.finished_after_s < DEADLINE_S
    assert run.output["status"] == "failed"


def test_the_status_names_the_turn_and_the_deadline() -> None:
    assert work(GO_ON, DONE).custom_status == {"turn": 2, "deadline": "2025-01-15T09:00:15+00:00"}
