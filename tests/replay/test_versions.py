"""Two versions of the app and one set of orchestrations: what either wrote, the other understands.

A step that an older version scheduled may be performed by this one. After a way back to this version it reads
what a newer one wrote: fields that it does not know are left out.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from orchestrations.answer_question import answer_question
from orchestrations.ingest_document import ingest_document
from orchestrations.reply_in_channel import reply_in_channel
from orchestrations.run_sub_agent import run_sub_agent
from orchestrations.summarize_documents import summarize_document, summarize_documents
from shared.answering.steps import StepInput
from shared.documents.state import DocumentState
from shared.ingestion.models import CloseRequest, IngestStep
from shared.platform.models import Model
from shared.subagents.models import SubagentStart, TurnInput
from shared.summaries.models import DocumentStart, SummaryStep
from shared.teams.models import ReplyStep
from tests.replay.history import START, EventType
from tests.replay.recording import recorded_orchestrator, replay_recording

HISTORIES = Path(__file__).parent.parent / "histories"
RECORDINGS = sorted(HISTORIES.rglob("*.json"))
ORCHESTRATORS = {
    "answer_question": answer_question,
    "ingest_document": ingest_document,
    "reply_in_channel": reply_in_channel,
    "run_sub_agent": run_sub_agent,
    "summarize_document": summarize_document,
    "summarize_documents": summarize_documents,
}
_INGESTS = (
    *("accept_document", "parse_document", "describe_document", "plan_document", "write_blocks"),
    *("finish_document", "ingest_small_document"),
)
_SUMMARIZES = ("open_summary_document", "read_summary_windows", "reduce_summary_document", "reduce_summary")
MEANT: dict[str, type[Model]] = {
    "perform_step": StepInput,
    "take_sub_agent_turn": TurnInput,
    "reply_step": ReplyStep,
    "close_document": CloseRequest,
    **dict.fromkeys(_INGESTS, IngestStep),
    **dict.fromkeys(_SUMMARIZES, SummaryStep),
    "run_sub_agent": SubagentStart,
    "summarize_document": DocumentStart,
}
PLAIN = ("terminate_instances", "record_span")  # no model: they read their fields by name
NEWER = {"of_a_newer_version": {"a": 1}}


def scheduled(value: Any) -> Iterator[tuple[str, Any]]:
    """Name and input of every activity and child in a state's actions."""
    if isinstance(value, dict):
        if "functionName" in value:
            yield str(value["functionName"]), json.loads(value["input"])
        for inner in value.values():
            yield from scheduled(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from scheduled(inner)


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_step_that_another_version_scheduled_is_understood(path: Path) -> None:
    last = json.loads(path.read_text(encoding="utf-8"))["episodes"][-1]["state"]["actions"]
    steps = [(name, given) for name, given in scheduled(last) if name not in PLAIN]
    assert steps
    for name, given in steps:
        assert MEANT[name].from_payload({**given, **NEWER}) == MEANT[name].from_payload(given)


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_results_of_a_newer_version_lead_the_same_way(path: Path, tmp_path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    results = [one for one in document["history"] if one["EventType"] in _ENDS]
    for one in results:
        one["Result"] = _with_more(one["Result"])
    assert results
    newer = tmp_path / path.name
    newer.write_text(json.dumps(document), encoding="utf-8")
    replay_recording(newer, ORCHESTRATORS[recorded_orchestrator(path)], to_the_letter=False)


_ENDS = (EventType.TASK_COMPLETED, EventType.CHILD_COMPLETED)


def _with_more(result: str) -> str:
    """A result as a newer version gives it: one field more, in itself and in each object in it."""

    def more(value: Any) -> Any:
        if isinstance(value, dict):
            return {**{name: more(inner) for name, inner in value.items()}, **NEWER}
        return [more(inner) for inner in value] if isinstance(value, list) else value

    return json.dumps(more(json.loads(result)))


def test_what_a_newer_version_kept_is_read_and_what_a_caller_sends_is_not() -> None:
    state = DocumentState(doc_id="d" * 24, blob_name="a.md", filename="a.md", updated_at=START)
    kept = json.dumps({**state.model_dump(mode="json"), "wanted_rights": {"acl": ["anna"], **NEWER}, **NEWER})
    assert DocumentState.from_kept(kept).wanted_rights.acl == ("anna",)
    with pytest.raises(ValidationError):
        DocumentState.model_validate_json(kept)
