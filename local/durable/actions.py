"""Models of the actions that an orchestrator requests, in the JSON format of azure-functions-durable.

Source: azure.durable_functions.models.actions and OrchestratorState of version 1.7.0.
"""

from enum import IntEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel


class ActionType(IntEnum):
    CALL_ACTIVITY = 0
    CALL_ACTIVITY_WITH_RETRY = 1
    CALL_SUB_ORCHESTRATOR = 2
    CALL_SUB_ORCHESTRATOR_WITH_RETRY = 3
    CONTINUE_AS_NEW = 4
    CREATE_TIMER = 5
    WAIT_FOR_EXTERNAL_EVENT = 6
    CALL_ENTITY = 7
    CALL_HTTP = 8
    SIGNAL_ENTITY = 9
    SCHEDULED_SIGNAL_ENTITY = 10
    WHEN_ANY = 11
    WHEN_ALL = 12


class _Wire(BaseModel):
    # Fields added by a later SDK are ignored; rejecting them would fail the instance.
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, extra="ignore")


class RetryOptions(_Wire):
    """The retry policy of an activity. SDK 1.7.0 sends no backoff coefficient, so all intervals are equal."""

    first_retry_interval_in_milliseconds: int = Field(gt=0)
    max_number_of_attempts: int = Field(gt=0)


class CallActivity(_Wire):
    action_type: Literal[ActionType.CALL_ACTIVITY]
    function_name: str
    input: str


class CallActivityWithRetry(_Wire):
    action_type: Literal[ActionType.CALL_ACTIVITY_WITH_RETRY]
    function_name: str
    input: str
    retry_options: RetryOptions


class CallSubOrchestrator(_Wire):
    action_type: Literal[ActionType.CALL_SUB_ORCHESTRATOR]
    function_name: str
    input: str
    instance_id: str | None = None
    version: str | None = None


class ContinueAsNew(_Wire):
    action_type: Literal[ActionType.CONTINUE_AS_NEW]
    input: str


class CreateTimer(_Wire):
    action_type: Literal[ActionType.CREATE_TIMER]
    fire_at: str
    is_canceled: bool = False


class WaitForExternalEvent(_Wire):
    action_type: Literal[ActionType.WAIT_FOR_EXTERNAL_EVENT]
    external_event_name: str


class Unsupported(_Wire):
    """An action that this executor doesn't support: retried sub-orchestrations, entities and durable HTTP
    calls.
    """

    action_type: Literal[
        ActionType.CALL_SUB_ORCHESTRATOR_WITH_RETRY,
        ActionType.CALL_ENTITY,
        ActionType.CALL_HTTP,
        ActionType.SIGNAL_ENTITY,
        ActionType.SCHEDULED_SIGNAL_ENTITY,
    ]


class WhenAny(_Wire):
    action_type: Literal[ActionType.WHEN_ANY]
    compound_actions: list["Action"]


class WhenAll(_Wire):
    action_type: Literal[ActionType.WHEN_ALL]
    compound_actions: list["Action"]


Action = Annotated[
    CallActivity
    | CallActivityWithRetry
    | CallSubOrchestrator
    | ContinueAsNew
    | CreateTimer
    | WaitForExternalEvent
    | Unsupported
    | WhenAny
    | WhenAll,
    Field(discriminator="action_type"),
]


class OrchestratorState(_Wire):
    """The result of one replay of an orchestrator.

    actions: all actions since the start, not only new ones; the outer list has length 1.
    error: message of the exception that the generator raised.
    """

    is_done: bool
    actions: list[list[Action]] = Field(min_length=1, max_length=1)
    output: JsonValue = None
    error: str | None = None
    custom_status: JsonValue = None


WhenAny.model_rebuild()
WhenAll.model_rebuild()
OrchestratorState.model_rebuild()
