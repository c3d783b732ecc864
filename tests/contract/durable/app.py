"""A small durable app of blueprints: one orchestrator per row of the protocol, activities that tests can hold.

Tests and activities share a process, so a test opens gates and counts runs through `stage`.
"""

import asyncio
import threading
from collections import Counter
from datetime import timedelta
from typing import Any

import azure.durable_functions as df

from tests.contract.durable.sdk_functions import SdkFunctions


class Stage:
    """What a test sets up, and what it finds afterwards. Reset before each test."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.runs: Counter[str] = Counter()
        self.gates: dict[str, asyncio.Event] = {}
        self.seen: list[Any] = []
        self.changed = False
        self.running = 0
        self.most_running = 0
        self.lock = threading.Lock()

    def gate(self, name: str) -> asyncio.Event:
        return self.gates.setdefault(name, asyncio.Event())


stage = Stage()
work = df.Blueprint()
flows = df.Blueprint()
waits = df.Blueprint()
odd = df.Blueprint()

Context = df.DurableOrchestrationContext
RETRY_THREE = df.RetryOptions(first_retry_interval_in_milliseconds=10, max_number_of_attempts=3)


# -- activities ------------------------------------------------------------------------------------------------


@work.activity_trigger(input_name="value")
def echo(value: Any) -> Any:
    stage.runs["echo"] += 1
    return value


@work.activity_trigger(input_name="number")
async def square(number: int) -> int:
    return number * number


@work.activity_trigger(input_name="name")
async def hold(name: str) -> str:
    """Runs until the test opens the gate of that name."""
    stage.runs[name] += 1
    await stage.gate(name).wait()
    return name


@work.activity_trigger(input_name="times")
def fail_first(times: int) -> str:
    """Fails that often, then succeeds."""
    stage.runs["fail_first"] += 1
    if stage.runs["fail_first"] <= times:
        raise ValueError(f"attempt {stage.runs['fail_first']} of fail_first")
    return f"succeeded at attempt {stage.runs['fail_first']}"


@work.activity_trigger(input_name="number")
def busy(number: int) -> int:
    with stage.lock:
        stage.running += 1
        stage.most_running = max(stage.most_running, stage.running)
    threading.Event().wait(0.01)
    with stage.lock:
        stage.running -= 1
    return number


@work.activity_trigger(input_name="instance")
@work.durable_client_input(client_name="client")
async def end_instance(instance: str, client: df.DurableOrchestrationClient) -> None:
    await client.terminate(instance, "too late")


# -- sequencing ------------------------------------------------------------------------------------------------


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
    """task_all of a task_any, a task_all and a plain task."""
    first = context.task_any([context.call_activity("echo", "quick"), context.call_activity("hold", "slow")])
    both = context.task_all([context.call_activity("square", 2), context.call_activity("square", 3)])
    winner, squares, plain = yield context.task_all([first, both, context.call_activity("echo", "plain")])
    context.set_custom_status("decided")
    return [winner.result, squares, plain]


@flows.orchestration_trigger(context_name="context")
def yields_the_same_tasks_again(context: Context) -> Any:
    """The usual loop over task_any: tasks that were yielded before are not scheduled again."""
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
    except Exception as error:
        return str(error)


@flows.orchestration_trigger(context_name="context")
def does_not_catch(context: Context) -> Any:
    yield context.call_activity("fail_first", 99)


@flows.orchestration_trigger(context_name="context")
def all_with_failure(context: Context) -> Any:
    """The SDK's task_all fails at once; the host still waits for the other task."""
    try:
        yield context.task_all(
            [context.call_activity("fail_first", 99), context.call_activity("hold", "other")]
        )
    except Exception:
        context.set_custom_status("caught")
    return "done"


@flows.orchestration_trigger(context_name="context")
def retries(context: Context) -> Any:
    failures = context.get_input()
    try:
        result = yield context.call_activity_with_retry("fail_first", RETRY_THREE, failures)
    except Exception as error:
        result = f"gave up: {error}"
    # Proof that both sides still count alike after the retries.
    return [result, (yield context.call_activity("square", 6))]


@flows.orchestration_trigger(context_name="context")
def retried_child(context: Context) -> Any:
    result = yield context.call_sub_orchestrator_with_retry(
        "does_not_catch_twice", RETRY_THREE, None, f"{context.instance_id}:child"
    )
    return [result, (yield context.call_activity("square", 7))]


@flows.orchestration_trigger(context_name="context")
def does_not_catch_twice(context: Context) -> Any:
    return (yield context.call_activity("fail_first", 2))


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
def parent_of_failing(context: Context) -> Any:
    try:
        yield context.call_sub_orchestrator("does_not_catch", None)
    except Exception as error:
        return str(error)


@flows.orchestration_trigger(context_name="context")
def calls_child_named(context: Context) -> Any:
    try:
        return (yield context.call_sub_orchestrator("child", {"number": 2}, context.get_input()))
    except Exception as error:
        return str(error)


# -- waiting ---------------------------------------------------------------------------------------------------


@waits.orchestration_trigger(context_name="context")
def waits_for_event(context: Context) -> Any:
    return (yield context.wait_for_external_event(context.get_input()))


@waits.orchestration_trigger(context_name="context")
def works_then_waits(context: Context) -> Any:
    """Events named `first` and `second` may come while the activity still runs."""
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
    begun = context.current_utc_datetime
    due = begun + timedelta(seconds=context.get_input())
    yield context.create_timer(due)
    return context.current_utc_datetime >= due


@waits.orchestration_trigger(context_name="context")
def leaves_timer_open(context: Context) -> Any:
    timer = context.create_timer(context.current_utc_datetime + timedelta(seconds=0.3))
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
def counts_events(context: Context) -> Any:
    """One event per execution; the count is the only thing that goes on."""
    state = context.get_input()
    value = yield context.wait_for_external_event("item")
    state["seen"].append(value)
    context.set_custom_status(len(state["seen"]))
    if len(state["seen"]) == state["wanted"]:
        return state["seen"]
    context.continue_as_new(state)


@waits.orchestration_trigger(context_name="context")
def continues_with_open_timer(context: Context) -> Any:
    if context.get_input() == "second":
        return "second execution"
    timer = context.create_timer(context.current_utc_datetime + timedelta(seconds=0.2))
    yield context.task_any([context.call_activity("square", 1), timer])
    context.set_custom_status("asked to continue")
    context.continue_as_new("second")


# -- odd ones --------------------------------------------------------------------------------------------------


@odd.orchestration_trigger(context_name="context")
def changes_its_mind(context: Context) -> Any:
    """Its first step depends on the world, which is forbidden: `stage.changed` plays the new deployment."""
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
    """Notes what it sees at every run: a value must be the same in each of them."""
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
    """A *_with_retry and a timer that is cancelled afterwards, in one task_any."""
    timer = context.create_timer(context.current_utc_datetime + timedelta(seconds=30))
    retried = context.call_activity_with_retry("fail_first", RETRY_THREE, 1)
    yield context.task_any([retried, timer])
    timer.cancel()
    yield context.call_activity("square", 1)
    return "done"


def make_functions() -> SdkFunctions:
    app = df.DFApp()
    for blueprint in (work, flows, waits, odd):
        app.register_functions(blueprint)
    return SdkFunctions(app)
