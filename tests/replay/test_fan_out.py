"""`race` on a virtual clock: children that succeed, fail, return invalid results or are late. No timer stays
open.
"""

from collections.abc import Generator
from datetime import timedelta
from typing import Any

import azure.durable_functions as df
import pytest

from orchestrations.fan_out import RESTART_PAUSE, Child, race
from tests.replay.harness import Reply, Run, Script, simulate

DEADLINE_S = 20


def parent(context: df.DurableOrchestrationContext) -> Generator[Any, Any, Any]:
    """Race the requested number of children, and then run an activity."""
    parameters = context.get_input()
    children = [
        Child("child", {"place": place}, f"{context.instance_id}:c{place}")
        for place in range(parameters["children"])
    ]
    progress: list[str] = []
    deadline = context.current_utc_datetime + timedelta(seconds=DEADLINE_S)
    ends = yield from race(
        context,
        children,
        deadline,
        at_once=parameters.get("at_once"),
        on_end=lambda end: progress.append(f"{end.instance_id[-2:]} {end.status}"),
    )
    context.set_custom_status(list(progress))
    after = yield context.call_activity("after", {})
    return {"ends": [[end.status, end.output] for end in ends], "after": after}


def raced(*replies: object, at_once: int | None = None, terminating: Reply | None = None) -> Run:
    """Run `parent`. `replies` has an item for each child. A list contains the replies of the child's
    consecutive executions.
    """

    def child(payload: Any) -> object:
        reply = replies[payload["place"]]
        return reply.pop(0) if isinstance(reply, list) else reply

    def terminate(payload: Any) -> object:
        return terminating or Reply({"terminated": 1}, terminates=payload["instance_ids"])

    script = Script(
        activities={"terminate_instances": terminate, "after": lambda _: {"done": True}},
        children={"child": child},
    )
    return simulate(parent, {"children": len(replies), "at_once": at_once}, script)


def statuses(run: Run) -> list[str]:
    return [status for status, _ in run.output["ends"]]


def names(run: Run) -> list[str]:
    return [name for name, _ in run.calls]


def answer(place: int, after_s: float) -> Reply:
    return Reply({"place": place}, after_s=after_s)


def test_all_end_in_time_and_the_timer_holds_nobody_back() -> None:
    run = raced(answer(0, 9), answer(1, 3), answer(2, 6))
    assert run.output["ends"] == [["done", {"place": place}] for place in range(3)]
    assert run.finished_after_s == 9
    assert run.left_open == []
    assert run.custom_status == ["c1 done", "c2 done", "c0 done"]
    assert "terminate_instances" not in names(run)


def test_a_late_child_is_terminated_and_the_parent_ends_with_the_others() -> None:
    run = raced(answer(0, 3), answer(1, 500))
    assert statuses(run) == ["done", "late"]
    (ended,) = [payload for name, payload in run.calls if name == "terminate_instances"]
    assert ended["instance_ids"] == ["instance-1:c1"]
    assert run.finished_after_s == DEADLINE_S
    assert run.output["after"] == {"done": True}


def test_a_result_that_comes_while_the_late_are_ended_is_ignored() -> None:
    run = raced(answer(0, DEADLINE_S + 1), terminating=Reply({"terminated": 0}, after_s=5))
    assert run.output["ends"] == [["late", {}]]
    assert run.output["after"] == {"done": True}


def test_a_termination_that_fails_costs_time_and_nothing_else() -> None:
    run = raced(answer(0, 30), answer(1, 1), terminating=Reply(failure="no client"))
    assert statuses(run) == ["late", "done"]
    assert run.finished_after_s == 30  # the host waits for the open child


@pytest.mark.parametrize(
    "bad", [Reply(failure="it raised", after_s=2), Reply("text", after_s=2), Reply("no JSON")]
)
def test_a_child_that_fails_takes_nobody_with_it(bad: Reply) -> None:
    run = raced(bad, answer(1, 5), Reply(failure="it raised too", after_s=1))
    assert statuses(run) == ["failed", "done", "failed"]
    assert run.error is None
    assert run.left_open == []


def test_a_child_that_was_lost_is_begun_again_when_its_wave_has_ended() -> None:
    run = raced([Reply(failure="the worker died", after_s=1), answer(0, 2)], answer(1, 3))
    assert run.output["ends"] == [["done", {"place": 0}], ["done", {"place": 1}]]
    assert [payload["place"] for name, payload in run.calls if name == "child"] == [0, 1, 0]
    assert run.finished_after_s == 3 + RESTART_PAUSE.total_seconds() + 2
    assert run.left_open == []


def test_all_may_fail() -> None:
    run = raced(Reply(failure="one"), Reply(failure="two"))
    assert statuses(run) == ["failed", "failed"]


def test_no_more_than_so_many_are_at_work_at_once() -> None:
    run = raced(*(answer(place, 4) for place in range(5)), at_once=2)
    assert statuses(run) == ["done"] * 5
    assert run.finished_after_s == 12
    assert run.left_open == []


def test_children_whose_turn_does_not_come_are_late_and_never_started() -> None:
    run = raced(answer(0, 3), answer(1, 500), answer(2, 1), answer(3, 1), at_once=2)
    assert statuses(run) == ["done", "late", "late", "late"]
    assert [payload["place"] for name, payload in run.calls if name == "child"] == [0, 1]
    assert run.finished_after_s == DEADLINE_S


def test_a_race_of_nobody_ends_at_once() -> None:
    run = raced()
    assert run.output["ends"] == []
    assert run.finished_after_s == 0


def test_each_wave_is_one_step_for_the_host_and_no_task_is_sent_twice() -> None:
    """Check that yielded tasks are not sent again, because the host would start their children again."""
    run = raced(answer(0, 1), answer(1, 2), answer(2, 3), at_once=2)
    (steps,) = run.recording.episodes[-1].state["actions"]
    kinds = [[part["actionType"] for part in step.get("compoundActions", [])] for step in steps]
    assert kinds == [[2, 2, 5], [2, 5], []]
