"""Traces in the inputs of orchestrations: passed unchanged to activities, and one level down to children."""

from typing import Any

import pytest

from orchestrations.ingest_document import ingest_document
from orchestrations.run_agent import answer_question, run_sub_agent
from shared.answering.steps import StepResult
from shared.ingestion.models import Closed, IngestReplyEnvelope
from shared.platform.tracing import TraceLink, link_below
from tests.replay.harness import Reply, Run, Script, simulate
from tests.replay.history import START
from tests.replay.test_answer_question import GOOD
from tests.replay.test_delegated_answers import chosen, done
from tests.replay.test_ingest_document import GOOD as INGESTED
from tests.replay.test_run_sub_agent import DONE, GO_ON, INPUT, TASK, encode_result

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
FOUND = link_below(PARENT, "instance-1", START)
assert FOUND is not None
LINK = FOUND
TRACE = LINK.model_dump(mode="json")


def ask(orchestration_input: dict[str, Any], children: int = 0) -> Run:
    observations = iter([*([chosen(children)] if children else []), GOOD["turn"]])

    def perform_step(step: Any) -> object:
        kind = step["action"]["kind"]
        observation = next(observations) if kind == "turn" else GOOD[kind]
        return StepResult(observation=observation).model_dump(mode="json")

    script = Script(activities={"perform_step": perform_step}, children={"run_sub_agent": done})
    return simulate(answer_question, orchestration_input, script)


def ingest(orchestration_input: dict[str, Any], **replies: object) -> Run:
    def answering(name: str) -> Any:
        return lambda _: (
            replies.get(name) or IngestReplyEnvelope(reply=INGESTED[name]).model_dump(mode="json")
        )

    activities = {name: answering(name) for name in INGESTED}
    return simulate(
        ingest_document, orchestration_input, Script(activities={**activities, "record_span": lambda _: {}})
    )


def test_every_step_of_a_question_knows_its_place_and_nothing_else_differs() -> None:
    traced, plain = ask({"run_id": "instance-1", "trace": TRACE}), ask({"run_id": "instance-1"})
    assert [payload["trace"] for _, payload in traced.calls] == [TRACE] * len(traced.calls)
    bare = [(name, {**payload, "trace": None}) for name, payload in traced.calls]
    assert bare == [(name, {**payload, "trace": None}) for name, payload in plain.calls]
    assert (traced.output, traced.custom_status) == (plain.output, plain.custom_status)


def test_without_a_trace_no_payload_speaks_of_one() -> None:
    assert all("trace" not in payload for _, payload in ask({"run_id": "instance-1"}, children=2).calls)


def test_children_are_one_level_below() -> None:
    run = ask({"run_id": "instance-1", "trace": TRACE}, children=2)
    links = [
        TraceLink.model_validate(payload["trace"]) for name, payload in run.calls if name == "run_sub_agent"
    ]
    assert [link.parent for link in links] == [LINK.own, LINK.own]
    expected = [link_below(LINK.own, f"instance-1:s002c{index}", START) for index in range(2)]
    assert [link.own for link in links] == [link.own for link in expected if link]


def test_a_child_hands_its_own_place_to_its_turns() -> None:
    answers = iter([encode_result(TASK), encode_result(GO_ON), encode_result(DONE)])
    script = Script(activities={"perform_step": lambda _: next(answers)})
    run = simulate(run_sub_agent, {**INPUT, "trace": TRACE}, script)
    assert [payload["trace"] for _, payload in run.calls] == [TRACE] * 3
    assert run.output["status"] == "done"


def test_an_ingestion_records_its_span_when_it_has_ended() -> None:
    run = ingest({"blob_name": "a.pdf", "trace": TRACE})
    names = [name for name, _ in run.calls]
    assert names[-1] == "record_span"
    assert names.count("record_span") == 1
    assert run.calls[-1][1] == {
        "name": "ingest_document",
        "instance_id": "instance-1",
        "status": "ready",
        "trace": TRACE,
    }
    plain = ingest({"blob_name": "a.pdf"})
    assert [name for name, _ in plain.calls] == names[:-1]
    assert run.output == plain.output


def test_one_that_begins_anew_keeps_its_place_and_records_nothing_yet() -> None:
    again = IngestReplyEnvelope(reply=Closed(again=True)).model_dump(mode="json")
    run = ingest({"blob_name": "a.pdf", "trace": TRACE}, close_document=again)
    assert run.continued_with["trace"] == TRACE
    assert "record_span" not in [name for name, _ in run.calls]


@pytest.mark.parametrize("reply", [Reply(failure="the worker died"), Reply({}, after_s=5)])
def test_a_span_that_cannot_be_recorded_costs_the_ingestion_nothing(reply: Reply) -> None:
    def answering(name: str) -> Any:
        return lambda _: IngestReplyEnvelope(reply=INGESTED[name]).model_dump(mode="json")

    activities = {name: answering(name) for name in INGESTED}
    script = Script(activities={**activities, "record_span": lambda _: reply})
    run = simulate(ingest_document, {"blob_name": "a.pdf", "trace": TRACE}, script)
    assert run.output["outcome"] == "ready"
    assert run.left_open == []
