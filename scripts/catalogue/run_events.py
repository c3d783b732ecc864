"""When the events of a run are sent. `make docs` writes them into docs/events-and-errors.md."""

from collections.abc import Mapping
from typing import NamedTuple

from shared.runs import events
from shared.runs.events import RunEvent

COMMON_FIELDS = frozenset(RunEvent.model_fields) | {"state"}
"""Fields that the page explains once."""


class SentEvent(NamedTuple):
    """When an event is sent; notes on its fields."""

    when: str
    notes: Mapping[str, str] = {}


EVENTS: Mapping[type[RunEvent], SentEvent] = {
    events.ThoughtEvent: SentEvent(
        "the agent announces what it will do", {"code": "absent where a model wrote `text`"}
    ),
    events.ActionEvent: SentEvent(
        "the question is classified, its documents are looked up, or tools are called"
    ),
    events.ToolStartedEvent: SentEvent("a tool is called"),
    events.ToolResultEvent: SentEvent("it has finished"),
    events.AskUserEvent: SentEvent(
        "a clarifying question",
        {"options": "each `number`, `title`, and of a document `doc_id`, `filename`, `date`"},
    ),
    events.TokenEvent: SentEvent("a piece of the answer"),
    events.CitationEvent: SentEvent(
        "a quotation was found, or not (`verified` false, `quote` empty)",
        {
            "kind": "`quote`; `metadata`: the document's record; `web`: a page from outside; `table`: "
            "[computed](internals/decisions/0058-computed-is-not-verified.md)",
            "tables": "what a computed citation was computed from",
            "fetched_at": "when the page at `final_url` was read",
        },
    ),
    events.StatusEvent: SentEvent("progress; its `state` is one of those below"),
    events.CompleteEvent: SentEvent("the answer is stored; always last"),
    events.ErrorEvent: SentEvent("the run failed or was cancelled; always last"),
}

STATES: Mapping[type[RunEvent], SentEvent] = {
    events.AcceptedStatus: SentEvent("the question is stored"),
    events.StepStatus: SentEvent("a step starts, or starts over"),
    events.DiscardedStatus: SentEvent("a step is given up"),
    events.ResumedStatus: SentEvent("a lost run continues"),
    events.TodoListStatus: SentEvent("the plan, as it stands"),
    events.AnsweredStatus: SentEvent(
        "a clarifying question was answered, or timed out",
        {"words": "where the reply names none of the options"},
    ),
    events.WarningStatus: SentEvent("something went wrong, in the question's language"),
    events.DelegationStatus: SentEvent("whether sub-agents are used"),
    events.SubagentStatus: SentEvent(
        "a sub-agent's progress", {"phase": "`started`, `turn`, `artifact`, `failed`, `ended`"}
    ),
}
