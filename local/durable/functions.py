"""What the durable executor asks of the application: its functions by name, JSON text in, JSON text out.

The host implements `AppFunctions`; the executor knows nothing of azure-functions' converters or of the app.
"""

from collections.abc import Collection
from typing import Protocol


class ActivityFailed(Exception):  # noqa: N818  # a fact of the history (TaskFailed), not a fault of this process
    """An activity raised.

    Attributes:
        reason: one sentence for `TaskFailed.Reason`; the message of the exception.
        details: for `TaskFailed.Details`; the traceback, or the message again.
    """

    def __init__(self, reason: str, details: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.details = details


class AppFunctions(Protocol):
    """The durable functions of one app. Names are those registered; lookup is by exact name."""

    def orchestrators(self) -> Collection[str]:
        """Names of all orchestrators."""
        ...

    def activities(self) -> Collection[str]:
        """Names of all activities."""
        ...

    async def run_orchestrator(self, name: str, trigger_json: str) -> str:
        """Run one episode: the trigger JSON of the out-of-process protocol in, the state JSON out.

        May work on the event loop: an episode is short, and the executor awaits nothing meanwhile.

        Raises:
            Exception: whatever the SDK raised, unchanged; its text carries `$OutOfProcData$:` and the state.
        """
        ...

    async def run_activity(self, name: str, input_json: str, instance_id: str) -> str:
        """Run one activity: its input as JSON text in, its result as JSON text out.

        Synchronous functions belong in a thread: several activities run at once.

        Raises:
            ActivityFailed: the activity raised, or its argument or result could not be converted.
        """
        ...


def unknown_function(name: str, kind: str, known: Collection[str]) -> str:
    """The host's words for a name that is not registered; `kind` is activity or orchestrator."""
    names = "', '".join(sorted(known))
    return (
        f"The function '{name}' doesn't exist, is disabled, or is not an {kind} function. Additional info: "
        f"The following are the known {kind} functions: '{names}'."
    )
