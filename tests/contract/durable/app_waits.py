"""Orchestrators that wait for time, events or slow children, or race them against a deadline."""

from datetime import timedelta
from typing import Any, TypeAlias

import azure.durable_functions as df

from orchestrations.fan_out import Child, race

Context: TypeAlias = df.DurableOrchestrationContext
waits = df.Blueprint()


@waits.orchestration_trigger(context_name="context")
def waits_for_event(context: Context) -> Any:
    return (yield context.wait_for_external_event(context.get_input()))


@waits.orchestration_trigger(context_name="context")
def works_then_waits(context: Context) -> Any:
    """Wait for the events `first` and `second`, which may arrive while the activity still runs."""
    yield context.call_activity("hold", "work")
    first = yield context.wait_for_external_event("first")
    second = yield context.wait_for_external_event("second")
    return [first, second, (yield context.call_activity("square", 8))]


@waits.orchestration_trigger(context_name="context")
def waits_twice_for_one_name(context: Context) -> Any:
    yield context.call_activity("hold", "work")
    one = yield context.wait_for_external_event("more")
    other = yield context.wait_for_external_event("more")
    return [one, other]


@waits.orchestration_trigger(context_name="context")
def event_or_timer(context: Context) -> Any:
    timer = context.create_timer(context.current_utc_datetime + timedelta(seconds=context.get_input()))
    event = context.wait_for_external_event("go")
    winner = yield context.task_any([event, timer])
    if winner is event:
        timer.cancel()
        return ["event", event.result, (yield context.call_activity("square", 9))]
    return ["timer", None, (yield context.call_activity("square", 9))]


@waits.orchestration_trigger(context_name="context")
def sleeps(context: Context) -> Any:
    started_at = context.current_utc_datetime
    due = started_at + timedelta(seconds=context.get_input())
    yield context.create_timer(due)
    return context.current_utc_datetime >= due


@waits.orchestration_trigger(context_name="context")
def leaves_timer_open(context: Context) -> Any:
    timer = context.create_timer(context.current_utc_datetime + timedelta(hours=1))
    yield context.task_any([context.call_activity("square", 2), timer])
    context.set_custom_status("returned")
    return "done"


@waits.orchestration_trigger(context_name="context")
def abandons_child(context: Context) -> Any:
    child_id = f"{context.instance_id}:c0"
    timer = context.create_timer(context.current_utc_datetime + timedelta(seconds=0.05))
    slow = context.call_sub_orchestrator("holds", "slow child", child_id)
    winner = yield context.task_any([slow, timer])
    assert winner is timer
    context.set_custom_status("late")
    if context.get_input() == "terminate":
        yield context.call_activity("end_instance", child_id)
    return "went on"


@waits.orchestration_trigger(context_name="context")
def holds(context: Context) -> Any:
    return (yield context.call_activity("hold", context.get_input()))


@waits.orchestration_trigger(context_name="context")
def calls_child_holding(context: Context) -> Any:
    return (yield context.call_sub_orchestrator("holds", context.get_input(), f"{context.instance_id}:c0"))


@waits.orchestration_trigger(context_name="context")
def counts_events(context: Context) -> Any:
    """Count one event per execution, and pass only the count on to the next execution."""
    state = context.get_input()
    value = yield context.wait_for_external_event("item")
    state["seen"].append(value)
    context.set_custom_status(len(state["seen"]))
    if len(state["seen"]) == state["wanted"]:
        return state["seen"]
    context.continue_as_new(state)


@waits.orchestration_trigger(context_name="context")
def continues_without_awaiting(context: Context) -> Any:
    if context.get_input() == "first":
        yield context.call_activity("hold", "work")
        context.continue_as_new("second")
        return None
    context.set_custom_status("second execution")
    return (yield context.wait_for_external_event("item"))


@waits.orchestration_trigger(context_name="context")
def continues_with_open_timer(context: Context) -> Any:
    if context.get_input() == "second":
        return "second execution"
    timer = context.create_timer(context.current_utc_datetime + timedelta(hours=1))
    yield context.task_any([context.call_activity("square", 1), timer])
    context.set_custom_status("asked to continue")
    context.continue_as_new("second")


@waits.orchestration_trigger(context_name="context")
def races_children(context: Context) -> Any:
    """Race children against a deadline. The input is `{"gates", "at_once", "seconds"}`, with the name of the
    gate that each child waits for.
    """
    parameters = context.get_input()
    children = [
        Child("waits_at_gate", {"gate": gate}, f"{context.instance_id}:c{place}")
        for place, gate in enumerate(parameters["gates"])
    ]
    deadline = context.current_utc_datetime + timedelta(seconds=parameters["seconds"])
    ends = yield from race(context, children, deadline, at_once=parameters["at_once"])
    return [end.status for end in ends] + [(yield context.call_activity("square", 7))]


@waits.orchestration_trigger(context_name="context")
def waits_at_gate(context: Context) -> Any:
    gate = context.get_input()["gate"]
    if gate == "raises":
        raise ValueError("a defect of a child")
    if gate:
        yield context.call_activity("hold", gate)
    return {"gate": gate}
