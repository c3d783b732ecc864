"""The app's orchestrators and activities, as the durable executor asks for them."""

import asyncio
import functools
import logging
import traceback
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor

from local.durable.functions import ActivityFailed
from local.host.catalogue import HostedFunction
from local.host.conversion import decode, text_datum
from local.host.errors import AppError
from local.host.invocation import Invoker

INNERMOST_FRAMES = 4  # the rest are this host's own; the text is kept in the history
log = logging.getLogger(__name__)


class HostedDurableFunctions:
    """Implements `local.durable.functions.AppFunctions` for one app."""

    def __init__(self, functions: Iterable[HostedFunction], invoker: Invoker) -> None:
        """Raises AppError if two orchestrators, or two activities, have one name."""
        functions = list(functions)
        self._orchestrators = _by_name(functions, "orchestrationTrigger", "orchestration")
        self._activities = _by_name(functions, "activityTrigger", "activity")
        self._invoker = invoker
        # Not the functions' pool: activities that fill it must not hold up the orchestrations that await
        # them.
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="orchestrator")

    def orchestrators(self) -> Collection[str]:
        return self._orchestrators.keys()

    def activities(self) -> Collection[str]:
        return self._activities.keys()

    async def run_orchestrator(self, name: str, trigger_json: str) -> str:
        """One episode. In a thread: an orchestrator that blocks by mistake must not block the whole host.

        Raises:
            Exception: whatever the SDK raised, unchanged.
        """
        function = self._orchestrators[name]
        context = decode(function.trigger_parameter, text_datum(trigger_json), {})
        arguments = {function.trigger_parameter.name: context}
        loop = asyncio.get_running_loop()
        call = functools.partial(function.call, **arguments)
        state: str = await loop.run_in_executor(self._threads, call)
        return state

    async def run_activity(self, name: str, input_json: str, instance_id: str) -> str:
        """One activity.

        Raises:
            ActivityFailed: the function or a converter raised.
        """
        function = self._activities[name]
        try:
            result = await self._invoker.run(function, text_datum(input_json))
            encoded: str = self._invoker.encode_result(function, result).value
        except Exception as error:  # foreign code: whatever it raises becomes a TaskFailed event
            log.warning("activity %s of %s failed", name, instance_id, exc_info=True)
            details = "".join(traceback.format_exception(error, limit=-INNERMOST_FRAMES))
            raise ActivityFailed(f"{type(error).__name__}: {error}", details) from error
        return encoded

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _by_name(functions: list[HostedFunction], kind: str, name_key: str) -> dict[str, HostedFunction]:
    found: dict[str, HostedFunction] = {}
    for function in functions:
        if function.kind == kind:
            name = function.trigger.get(name_key) or function.name
            if found.setdefault(name, function) is not function:
                raise AppError(f"two functions of type {kind} are named {name}")
    return found
