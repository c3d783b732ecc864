"""The out-of-process protocol of one replay: a trigger sent to the SDK, and the state or failure it returns.

Source: OrchestrationTriggerAttributeBindingProvider.cs and OutOfProcExceptionHelpers.cs; for the reader,
azure.durable_functions.models.DurableOrchestrationContext.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue, ValidationError

from local.durable.actions import OrchestratorState
from local.durable.functions import AppFunctions, unknown_function
from local.durable.history import SCHEDULING, EventType, HistoryEvent, dump_events
from local.durable.instances import Instance
from local.durable.work import ReplayFailed

_MAX_CUSTOM_STATUS_KB = (
    16  # same limit as for SetCustomStatus in DurableOrchestrationContext.cs of the real host
)

OUT_OF_PROC_LABEL = "$OutOfProcData$:"

# These events are not sent, because the SDK ignores them. Parsing their timestamps (30 us each) in every
# episode would take half the time of a long sequential orchestration.
_UNREAD = SCHEDULING | {EventType.ORCHESTRATOR_COMPLETED}


@dataclass(frozen=True)
class TimerLimits:
    """The limits at which the SDK splits long timers, as .NET TimeSpan text. The defaults are the limits of
    Azure Storage.
    """

    maximum_short_timer: str = "6.00:00:00"
    long_timer_interval: str = "3.00:00:00"


def trigger_json(instance: Instance, history: Sequence[HistoryEvent], limits: TimerLimits) -> str:
    """Return the trigger of an orchestrator as JSON. `history` must include the events of the current
    episode.
    """
    fields: dict[str, JsonValue] = {
        "input": None if instance.input is None else json.loads(instance.input),
        "instanceId": instance.instance_id,
        "isReplaying": any(event.event_type is EventType.ORCHESTRATOR_COMPLETED for event in history),
        "parentInstanceId": instance.parent.instance_id if instance.parent else None,
        "upperSchemaVersion": 1,
        "upperSchemaVersionNew": 2,
        "longRunningTimerIntervalDuration": limits.long_timer_interval,
        "maximumShortTimerDuration": limits.maximum_short_timer,
        "defaultHttpAsyncRequestSleepTimeMillseconds": 30000,
    }
    events = dump_events(event for event in history if event.event_type not in _UNREAD)
    return f'{{"history":{events},{json.dumps(fields)[1:]}'


async def run_generator(functions: AppFunctions, name: str, trigger: str) -> OrchestratorState:
    """Replay an orchestrator in the SDK and return its state.

    Raises:
        ReplayFailed: if the orchestrator doesn't exist, fails outside its generator, or returns a malformed
            state.
    """
    if name not in functions.orchestrators():
        raise ReplayFailed(unknown_function(name, "orchestrator", functions.orchestrators()))
    try:
        state_json = await functions.run_orchestrator(name, trigger)
    except Exception as error:  # app code or the SDK may raise any exception
        _, label, state_json = str(error).partition(OUT_OF_PROC_LABEL)
        if not label:
            raise ReplayFailed(f"Orchestrator function '{name}' failed: {error}") from error
    try:
        return OrchestratorState.model_validate_json(state_json)
    except ValidationError as error:
        raise ReplayFailed(f"Orchestrator function '{name}' returned an unreadable state: {error}") from error


def custom_status_text(state: OrchestratorState, name: str) -> str | None:
    """Return the custom status as JSON text, or None if the orchestrator set none.

    Raises:
        ReplayFailed: if it exceeds the size limit of the host.
    """
    if state.custom_status is None:
        return None
    compact = json.dumps(state.custom_status, ensure_ascii=False, separators=(",", ":"))
    size_kb = len(compact.encode("utf-16-le", "surrogatepass")) // 1024
    if size_kb > _MAX_CUSTOM_STATUS_KB:
        raise ReplayFailed(
            f"Orchestrator function '{name}' failed: The UTF-16 size of the JSON-serialized payload must not "
            f"exceed {_MAX_CUSTOM_STATUS_KB} KB. The current payload size is {size_kb} KB."
        )
    return json.dumps(state.custom_status)
