"""Orchestrators that run activities and children in sequence or in parallel."""

from typing import Any, TypeAlias

import azure.durable_functions as df

Context: TypeAlias = df.DurableOrchestrationContext
RETRY_THREE = df.RetryOptions(first_retry_interval_in_milliseconds=10, max_number_of_attempts=3)
flows = df.Blueprint()


@flows.orchestration_trigger(context_name="context")
def sequence(context: Context) -> Any:
    total = 0
    for number in context.get_input():
        total += yield context.call_activity("square", number)
    return total


@flows.orchestration_trigger(context_name="context")
def echo_input(context: Context) -> Any:
    return (yield context.call_activity("echo", context.get_input()))


@flows.orchestration_trigger(context_name="context")
def fan_out(context: Context) -> Any:
    return (yield context.task_all([context.call_activity("busy", i) for i in range(context.get_input())]))


@flows.orchestration_trigger(context_name="context")
def nested(context: Context) -> Any:
    """Yield a task_all of a task_any, a task_all and a plain task."""
    first = context.task_any([context.call_activity("echo", "quick"), context.call_activity("hold", "slow")])
    both = context.task_all([context.call_activity("square", 2), context.call_activity("square", 3)])
    winner, squares, plain = yield context.task_all([first, both, context.call_activity("echo", "plain")])
    context.set_custom_status("decided")
    return [winner.result, squares, plain]


@flows.orchestration_trigger(context_name="context")
def yields_the_same_tasks_again(context: Context) -> Any:
    """Yield the same tasks repeatedly in a loop over task_any, which must not schedule them again."""
    open_tasks = [context.call_activity("square", number) for number in (1, 2, 3)]
    results = []
    while open_tasks:
        winner = yield context.task_any(open_tasks)
        results.append(winner.result)
        open_tasks.remove(winner)
    after = yield context.call_activity("square", 4)
    return [*sorted(results), after]


@flows.orchestration_trigger(context_name="context")
def never_yielded(context: Context) -> Any:
    context.call_activity("echo", "forgotten")
    return (yield context.call_activity("square", 5))


@flows.orchestration_trigger(context_name="context")
def catches(context: Context) -> Any:
    try:
        yield context.call_activity("fail_first", 99)
    except Exception as error:  # noqa: BLE001  # the SDK raises plain Exception
        return str(error)


@flows.orchestration_trigger(context_name="context")
def does_not_catch(context: Context) -> Any:
    yield context.call_activity("fail_first", 99)


@flows.orchestration_trigger(context_name="context")
def all_with_failure(context: Context) -> Any:
    """Yield a task_all that has already failed for the SDK, while the host still waits for its other task."""
    try:
        yield context.task_all(
            [context.call_activity("fail_first", 99), context.call_activity("hold", "other")]
        )
    except Exception:  # noqa: BLE001  # the SDK raises plain Exception
        context.set_custom_status("caught")
    return "done"


@flows.orchestration_trigger(context_name="context")
def retries(context: Context) -> Any:
    failures = context.get_input()
    try:
        result = yield context.call_activity_with_retry("fail_first", RETRY_THREE, failures)
    except Exception as error:  # noqa: BLE001  # the SDK raises plain Exception
        result = f"gave up: {error}"
    # Proves that host and SDK still agree on the sequence numbers after the retries.
    return [result, (yield context.call_activity("square", 6))]


@flows.orchestration_trigger(context_name="context")
def parent(context: Context) -> Any:
    generated = yield context.call_sub_orchestrator("child", {"number": 3})
    fixed = yield context.call_sub_orchestrator("child", {"number": 4}, f"{context.instance_id}:c0")
    return [generated, fixed]


@flows.orchestration_trigger(context_name="context")
def child(context: Context) -> Any:
    number = context.get_input()["number"]
    squared = yield context.call_activity("square", number)
    return {"squared": squared, "id": context.instance_id, "parent": context.parent_instance_id}


@flows.orchestration_trigger(context_name="context")
def calls_child_named(context: Context) -> Any:
    try:
        return (yield context.call_sub_orchestrator("child", {"number": 2}, context.get_input()))
    except Exception as error:  # noqa: BLE001  # the SDK raises plain Exception
        return str(error)
