"""The app's orchestrators and activities for the durable executor, called in the worker.

Calls that are lost with a worker, or arrive before the next one is ready, fail: an activity with TaskFailed,
an orchestration for good. This is how the extension treats version 1.7 of the Python SDK.
"""

from collections.abc import Collection, Iterable

from local.durable.functions import ActivityFailed
from local.host.settings import AppError
from local.host.wire import Call, FunctionDocument, text_value
from local.host.worker_process import CallFailedError, Worker, WorkerLostError


class HostedDurableFunctions:
    """An implementation of `local.durable.functions.AppFunctions` for one app."""

    def __init__(self, functions: Iterable[FunctionDocument], worker: Worker) -> None:
        """Index the functions. Raises `AppError` if two orchestrators, or two activities, share a name."""
        functions = list(functions)
        self._orchestrators = _by_name(functions, "orchestrationTrigger", "orchestration")
        self._activities = _by_name(functions, "activityTrigger", "activity")
        self._worker = worker

    def orchestrators(self) -> Collection[str]:
        return self._orchestrators.keys()

    def activities(self) -> Collection[str]:
        return self._activities.keys()

    async def run_orchestrator(self, name: str, trigger_json: str) -> str:
        """Run one episode.

        Raises:
            CallFailedError: the SDK raised; the message is unchanged.
            WorkerLostError: the instance cannot continue.
        """
        try:
            return await self._call(self._orchestrators[name], trigger_json)
        except WorkerLostError as lost:
            # The extension then replays the history without a result and reports this error.
            raise WorkerLostError(f"Non-Deterministic workflow detected: {lost}") from None

    async def run_activity(self, name: str, input_json: str, instance_id: str) -> str:
        """Run one activity.

        Raises:
            ActivityFailed: the function or a converter raised, or the worker was lost.
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
    """Map the names that orchestrations use to the functions of one kind."""
    found: dict[str, str] = {}
    for function in functions:
        if function.kind == kind:
            name = function.trigger.get(name_key) or function.name
            if found.setdefault(name, function.name) != function.name:
                raise AppError(f"two functions of type {kind} are named {name}")
    return found
