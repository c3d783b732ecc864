"""An orchestrator that executes a plan given as data, and a plain evaluation of the same plan for comparison.

A plan is a list of steps, each of which is one yield. A step is a tree: `{"all": [trees]}` or a leaf.
"""

import random
from datetime import timedelta
from typing import Any, TypeAlias

import azure.durable_functions as df

from tests.contract.durable.stage import stage

Context: TypeAlias = df.DurableOrchestrationContext
RETRY_FOUR = df.RetryOptions(first_retry_interval_in_milliseconds=5, max_number_of_attempts=4)
plans = df.Blueprint()


@plans.activity_trigger(input_name="order")
def fails_some_times(order: dict[str, Any]) -> int:
    """Fail in the first `failures` runs with the same key, then succeed."""
    with stage.lock:
        stage.runs[order["key"]] += 1
        run = stage.runs[order["key"]]
    if run <= order["failures"]:
        raise ValueError(f"run {run} of {order['key']}")
    value: int = order["value"]
    return value


@plans.orchestration_trigger(context_name="context")
def plan(context: Context) -> Any:
    results = []
    for number, step in enumerate(context.get_input()):
        results.append((yield _task(context, step, f"{context.instance_id}.{number}")))
    return results


def _task(context: Context, tree: dict[str, Any], key: str) -> Any:
    match tree:
        case {"all": branches}:
            tasks = [_task(context, branch, f"{key}.{i}") for i, branch in enumerate(branches)]
            return context.task_all(tasks)
        case {"activity": value}:
            return context.call_activity("square", value)
        case {"retried": value, "failures": failures}:
            order = {"key": key, "failures": failures, "value": value}
            return context.call_activity_with_retry("fails_some_times", RETRY_FOUR, order)
        case {"child": steps}:
            return context.call_sub_orchestrator("plan", steps)
        case _:
            return context.create_timer(
                context.current_utc_datetime + timedelta(milliseconds=tree["timer_ms"])
            )


def result_of(tree: dict[str, Any]) -> Any:
    """Return the expected result of a plan, evaluated without an orchestration."""
    match tree:
        case {"all": branches}:
            return [result_of(branch) for branch in branches]
        case {"activity": value}:
            return value * value
        case {"retried": value}:
            return value
        case {"child": steps}:
            return [result_of(step) for step in steps]
        case _:
            return None


def random_plan(source: random.Random, depth: int = 0) -> list[dict[str, Any]]:
    return [_random_tree(source, depth) for _ in range(source.randint(1, 3))]


def _random_tree(source: random.Random, depth: int) -> dict[str, Any]:
    kinds = ["activity", "retried", "retried", "timer_ms"] + (["all", "all", "child"] if depth < 2 else [])
    match source.choice(kinds):
        case "all":
            return {"all": [_random_tree(source, depth + 1) for _ in range(source.randint(1, 4))]}
        case "child":
            return {"child": random_plan(source, depth + 1)}
        case "retried":
            return {"retried": source.randint(0, 99), "failures": source.randint(0, 3)}
        case "activity":
            return {"activity": source.randint(0, 99)}
        case _:
            return {"timer_ms": source.randint(0, 20)}
