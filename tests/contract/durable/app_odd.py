"""Orchestrators that break a rule, request something missing, or inspect their environment."""

from datetime import timedelta
from typing import Any, TypeAlias

import azure.durable_functions as df

from tests.contract.durable.stage import stage

Context: TypeAlias = df.DurableOrchestrationContext
RETRY_THREE = df.RetryOptions(first_retry_interval_in_milliseconds=10, max_number_of_attempts=3)
odd = df.Blueprint()


@odd.orchestration_trigger(context_name="context")
def changes_its_mind(context: Context) -> Any:
    """Depend on external state in the first step, which orchestrators must not do. Setting `stage.changed`
    has the same effect as a deployment of changed code.
    """
    what = context.get_input()
    if stage.changed and what == "other kind":
        yield context.create_timer(context.current_utc_datetime + timedelta(days=1))
    elif stage.changed and what == "other name":
        yield context.call_activity("echo", "work")
    elif stage.changed and what == "nothing":
        yield context.wait_for_external_event("never")
    else:
        yield context.call_activity("hold", "work")
    yield context.call_activity("square", 1)


@odd.orchestration_trigger(context_name="context")
def calls_http(context: Context) -> Any:
    yield context.call_http("GET", "http://127.0.0.1/")


@odd.orchestration_trigger(context_name="context")
def calls_entity(context: Context) -> Any:
    yield context.call_entity(df.EntityId("counter", "one"), "add", 1)


@odd.orchestration_trigger(context_name="context")
def calls_unknown_activity(context: Context) -> Any:
    yield context.call_activity("Echo", 1)


@odd.orchestration_trigger(context_name="context")
def returns_an_object(context: Context) -> Any:
    yield context.call_activity("square", 1)
    return object()


@odd.orchestration_trigger(context_name="context")
def fails_outside_the_generator(context: Context) -> Any:
    raise RuntimeError("not even a generator")


@odd.orchestration_trigger(context_name="context")
def looks_around(context: Context) -> Any:
    """Record values of the environment at every replay, which must be the same each time."""
    ids = [str(context.new_guid())]
    times = [context.current_utc_datetime.isoformat()]
    replaying = [context.is_replaying]
    for number in range(3):
        yield context.call_activity("square", number)
        ids.append(str(context.new_guid()))
        times.append(context.current_utc_datetime.isoformat())
        replaying.append(context.is_replaying)
        stage.seen.append((number, ids[-1], times[-1], replaying[-1]))
    return {"ids": ids, "times": times, "version": context.version}


@odd.orchestration_trigger(context_name="context")
def retry_against_timer(context: Context) -> Any:
    """Race an activity with retries against a timer in one task_any, and cancel the timer."""
    timer = context.create_timer(context.current_utc_datetime + timedelta(seconds=30))
    retried = context.call_activity_with_retry("fail_first", RETRY_THREE, 1)
    yield context.task_any([retried, timer])
    timer.cancel()
    yield context.call_activity("square", 1)
    return "done"


@odd.orchestration_trigger(context_name="context")
def goes_on_beside_a_retry(context: Context) -> Any:
    """Catch the first failure of a task_all and continue while one of its retries is pending."""
    try:
        retried = context.call_activity_with_retry("hold_then_fail", RETRY_THREE, "retried")
        yield context.task_all([context.call_activity("fail_first", 1), retried])
    except Exception:  # noqa: BLE001  # the SDK raises plain Exception
        context.set_custom_status("caught")
    return (yield context.call_activity("square", 3))


@odd.orchestration_trigger(context_name="context")
def sets_custom_status(context: Context) -> Any:
    """Set each of the given custom statuses, one per step."""
    for value in context.get_input():
        context.set_custom_status(value)
        yield context.wait_for_external_event(f"after {len(str(value))}")
    return "done"


@odd.orchestration_trigger(context_name="context")
def sets_status_of_size(context: Context) -> Any:
    context.set_custom_status("x" * context.get_input())
    yield context.call_activity("square", 1)
