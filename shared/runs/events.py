"""The events of a run and their serialisation as lines of the journal. Pure.

A line is `{"name":"TOKEN","data":{"step":3,"text":"..."}}`. Names of public events are upper case. Internal
events have lower-case names, are never sent to readers and have no number. `EventLog` sets `step`, `child`
and `profile`. docs/events-and-errors.md documents the public events.
"""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar, Literal

from pydantic import field_serializer, model_validator

from shared.evidence.models import Citation, Omittable
from shared.platform.errors import DependencyError
from shared.platform.models import Model
from shared.runs.log_lines import TERMINAL_EVENTS, EventName, InternalName, LogSlice
from shared.runs.models import Choice, ClarificationOption, ProfileName, ReasonCode, RunAnswer
from shared.runs.plan import QueryIntent, QueryType, TodoItem


class RunEvent(Model):
    """Base class of all events. Public events are numbered from 1 in journal order.

    Attributes:
        name: sent in lower case as the SSE event name.
        step: the run's step that the event belongs to.
        child, profile: index and profile of the sub-agent that sent it; None = the step itself.
    """

    name: ClassVar[EventName | InternalName]

    step: int = 0
    child: Omittable[int] = None
    profile: Omittable[str] = None

    @property
    def data(self) -> dict[str, Any]:
        """The event's fields as plain JSON, as sent to readers."""
        return self.model_dump(mode="json")

    def to_line(self) -> str:
        """Return the event's line in the run log, without a line end."""
        return f'{{"name":"{self.name}","data":{self.model_dump_json()}}}'


ThoughtCode = Literal[
    "files",
    "planning",
    "writing",
    "writing_from_descriptions",
    "nothing_found",
    "chosen",
    "all_meant",
    "unanswered",
]
"""Codes of upcoming actions, for clients that show their own text. A model's thoughts have no code."""


class ThoughtEvent(RunEvent):
    """A sentence about what the agent does next, written by the app in English or by the model."""

    name = "THOUGHT"

    text: str
    code: Omittable[ThoughtCode] = None
    passages: Omittable[int] = None
    documents: Omittable[int] = None
    filenames: Omittable[tuple[str, ...]] = None


class ActionEvent(RunEvent):
    """The classification of the question, a completed document lookup, or tool calls that are about to
    start.
    """

    name = "ACTION"

    kind: str
    query_type: Omittable[QueryType] = None
    intent: Omittable[QueryIntent] = None
    documents: Omittable[int] = None
    options: Omittable[int] = None
    tools: Omittable[tuple[str, ...]] = None


class TimedEvent(RunEvent):
    """Base class of events with a timestamp. The event log sets `at` when it writes the event."""

    at: Omittable[datetime] = None


class ToolStartedEvent(TimedEvent):
    """The start of a tool call, with the arguments chosen by the model."""

    name = "TOOL_STARTED"

    tool: str
    arguments: dict[str, Any]


class ToolResultEvent(TimedEvent):
    """The result of a tool call, or its rejection."""

    name = "TOOL_RESULT"

    tool: str
    success: bool
    result_count: Omittable[int] = None
    top_score: Omittable[float] = None
    sql: Omittable[str] = None
    error_type: Omittable[str] = None
    error: Omittable[str] = None


class AskUserEvent(RunEvent):
    """A clarifying question to the run's owner. Its options are plain text if another agent asks it."""

    name = "ASK_USER"

    question: str
    options: tuple[ClarificationOption, ...] | tuple[str, ...]
    expires_at: Omittable[datetime] = None


class TokenEvent(RunEvent):
    """A piece of the answer's text."""

    name = "TOKEN"

    text: str


class CitationEvent(Citation, RunEvent):
    """A quotation that was found word for word in a document."""

    name = "CITATION"

    @classmethod
    def of(cls, citation: Citation, step: int = 0) -> "CitationEvent":
        """Return the event that shows a citation to the readers of a run."""
        return cls(**({"step": step} if step else {}), **citation.model_dump())

    @property
    def citation(self) -> Citation:
        """The citation without the fields that belong to the event."""
        return Citation(**self.model_dump(include=set(Citation.model_fields)))


class CompleteEvent(RunEvent):
    """The last event of a successful run, with the stored answer. `answer` omits `run_id`, which the event
    already has.
    """

    name = "COMPLETE"

    run_id: str
    thread_id: str
    answer: RunAnswer
    todo: tuple[TodoItem, ...] = ()

    @field_serializer("answer")
    def _without_run_id(self, answer: RunAnswer) -> dict[str, Any]:
        return answer.model_dump(mode="json", exclude={"run_id"})

    @model_validator(mode="before")
    @classmethod
    def _with_run_id(cls, data: dict[str, Any]) -> dict[str, Any]:
        if isinstance(answer := data.get("answer"), dict):
            return {**data, "answer": {"run_id": data.get("run_id"), **answer}}
        return data


class ErrorEvent(RunEvent):
    """The last event of a run that failed or was cancelled."""

    name = "ERROR"

    type: str
    message: str
    hints: tuple[str, ...] = ()


class StatusEvent(RunEvent):
    """Base class of progress events. Each `state` has its own subclass."""

    name = "STATUS"


class AcceptedStatus(StatusEvent):
    """The run's first event, with its budgets.

    It has no timestamp, so a repeated request creates the same event.
    """

    state: Literal["accepted"] = "accepted"
    run_id: str
    thread_id: str
    latency_budget_ms: int
    token_budget: int


class StepStatus(StatusEvent):
    """The start of an attempt at a step. `attempt` is a unique id of the attempt."""

    state: Literal["started", "restarted"]
    attempt: str
    at: Omittable[datetime] = None


class ResumedStatus(StatusEvent):
    """Resumption of a run after a host failure. Its time budget starts again at `at`."""

    state: Literal["resumed"] = "resumed"
    at: datetime


class TodoListStatus(StatusEvent):
    """The current todo list. `state` is `done` when the plan is complete and `progress` for later updates."""

    state: Literal["done", "progress"]
    todo: tuple[TodoItem, ...]


class AnsweredStatus(TimedEvent, StatusEvent):
    """The options that the owner chose, by number. The list is empty if the clarification timed out.

    Attributes:
        words: the owner's reply if it matches no option.
    """

    state: Literal["answered"] = "answered"
    choice: tuple[int, ...]
    timed_out: bool
    words: Omittable[str] = None

    @classmethod
    def of(cls, choice: Choice) -> "AnsweredStatus":
        """Return the event that reports the options chosen in a reply."""
        return cls(choice=choice.numbers, timed_out=not choice.said, words=choice.extra_words or None)


class DelegationStatus(TimedEvent, StatusEvent):
    """The decision whether to use sub-agents, with the reasons that are also logged
    (docs/internals/delegation.md).

    Attributes:
        latency_budget_ms, token_budget: the sub-agent's budgets; 0 if none is started.
        policy_version: version of the rules and thresholds; equal versions decide equally.
        reasons: the reason codes in words.
    """

    state: Literal["delegation"] = "delegation"
    event: Literal["delegation_policy_decision"] = "delegation_policy_decision"
    request_id: str
    decision: Literal["delegate", "no_delegate", "defer"]
    reason_codes: tuple[ReasonCode, ...]
    selected_profile: ProfileName | None
    latency_budget_ms: int
    token_budget: int
    policy_version: str
    reasons: tuple[str, ...]


class SubagentStatus(TimedEvent, StatusEvent):
    """A sub-agent's progress and usage."""

    state: Literal["sub_agent"] = "sub_agent"
    phase: Literal["started", "turn", "artifact", "failed", "ended"]
    turn: int
    passages: int
    findings: int
    proved: int
    tokens: Omittable[int] = None
    cost_usd: Omittable[float] = None
    error_type: Omittable[str] = None
    status: Omittable[str] = None


class WarningStatus(StatusEvent):
    """A warning about a problem that did not prevent the answer, in the language of the question."""

    state: Literal["warning"] = "warning"
    text: str


class DiscardedStatus(StatusEvent):
    """An instruction to readers to discard all tokens and citations of the step."""

    state: Literal["discarded"] = "discarded"
    error_type: Omittable[str] = None


class ValueLine(RunEvent):
    """Internal: a value that a step stores for later steps.

    Attributes:
        of: the step whose result contains the value; may be an earlier one.
        inline, path: the value, or the name of its blob if it is large.
    """

    name = "value"

    of: int
    part: str
    inline: Omittable[dict[str, Any]] = None
    path: Omittable[str] = None


class AttemptLine(RunEvent):
    """Internal: the start of an attempt at a child's turn.

    Attributes:
        attempt: its unique id.
        turn: the turn, of a child that takes several at once; None = the child's only turn at that time.
    """

    name = "attempt"

    attempt: str
    turn: Omittable[int] = None


class DoneLine(RunEvent):
    """Internal: the completion of a step, or of an attempt at a sub-agent's turn, after which it may not
    write any lines.

    Attributes:
        result: the step's return value, as JSON.
        turn, tries: the sub-agent's turn, and the number of earlier failed attempts at it.
    """

    name = "done"

    result: dict[str, Any]
    turn: Omittable[int] = None
    tries: Omittable[int] = None


class ReplyLine(RunEvent):
    """Internal: the reply to the clarification of `step`, or its timeout. Only the first reply counts."""

    name = "reply"

    choice: Choice
    at: datetime


class ReservedLine(RunEvent):
    """Internal: the total number of tokens that an attempt has reserved, including its next model call.

    Attributes:
        turn: as in `AttemptLine`.
    """

    name = "reserved"

    tokens: int
    turn: Omittable[int] = None


class UnknownEvent(RunEvent):
    """A public event written by a newer version of the app, which can happen during a rolling upgrade.

    Its line is passed on to readers unchanged. It counts as a `status`, because readers skip a status whose
    state they don't know.
    """

    name = "STATUS"

    line: str

    @property
    def data(self) -> dict[str, Any]:
        """The fields of the event exactly as they were written."""
        return dict(json.loads(self.line)["data"])

    def to_line(self) -> str:
        """Return the original journal line, because this version of the app cannot serialise the event."""
        return self.line


class UnknownEventError(DependencyError):
    """Internal error: the journal contains an internal line written by a newer version of the app.

    The step depends on it, so it can't be skipped. Retrying gives a worker of the newer version the step.
    """

    code = "UnknownEventError"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The log of the run holds a line of the unknown kind {name[:40]!r}.",
            "Finish the upgrade: a newer version of the app wrote it.",
        )


_EVENTS: dict[str, type[RunEvent]] = {
    model.name: model
    for model in (
        ThoughtEvent,
        ActionEvent,
        ToolStartedEvent,
        ToolResultEvent,
        AskUserEvent,
        TokenEvent,
        CitationEvent,
        CompleteEvent,
        ErrorEvent,
        ValueLine,
        AttemptLine,
        DoneLine,
        ReplyLine,
        ReservedLine,
    )
}

_STATUSES: dict[str, type[StatusEvent]] = {
    "accepted": AcceptedStatus,
    "started": StepStatus,
    "restarted": StepStatus,
    "resumed": ResumedStatus,
    "done": TodoListStatus,
    "progress": TodoListStatus,
    "answered": AnsweredStatus,
    "delegation": DelegationStatus,
    "sub_agent": SubagentStatus,
    "warning": WarningStatus,
    "discarded": DiscardedStatus,
}


def parse_event(line: str) -> RunEvent:
    """Parse a line of the journal. A public event of an unknown kind becomes an `UnknownEvent`.

    Raises:
        UnknownEventError: the line is internal and of an unknown kind.
    """
    stored = json.loads(line)
    name, data = stored["name"], stored["data"]
    model = _STATUSES.get(data["state"]) if name == "STATUS" else _EVENTS.get(name)
    if model is not None:
        return model.from_payload(data)
    if not name.isupper():
        raise UnknownEventError(name)
    marks = {field: data[field] for field in ("step", "child", "profile") if field in data}
    return UnknownEvent.model_validate({**marks, "line": line})


def events_of(log_slice: LogSlice) -> list[RunEvent]:
    """Parse all lines of a log slice."""
    return [parse_event(line) for line in log_slice.lines]


def is_terminal(event: RunEvent) -> bool:
    """Return whether this event ends the run."""
    return event.name in TERMINAL_EVENTS


def withdraws_step(event: RunEvent) -> bool:
    """Return whether the event tells readers to discard the tokens and citations of its step."""
    return isinstance(event, DiscardedStatus) or (
        isinstance(event, StepStatus) and event.state == "restarted"
    )


def latest_todo(events: Iterable[RunEvent]) -> tuple[TodoItem, ...]:
    """Return the most recent todo list that is not empty, or () if there is none."""
    lists = [event.todo for event in events if isinstance(event, TodoListStatus | CompleteEvent)]
    return next((todo for todo in reversed(lists) if todo), ())


def warning_events(warnings: Iterable[str]) -> list[WarningStatus]:
    """Return a warning event for each text."""
    return [WarningStatus(text=warning) for warning in warnings]
