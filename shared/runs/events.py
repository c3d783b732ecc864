"""The events of a run: one model per event, and the line that the run log stores of each. Pure.

A line is `{"name":"TOKEN","data":{"step":3,"text":"..."}}`. Names of public events are upper case; a name in
lower case is internal to the app, never sent to readers and not numbered. The event log that writes an event
sets `step`, `child` and `profile`. docs/events-and-errors.md is for their readers.
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
    """One event; its number is its place among the public lines of the journal, counted from 1.

    Attributes:
        name: sent in lower case as the SSE event name.
        step: the step of the run that the event belongs to.
        child, profile: the sub-agent that sent it, by index; None = the step itself.
    """

    name: ClassVar[EventName | InternalName]

    step: int = 0
    child: Omittable[int] = None
    profile: Omittable[str] = None

    @property
    def data(self) -> dict[str, Any]:
        """The event's fields as plain JSON, as readers get them."""
        return self.model_dump(mode="json")

    def to_line(self) -> str:
        """The line that the run log stores, without its line end."""
        return f'{{"name":"{self.name}","data":{self.model_dump_json()}}}'


ThoughtCode = Literal[
    "planning",
    "writing",
    "writing_from_descriptions",
    "nothing_found",
    "chosen",
    "all_meant",
    "unanswered",
]
"""What the agent is about to do, for readers who say it in their own words; a model's own have no code."""


class ThoughtEvent(RunEvent):
    """The agent says what it is about to do, in English or in a model's words."""

    name = "THOUGHT"

    text: str
    code: Omittable[ThoughtCode] = None
    passages: Omittable[int] = None
    documents: Omittable[int] = None
    filenames: Omittable[tuple[str, ...]] = None


class ActionEvent(RunEvent):
    """The question was classified, its documents were looked up, or tools are about to be called."""

    name = "ACTION"

    kind: str
    query_type: Omittable[QueryType] = None
    intent: Omittable[QueryIntent] = None
    documents: Omittable[int] = None
    options: Omittable[int] = None
    tools: Omittable[tuple[str, ...]] = None


class TimedEvent(RunEvent):
    """An event that shows its moment; the event log sets `at` when it writes it."""

    at: Omittable[datetime] = None


class ToolStartedEvent(TimedEvent):
    """A tool is called. A model chose the arguments."""

    name = "TOOL_STARTED"

    tool: str
    arguments: dict[str, Any]


class ToolResultEvent(TimedEvent):
    """A tool has answered, or was refused."""

    name = "TOOL_RESULT"

    tool: str
    success: bool
    result_count: Omittable[int] = None
    top_score: Omittable[float] = None
    sql: Omittable[str] = None
    error_type: Omittable[str] = None
    error: Omittable[str] = None


class AskUserEvent(RunEvent):
    """The run waits for its owner to choose. An agent of the caller's gives its options as text."""

    name = "ASK_USER"

    question: str
    options: tuple[ClarificationOption, ...] | tuple[str, ...]
    expires_at: Omittable[datetime] = None


class TokenEvent(RunEvent):
    """A piece of the answer's text."""

    name = "TOKEN"

    text: str


class CitationEvent(Citation, RunEvent):
    """A quotation was found word by word in a document."""

    name = "CITATION"

    @classmethod
    def of(cls, citation: Citation, step: int = 0) -> "CitationEvent":
        """The event that shows a citation."""
        return cls(**({"step": step} if step else {}), **citation.model_dump())

    @property
    def citation(self) -> Citation:
        """The citation alone."""
        return Citation(**self.model_dump(include=set(Citation.model_fields)))


class CompleteEvent(RunEvent):
    """The answer is stored; always last. `answer` is sent without the run's id, which stands next to it."""

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
    """The run failed or was cancelled; always last."""

    name = "ERROR"

    type: str
    message: str
    hints: tuple[str, ...] = ()


class StatusEvent(RunEvent):
    """Progress; each `state` has a model."""

    name = "STATUS"


class AcceptedStatus(StatusEvent):
    """The run's first event, with its budgets. It has no time: a request that is repeated makes the same."""

    state: Literal["accepted"] = "accepted"
    run_id: str
    thread_id: str
    latency_budget_ms: int
    token_budget: int


class StepStatus(StatusEvent):
    """An attempt at a step begins, at `at`; `attempt` tells it from every other."""

    state: Literal["started", "restarted"]
    attempt: str
    at: Omittable[datetime] = None


class ResumedStatus(StatusEvent):
    """The run continues after its host lost it; its time begins again at `at`."""

    state: Literal["resumed"] = "resumed"
    at: datetime


class TodoListStatus(StatusEvent):
    """The todo list as it stands: with the plan (`done`), or later (`progress`)."""

    state: Literal["done", "progress"]
    todo: tuple[TodoItem, ...]


class AnsweredStatus(TimedEvent, StatusEvent):
    """The owner's choice, by number; none after a timeout.

    Attributes:
        words: the owner's reply where it names none of the options.
    """

    state: Literal["answered"] = "answered"
    choice: tuple[int, ...]
    timed_out: bool
    words: Omittable[str] = None

    @classmethod
    def of(cls, choice: Choice) -> "AnsweredStatus":
        """Return the event that reports a choice."""
        return cls(choice=choice.numbers, timed_out=not choice.said, words=choice.extra_words or None)


class DelegationStatus(TimedEvent, StatusEvent):
    """Whether sub-agents work on the answer, and why: also the log's event (contracts.md, section 4).

    Attributes:
        latency_budget_ms, token_budget: of the sub-agent; 0 when none is started.
        policy_version: of the rules and their thresholds: equal versions decide equally.
        reasons: the codes in words.
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
    """How far a sub-agent is, and what it has taken, in counts."""

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
    """A problem that cost no answer, in the question's language."""

    state: Literal["warning"] = "warning"
    text: str


class DiscardedStatus(StatusEvent):
    """Readers drop the tokens and citations of this step."""

    state: Literal["discarded"] = "discarded"
    error_type: Omittable[str] = None


class ValueLine(RunEvent):
    """Internal: a value that a step keeps for later steps.

    Attributes:
        of: the step whose result it is part of; it may be an earlier one.
        inline, path: the value, or the name of its blob if it is large.
    """

    name = "value"

    of: int
    part: str
    inline: Omittable[dict[str, Any]] = None
    path: Omittable[str] = None


class AttemptLine(RunEvent):
    """Internal: an attempt at a sub-agent's turn begins; `attempt` tells it from every other."""

    name = "attempt"

    attempt: str


class DoneLine(RunEvent):
    """Internal: a step, or a try of a sub-agent's turn, is complete. No line of it follows.

    Attributes:
        result: what the step returned, as JSON.
        turn, tries: of a sub-agent: the turn, and its failed tries before this one.
    """

    name = "done"

    result: dict[str, Any]
    turn: Omittable[int] = None
    tries: Omittable[int] = None


class ReplyLine(RunEvent):
    """Internal: the reply to the clarification of `step`, or that none came in time. The first one counts."""

    name = "reply"

    choice: Choice
    at: datetime


class ReservedLine(RunEvent):
    """Internal: tokens that the model calls of an attempt may have used, the call that follows included."""

    name = "reserved"

    tokens: int


class UnknownEvent(RunEvent):
    """A public event written by a newer version of the app, as happens during a rolling upgrade.

    Its line is passed on to readers unchanged. It counts as a `status`, because readers skip a status whose
    state they don't know.
    """

    name = "STATUS"

    line: str

    @property
    def data(self) -> dict[str, Any]:
        """The event's fields as they were written."""
        return dict(json.loads(self.line)["data"])

    def to_line(self) -> str:
        """Return the line as it was written."""
        return self.line


class UnknownEventError(DependencyError):
    """Internal: the run's log holds an internal line of a newer version.

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
    """Parse a line of the log. A public event of an unknown kind becomes an `UnknownEvent`.

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


def events_of(written: LogSlice) -> list[RunEvent]:
    """The events of a part of a log."""
    return [parse_event(line) for line in written.lines]


def is_terminal(event: RunEvent) -> bool:
    """Whether nothing follows this event."""
    return event.name in TERMINAL_EVENTS


def withdraws_step(event: RunEvent) -> bool:
    """Whether readers drop the tokens and citations that they have of the event's step."""
    return isinstance(event, DiscardedStatus) or (
        isinstance(event, StepStatus) and event.state == "restarted"
    )


def latest_todo(events: Iterable[RunEvent]) -> tuple[TodoItem, ...]:
    """The todo list as it was sent last; empty if it never was."""
    lists = [event.todo for event in events if isinstance(event, TodoListStatus | CompleteEvent)]
    return next((todo for todo in reversed(lists) if todo), ())


def warning_events(warnings: Iterable[str]) -> list[WarningStatus]:
    """What did not go as it should, in words."""
    return [WarningStatus(text=warning) for warning in warnings]
