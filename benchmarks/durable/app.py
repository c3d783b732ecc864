"""The app that is measured, and its functions as the executor asks for them; counts the SDK's time."""

import asyncio
import time
from collections.abc import Callable, Collection
from typing import Any, TypeAlias

import azure.durable_functions as df
from azure.functions.meta import Datum, get_binding_registry

Context: TypeAlias = df.DurableOrchestrationContext

PARALLEL = 16
WORK_S = 0.005

_bench = df.Blueprint()


async def nothing(value: int) -> int:
    return value


async def wait(value: int) -> int:
    """Stands for an activity that waits on the network."""
    await asyncio.sleep(WORK_S)
    return value


ACTIVITIES = {"nothing": nothing, "wait": wait}

_bench.activity_trigger(input_name="value")(nothing)
_bench.activity_trigger(input_name="value")(wait)


@_bench.orchestration_trigger(context_name="context")
def sequential(context: Context) -> Any:
    name, count = context.get_input()
    total = 0
    for value in range(count):
        total += yield context.call_activity(name, value)
    return total


@_bench.orchestration_trigger(context_name="context")
def fan_out(context: Context) -> Any:
    name, count = context.get_input()
    return sum((yield context.task_all([context.call_activity(name, value) for value in range(count)])))


class BenchFunctions:
    """AppFunctions over the blueprint above.

    finished: set when an orchestrator has returned. sdk_s: seconds spent in the SDK since the last `reset`.
    """

    def __init__(self) -> None:
        app = df.DFApp()
        app.register_functions(_bench)
        self._handles: dict[str, Callable[[Any], str]] = {
            function.get_function_name(): function.get_user_function()
            for function in app.get_functions()
            if function.get_trigger().get_binding_name() == "orchestrationTrigger"
        }
        self._converters = get_binding_registry()
        self.reset()

    def reset(self) -> None:
        self.finished = asyncio.Event()
        self.sdk_s = 0.0

    def orchestrators(self) -> Collection[str]:
        return self._handles

    def activities(self) -> Collection[str]:
        return ACTIVITIES

    async def run_orchestrator(self, name: str, trigger_json: str) -> str:
        begun_s = time.perf_counter()
        converter = self._converters.get("orchestrationTrigger")
        context = converter.decode(Datum(type="json", value=trigger_json), trigger_metadata={})
        state = self._handles[name](context)
        self.sdk_s += time.perf_counter() - begun_s
        if '"isDone": true' in state:
            self.finished.set()
        return state

    async def run_activity(self, name: str, input_json: str, instance_id: str) -> str:
        converter = self._converters.get("activityTrigger")
        value = converter.decode(Datum(type="json", value=input_json), trigger_metadata={})
        result = await ACTIVITIES[name](value)
        return str(converter.encode(result, expected_type=None).value)
