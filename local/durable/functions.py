"""The executor's interface to the application: functions by name, JSON text in and out.

The host implements `AppFunctions`; the executor knows neither azure-functions' converters nor the app.
"""

from collections.abc import Collection
from typing import Protocol


class ActivityFailed(Exception):  # noqa: N818  # part of the history (TaskFailed), not an error of this process
    """An activity raised an exception.

    Attributes:
        reason: for `TaskFailed.Reason`: the exception's message.
        details: for `TaskFailed.Details`: the traceback, or the message again.
    """

    def __init__(self, reason: str, details: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.details = details


class AppFunctions(Protocol):
    """The durable functions of one app, looked up by exact name."""

    def orchestrators(self) -> Collection[str]:
        """Return the names of all orchestrators."""
        ...

    def activities(self) -> Collection[str]:
        """Return the names of all activities."""
        ...

    async def run_orchestrator(self, name: str, trigger_json: str) -> str:
        """Run one episode: trigger JSON of the out-of-process protocol in, state JSON out.

        It may block the event loop: an episode is short, and the executor awaits nothing else meanwhile.

        Raises:
            Exception: the SDK's exception, unchanged; its text contains `$OutOfProcData$:` and the state.
        """
        ...

    async def run_activity(self, name: str, input_json: str, instance_id: str) -> str:
        """Run one activity, with input and result as JSON text.

        Synchronous functions must run in a thread, because several activities run concurrently.

        Raises:
            ActivityFailed: the activity raised, or its argument or result could not be converted.
        """
        ...


def unknown_function(name: str, kind: str, known: Collection[str]) -> str:
    """Return the host's message for an unregistered name; `kind` is activity or orchestrator."""
    names = "', '".join(sorted(known))
    return (
        f"The function '{name}' doesn't exist, is disabled, or is not an {kind} function. Additional info: "
        f"The following are the known {kind} functions: '{names}'."
    )
