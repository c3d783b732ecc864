"""Tests of the harness: a correct orchestrator passes, rule violations are detected, and the clock orders
events.
"""

import json
import random
import time
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from azure.durable_functions import Blueprint, RetryOptions
from azure.durable_functions import DurableOrchestrationContext as Context

from tests.replay.harness import RaisedEvent, Reply, Script, ScriptError, simulate
from tests.replay.history import ActionType, leaf_actions
from tests.replay.recording import recorded_orchestrator, replay_recording
from tests.replay.sdk import NonDeterminismError, PayloadError

Steps = Generator[Any, Any, Any]


def fan_out(context: Context) -> Steps:
    parts = yield context.call_activity("split", context.get_input())
    counts = yield context.task_all([context.call_activity("count", part) for part in parts])
    return {"total": sum(counts), "at": context.current_utc_datetime.isoformat()}


FAN_OUT_SCRIPT = Script(
    activities={"split": lambda text: text.split(), "count": lambda word: Reply(len(word), after_s=len(word))}
)


def test_deterministic_orchestrator_passes_on_the_virtual_clock() -> None:
    run = simulate(fan_out, "a bbb cc", FAN_OUT_SCRIPT)
    assert run.output == {"total": 6, "at": "2025-01-15T09:00:03+00:00"}
    assert run.calls == [("split", "a bbb cc"), ("count", "a"), ("count", "bbb"), ("count", "cc")]
    assert (run.returned_after_s, run.left_open) == (3.0, [])


def test_decorated_orchestrator_is_taken_as_it_is() -> None:
    blueprint = Blueprint()
    decorated = blueprint.orchestration_trigger(context_name="context")(fan_out)
    assert simulate(decorated, "a", FAN_OUT_SCRIPT).output["total"] == 1


def random_input(context: Context) -> Steps:
    return (yield context.call_activity("work", random.random()))


def clock_in_the_status(context: Context) -> Steps:
    context.set_custom_status({"now": time.perf_counter_ns()})
    yield context.call_activity("work", None)


calls = {"count": 0}


def changes_its_past(context: Context) -> Steps:
    # Each episode is replayed twice, so the first action differs from the second episode on.
    calls["count"] += 1
    yield context.call_activity("work", calls["count"] > 2)
    yield context.call_activity("work", None)


@pytest.mark.parametrize("orchestrator", [random_input, clock_in_the_status, changes_its_past])
def test_non_deterministic_orchestrator_is_caught(orchestrator: Any) -> None:
    with pytest.raises(NonDeterminismError):
        simulate(orchestrator, None, Script(activities={"work": lambda _: None}))


class Payload:
    @staticmethod
    def to_json(payload: "Payload") -> dict[str, int]:
        return {"a": 1}


@pytest.mark.parametrize("payload", ["x" * 16_400, Payload()], ids=["large", "an object"])
def test_payload_that_is_large_or_no_plain_json_is_caught(payload: object) -> None:
    def orchestrator(context: Context) -> Steps:
        yield context.call_activity("work", payload)

    with pytest.raises(PayloadError):
        simulate(orchestrator, None, Script(activities={"work": lambda _: None}))


def race(context: Context) -> Steps:
    child = context.call_sub_orchestrator("child", None, f"{context.instance_id}:c0")
    timer = context.create_timer(context.current_utc_datetime + timedelta(seconds=10))
    winner = yield context.task_any([child, timer])
    if winner is child:
        timer.cancel()
        return child.result
    if context.get_input() == "terminate":
        yield context.call_activity("terminate", f"{context.instance_id}:c0")
    return "too late"


def race_script(child_s: float) -> Script:
    return Script(
        children={"child": lambda _: Reply("in time", after_s=child_s)},
        activities={"terminate": lambda instance_id: Reply(terminates=[instance_id])},
    )


@pytest.mark.parametrize(
    ("orchestration_input", "child_s", "output", "finished_after_s", "left_open"),
    [
        ("abandon", 3, "in time", 3, []),  # the cancelled timer does not count
        ("abandon", 60, "too late", 60, ["child"]),  # the host waits for the open child
        ("terminate", 60, "too late", 10, []),
    ],
)
def test_open_task_rule_is_applied(
    orchestration_input: str, child_s: float, output: str, finished_after_s: float, left_open: list[str]
) -> None:
    run = simulate(race, orchestration_input, race_script(child_s))
    assert run.output == output
    assert run.finished_after_s == finished_after_s
    assert run.left_open == left_open


def retrying(context: Context) -> Steps:
    options = RetryOptions(first_retry_interval_in_milliseconds=5000, max_number_of_attempts=3)
    first = yield context.call_activity_with_retry("shaky", options, 1)
    try:
        yield context.call_activity_with_retry("broken", options, 2)
    except Exception as error:  # noqa: BLE001 # the SDK raises nothing more precise
        return {"first": first, "error": str(error)}


def test_retries_take_their_time_and_their_numbers() -> None:
    answers = iter([Reply(failure="not yet"), Reply("at last")])
    script = Script(activities={"shaky": lambda _: next(answers), "broken": lambda _: Reply(failure="never")})
    run = simulate(retrying, None, script)
    assert run.output["first"] == "at last"
    assert "never" in run.output["error"]
    assert [name for name, _ in run.calls] == ["shaky", "shaky", "broken", "broken", "broken"]
    assert run.returned_after_s == 15.0


def waiting(context: Context) -> Steps:
    answer = yield context.wait_for_external_event("clarified")
    answer = json.loads(answer) if isinstance(answer, str) else answer
    context.set_custom_status({"heard": answer["text"]})
    context.continue_as_new({"round": 2})


def test_external_event_and_continue_as_new() -> None:
    run = simulate(waiting, None, Script(events=[RaisedEvent("clarified", {"text": "yes"}, at_s=5)]))
    assert run.custom_status == {"heard": "yes"}
    assert run.continued_with == {"round": 2}
    assert run.returned_after_s == 5.0


def test_failing_orchestrator_reports_its_error() -> None:
    def orchestrator(context: Context) -> Steps:
        yield context.call_activity("work", None)

    run = simulate(orchestrator, None, Script(activities={"work": lambda _: Reply(failure="no luck")}))
    assert run.error is not None
    assert "no luck" in run.error


def test_missing_answer_and_endless_wait_are_named() -> None:
    with pytest.raises(ScriptError, match="no answer for split"):
        simulate(fan_out, "a", Script())
    with pytest.raises(ScriptError, match="waits for ever"):
        simulate(waiting, None, Script())


def test_recorded_history_is_replayed_and_changed_code_is_caught(tmp_path: Path) -> None:
    path = tmp_path / "fan_out.json"
    simulate(fan_out, "a bbb cc", FAN_OUT_SCRIPT).record("fan_out", path)
    assert recorded_orchestrator(path) == "fan_out"
    replay_recording(path, fan_out)

    def changed(context: Context) -> Steps:
        parts = yield context.call_activity("split", context.get_input())
        yield context.call_activity("new step", None)
        return (yield context.task_all([context.call_activity("count", part) for part in parts]))

    with pytest.raises(NonDeterminismError, match="after"):
        replay_recording(path, changed)


def test_leaves_are_numbered_depth_first() -> None:
    def part(name: str) -> dict[str, object]:
        return {"actionType": ActionType.ACTIVITY, "functionName": name}

    inner = {"actionType": ActionType.WHEN_ANY, "compoundActions": [part("b"), part("c")]}
    outer = {"actionType": ActionType.WHEN_ALL, "compoundActions": [part("a"), inner]}
    names = [leaf["functionName"] for leaf in leaf_actions({"actions": [[outer, part("d")]]})]
    assert names == ["a", "b", "c", "d"]
