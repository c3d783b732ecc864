"""Calls functions: converts and collects their arguments, and runs them on the event loop or in a thread.

Async functions run on the event loop, others in the thread pool, as in the worker.
"""

import asyncio
import functools
import os
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from azure.functions.meta import Datum

from local.host.catalogue import HostedFunction
from local.host.conversion import decode, encode


class Invoker:
    """Invoker of the app's functions, for all kinds of triggers.

    Args:
        client_binding: the JSON of a durable client binding.
    """

    def __init__(self, client_binding: str) -> None:
        self._client_binding = client_binding
        # If the variable is unset, the default of Python applies as in the real worker: the number of cores +
        # 4.
        count = os.environ.get("PYTHON_THREADPOOL_THREAD_COUNT")
        self._threads = ThreadPoolExecutor(int(count) if count else None, thread_name_prefix="function")
        self._count_lock = threading.Lock()
        self.running_threads = 0  # this count includes threads of cancelled calls, which can't be killed

    async def run(self, function: HostedFunction, trigger: Datum, metadata: Mapping[str, Datum]) -> object:
        """Convert the trigger's wire value, call the function with it and return the result.

        Raises:
            Exception: any exception of the function or a converter.
        """
        return await self.call(function, decode(function.trigger_parameter, trigger, dict(metadata)))

    async def call(self, function: HostedFunction, argument: object) -> object:
        """Call a function whose trigger argument is already converted, and return the result.

        Raises:
            Exception: as `run`.
        """
        arguments = self._arguments(function, argument)
        result = await self._execute(function, arguments)
        if result is not None and function.returns is None:
            raise RuntimeError(f"function {function.name} without a $return binding returned a value")
        return result

    def encode_result(self, function: HostedFunction, result: object) -> Datum:
        """Convert the result of a function to a wire value.

        Raises:
            ValueError: the function has no return binding, or its converter rejects the value.
        """
        if function.returns is None:
            raise ValueError(f"function {function.name} has no return binding")
        return encode(function.returns, result)

    def close(self) -> None:
        """Reject further calls and cancel queued ones. Running threads are not interrupted."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _arguments(self, function: HostedFunction, argument: object) -> dict[str, object]:
        arguments: dict[str, object] = {function.trigger_parameter.name: argument}
        for name, parameter in function.inputs.items():
            # This parameter is a durableClient, the only other input binding that this host supports.
            if name not in arguments:
                arguments[name] = decode(parameter, Datum(type="string", value=self._client_binding), {})
        return arguments

    async def _execute(self, function: HostedFunction, arguments: dict[str, object]) -> object:
        if function.is_async:
            return await function.call(**arguments)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._threads, functools.partial(self._in_thread, function, arguments)
        )

    def _in_thread(self, function: HostedFunction, arguments: dict[str, object]) -> object:
        with self._count_lock:
            self.running_threads += 1
        try:
            return function.call(**arguments)
        finally:
            with self._count_lock:
                self.running_threads -= 1
