"""`run_sub_agent` on a virtual clock: turns, pauses, smaller profiles, and an end before the deadline."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from orchestrations.run_agent import run_sub_agent
from shared.answering.subagent_models import SubagentStart, TurnResult
from tests.replay.harness import Reply, Run, Script, simulate
from tests.replay.history import START

DEADLINE_S = 15
GO_ON = TurnResult(status="go_on", tokens=1050)
DONE = TurnResult(status="done", tokens=3000, cost_usd=0.002, findings=4)
FAILED = TurnResult(status="failed", retryable=True, warnings=("MODEL_FAILED",))

Answer = TurnResult | Reply


def work(*answers: Answer, **changes: Any) -> Run:
    """Run a child; `work(...).record("run_sub_agent", …)` makes a history."""
    left = iter(answers)
    values: dict[str, Any] = {
        "child_id": "run-1:s004c0",
        "run_id": "run-1",
        "step": 4,
        "index": 0,
        "deadline": START + timedelta(seconds=DEADLINE_S),
        "max_turns": 3,
        "retry_count": 1,
        "retry_backoff_ms": 750,
        "profiles": ("comparator", "doc_reader"),
    }
    start = SubagentStart(**{**values, **changes})

    def take(_: Any) -> object:
        answer = next(left)
        return answer if isinstance(answer, Reply) else said(answer)

    script = Script(activities={"take_sub_agent_turn": take})
    return simulate(run_sub_agent, start.model_dump(mode="json"), script)


def said(result: TurnResult) -> dict[str, Any]:
    return result.model_dump(mode="json")


def turns(run: Run) -> Sequence[tuple[int, int, str, bool]]:
    return [(given["turn"], given["attempt"], given["profile"], given["closing"]) for _, given in run.calls]


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


def test_a_short_one_is_one_activity_and_no_timer() -> None:
    run = work(DONE)
    assert len(run.calls) == 1
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
    slow = Reply(said(TurnResult(status="go_on", findings=2)), after_s=DEADLINE_S + 1)
    run = work(slow, DONE)
    assert len(run.calls) == 1
    assert run.output["status"] == "partial"


def test_no_pause_reaches_beyond_the_deadline() -> None:
    run = work(Reply(said(FAILED), after_s=DEADLINE_S - 0.5), DONE)
    assert len(run.calls) == 1
    assert run.finished_after_s < DEADLINE_S
    assert run.output["status"] == "failed"
