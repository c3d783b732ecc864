"""The functions of a DFApp for the executor, called in the same way as by the official worker.

Arguments and results pass through the binding converters of azure-functions. The handle of an orchestrator is
the result of `Orchestrator.create`, which `get_user_function()` returns.
"""

import asyncio
import inspect
import traceback
from collections.abc import Callable, Collection
from typing import Any

import azure.durable_functions as df
from azure.functions.meta import Datum, get_binding_registry

from local.durable.functions import ActivityFailed

_CONVERTERS = get_binding_registry()


class SdkFunctions:
    """The `AppFunctions` of one app. `client_binding` is set once the server's URL is known."""

    def __init__(self, app: df.DFApp) -> None:
        self.client_binding = ""
        self._orchestrators: dict[str, Any] = {}
        self._activities: dict[str, Any] = {}
        for function in app.get_functions():
            kind = function.get_trigger().get_binding_name()
            if kind == "orchestrationTrigger":
                self._orchestrators[function.get_function_name()] = function
            elif kind == "activityTrigger":
                self._activities[function.get_function_name()] = function

    def orchestrators(self) -> Collection[str]:
        return self._orchestrators

    def activities(self) -> Collection[str]:
        return self._activities

    async def run_orchestrator(self, name: str, trigger_json: str) -> str:
        handle: Callable[[Any], str] = self._orchestrators[name].get_user_function()
        converter = _CONVERTERS.get("orchestrationTrigger")
        return handle(converter.decode(Datum(type="json", value=trigger_json), trigger_metadata={}))

    async def run_activity(self, name: str, input_json: str, instance_id: str) -> str:
        function = self._activities[name]
        code = function.get_user_function()
        converter = _CONVERTERS.get("activityTrigger")
        try:
            arguments = {
                function.get_trigger().name: converter.decode(
                    Datum(type="json", value=input_json), trigger_metadata={}
                )
            }
            for binding in function.get_bindings():
                if binding.get_binding_name() == "durableClient":
                    arguments[binding.name] = self.client_binding
            if inspect.iscoroutinefunction(code):
                result = await code(**arguments)
            else:
                result = await asyncio.to_thread(code, **arguments)
            return str(converter.encode(result, expected_type=None).value)
        except Exception as error:
            raise ActivityFailed(str(error), traceback.format_exc()) from error
