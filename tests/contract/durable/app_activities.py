"""Activities of the test app, some of which fail or wait for the test."""

import threading
from typing import Any

import azure.durable_functions as df

from tests.contract.durable.stage import stage

work = df.Blueprint()


@work.activity_trigger(input_name="value")
def echo(value: Any) -> Any:
    stage.runs["echo"] += 1
    return value


@work.activity_trigger(input_name="number")
async def square(number: int) -> int:
    return number * number


@work.activity_trigger(input_name="name")
async def hold(name: str) -> str:
    """Run until the test opens the gate of that name."""
    stage.runs[name] += 1
    await stage.gate(name).wait()
    return name


@work.activity_trigger(input_name="name")
async def hold_then_fail(name: str) -> str:
    """Run like `hold`, but fail in the first run."""
    stage.runs[name] += 1
    await stage.gate(name).wait()
    if stage.runs[name] == 1:
        raise ValueError(f"first run of {name}")
    return name


@work.activity_trigger(input_name="times")
def fail_first(times: int) -> str:
    """Fail the given number of times, then succeed."""
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
