"""Descriptions of when a run sends its events. `make docs` writes them to docs/events-and-errors.md."""

from collections.abc import Mapping
from typing import NamedTuple

from shared.runs import events
from shared.runs.events import RunEvent

COMMON_FIELDS = frozenset(RunEvent.model_fields) | {"state"}
"""Fields of all events, which the page describes once."""


class SentEvent(NamedTuple):
    """When an event is sent, and notes on its fields."""

    when: str
    notes: Mapping[str, str] = {}


EVENTS: Mapping[type[RunEvent], SentEvent] = {
    events.ThoughtEvent: SentEvent(
        "the agent announces what it will do", {"code": "missing if a model wrote `text`"}
    ),
    events.ActionEvent: SentEvent(
        "the question is classified, its documents are looked up, or tools are called"
    ),
    events.ToolStartedEvent: SentEvent("a tool is called"),
    events.ToolResultEvent: SentEvent("a tool call has finished"),
    events.AskUserEvent: SentEvent(
        "a clarifying question",
        {"options": "each with `number` and `title`; documents also with `doc_id`, `filename` and `date`"},
    ),
    events.TokenEvent: SentEvent("a piece of the answer"),
    events.CitationEvent: SentEvent(
        "a quotation was verified, or not found (`verified` false, `quote` empty)",
        {
            "kind": "`quote`; `metadata`: the document's record; `web`: an external page; `table`: "
            "[computed](internals/decisions/0058-computed-is-not-verified.md)",
            "tables": "sources of a computed citation",
            "fetched_at": "time at which `final_url` was fetched",
        },
    ),
    events.StatusEvent: SentEvent("progress; `state` is one of the values below"),
    events.CompleteEvent: SentEvent("the answer is stored; always last"),
    events.ErrorEvent: SentEvent("the run failed or was cancelled; always last"),
}

STATES: Mapping[type[RunEvent], SentEvent] = {
    events.AcceptedStatus: SentEvent("the question is stored"),
    events.StepStatus: SentEvent("a step starts or restarts"),
    events.DiscardedStatus: SentEvent("a step is discarded"),
    events.ResumedStatus: SentEvent("a lost run continues"),
    events.TodoListStatus: SentEvent("the plan was made or changed"),
    events.AnsweredStatus: SentEvent(
        "a clarifying question was answered, or timed out",
        {"words": "if the reply matches none of the options"},
    ),
    events.WarningStatus: SentEvent("a problem, described in the question's language"),
    events.DelegationStatus: SentEvent("the decision whether to use sub-agents"),
    events.SubagentStatus: SentEvent(
        "a sub-agent has made progress", {"phase": "`started`, `turn`, `artifact`, `failed`, `ended`"}
    ),
}
