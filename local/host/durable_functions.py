"""Adapter that lets the durable executor call the app's orchestrators and activities in the worker.

Calls that are lost with a worker, or arrive before the next one is ready, fail: an activity with TaskFailed,
an orchestration permanently. This is how the extension treats version 1.7 of the Python SDK.
"""

from collections.abc import Collection, Iterable

from local.durable.functions import ActivityFailed
from local.host.settings import AppError
from local.host.wire import Call, FunctionDocument, text_value
from local.host.worker_process import CallFailedError, Worker, WorkerLostError


class HostedDurableFunctions:
    """The durable functions of one app, as the protocol `local.durable.functions.AppFunctions` requires."""

    def __init__(self, functions: Iterable[FunctionDocument], worker: Worker) -> None:
        """Index the functions by name. Raise `AppError` if two orchestrators or two activities have the same
        name.
        """
        functions = list(functions)
        self._orchestrators = _by_name(functions, "orchestrationTrigger", "orchestration")
        self._activities = _by_name(functions, "activityTrigger", "activity")
        self._worker = worker

    def orchestrators(self) -> Collection[str]:
        return self._orchestrators.keys()

    def activities(self) -> Collection[str]:
        return self._activities.keys()

    async def run_orchestrator(self, name: str, trigger_json: str) -> str:
        """Run one episode of an orchestrator and return its state as JSON.

        Raises:
            CallFailedError: if the SDK raises an exception. The message is the SDK's.
            WorkerLostError: if the worker is lost. The instance then cannot continue.
        """
        try:
            return await self._call(self._orchestrators[name], trigger_json)
        except WorkerLostError as lost:
            # The real extension replays the history without a result in this case, and reports this error.
            raise WorkerLostError(f"Non-Deterministic workflow detected: {lost}") from None

    async def run_activity(self, name: str, input_json: str, instance_id: str) -> str:
        """Run an activity and return its result as JSON.

        Raises:
            ActivityFailed: if the function or a converter raises an exception, or the worker is lost.
        """
        del instance_id
        try:
            return await self._call(self._activities[name], input_json)
        except CallFailedError as failed:
            raise ActivityFailed(str(failed), failed.details) from failed
        except WorkerLostError as lost:
            raise ActivityFailed(str(lost)) from None

    async def _call(self, function: str, text: str) -> str:
        return await self._worker.call(Call(function, text_value(text))) or "null"


def _by_name(functions: list[FunctionDocument], kind: str, name_key: str) -> dict[str, str]:
    """Return the functions with the given trigger type, by the names that orchestrations use."""
    names: dict[str, str] = {}
    for function in functions:
        if function.kind == kind:
            name = function.trigger.get(name_key) or function.name
            if names.setdefault(name, function.name) != function.name:
                raise AppError(f"two functions of type {kind} are named {name}")
    return names
