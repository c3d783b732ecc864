"""The interface through which the executor calls the application's functions, with JSON text as input and
output.

The host implements `AppFunctions`; the executor knows neither azure-functions' converters nor the app.
"""

from collections.abc import Collection
from typing import Protocol


class ActivityFailed(Exception):  # noqa: N818  # part of the history (TaskFailed), not an error of this process
    """Error raised if an activity failed. It contains the texts for the TaskFailed event.

    Attributes:
        reason: message of the exception, for `TaskFailed.Reason`.
        details: traceback or message, for `TaskFailed.Details`.
    """

    def __init__(self, reason: str, details: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.details = details


class AppFunctions(Protocol):
    """The durable functions of one application, identified by their exact names."""

    def orchestrators(self) -> Collection[str]:
        """Return the names of all orchestrators."""
        ...

    def activities(self) -> Collection[str]:
        """Return the names of all activities."""
        ...

    async def run_orchestrator(self, name: str, trigger_json: str) -> str:
        """Run one episode of an orchestrator. Its trigger and the returned state are JSON of the
        out-of-process protocol.

        The call may block the event loop, because an episode is short.

        Raises:
            Exception: as raised by the SDK. Its text contains `$OutOfProcData$:` and the state.
        """
        ...

    async def run_activity(self, name: str, input_json: str, instance_id: str) -> str:
        """Run an activity. Input and result are JSON text.

        Synchronous functions must run in a thread, because several activities run concurrently.

        Raises:
            ActivityFailed: if the activity raises, or its argument or result cannot be converted.
        """
        ...


def unknown_function(name: str, kind: str, known: Collection[str]) -> str:
    """Return the error message of the real host for an unknown function. `kind` is "activity" or
    "orchestrator".
    """
    names = "', '".join(sorted(known))
    return (
        f"The function '{name}' doesn't exist, is disabled, or is not an {kind} function. Additional info: "
        f"The following are the known {kind} functions: '{names}'."
    )
