"""A process that a crash test kills: `python -m tests.contract.durable.crash_app PORT STORE LOG`.

Each activity appends a line to LOG before it answers, so the test can count executions across crashes.
"""

import os
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

import azure.durable_functions as df
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

from local.durable.executor import DurableExecutor
from tests.contract.durable.sdk_functions import SdkFunctions

Context: TypeAlias = df.DurableOrchestrationContext

CHILDREN = 4
STEPS = 3
FAN_OUT = 3
ACTIVITIES_PER_CHILD = STEPS + FAN_OUT
ACTIVITIES_PER_ROOT = CHILDREN * ACTIVITIES_PER_CHILD

crash = df.Blueprint()


@crash.orchestration_trigger(context_name="context")
def root(context: Context) -> Any:
    """Parallel children with fixed ids, a second execution that goes on with their results."""
    state = context.get_input()
    if state["results"]:
        return sum(state["results"])
    children = [
        context.call_sub_orchestrator("branch", state["seed"] + i, f"{context.instance_id}:{i}")
        for i in range(CHILDREN)
    ]
    state["results"] = yield context.task_all(children)
    context.continue_as_new(state)


@crash.orchestration_trigger(context_name="context")
def branch(context: Context) -> Any:
    """A sequence, a timer, a fan-out."""
    total = context.get_input()
    for step in range(STEPS):
        total = yield context.call_activity(
            "add", {"key": f"{context.instance_id}/{step}", "a": total, "b": 1}
        )
    yield context.create_timer(context.current_utc_datetime + timedelta(milliseconds=20))
    tasks = [
        context.call_activity("add", {"key": f"{context.instance_id}/f{i}", "a": total, "b": i})
        for i in range(FAN_OUT)
    ]
    return sum((yield context.task_all(tasks)))


@crash.activity_trigger(input_name="numbers")
def add(numbers: dict[str, Any]) -> int:
    log = os.open(sys.argv[3], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(log, f"{numbers['key']}\n".encode())
    finally:
        os.close(log)
    threading.Event().wait(0.01)
    result: int = numbers["a"] + numbers["b"]
    return result


def expected(seed: int) -> int:
    """What `root` comes to."""
    return sum(FAN_OUT * (seed + i + STEPS) + sum(range(FAN_OUT)) for i in range(CHILDREN))


def main() -> None:
    app = df.DFApp()
    app.register_functions(crash)
    executor = DurableExecutor(Path(sys.argv[2]), SdkFunctions(app))

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        await executor.start()
        yield
        await executor.stop()

    server = Starlette(routes=[Mount("/durabletask", routes=executor.routes())], lifespan=lifespan)
    uvicorn.run(server, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")


if __name__ == "__main__":
    main()
