"""One trace from a request to each call, with a running host and a receiver of traces;
no span contains text.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from local.run_all.stack import LocalStack
from samples.acl import ANNA
from shared.platform.telemetry import pseudonym
from tests.e2e.stack_client import HANG_GUARD_S, drop, eventually, pdf_of, wait_until_ended
from tests.e2e.sub_agents.hosts import configured
from tests.otlp_receiver import ReceivedSpan, Receiver, otlp_receiver

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300), pytest.mark.attack("secrets in logs")]

FILE = "zanthoxylum-inventory.pdf"
FACT = "The zanthoxylum orchard holds 4711 trees, counted in spring."
QUESTION = "How many trees does the zanthoxylum orchard hold? Compare it with the annual report."
SECRETS = ("zanthoxylum", "4711", "orchard", "annual-report", "anna", "sig=", "http://127")


@dataclass(frozen=True)
class Traced:
    """A host that exports to a receiver, and a question asked of it."""

    stack: LocalStack
    receiver: Receiver
    trace_id: str
    run_id: str
    answered: httpx.Response

    @property
    def spans(self) -> list[ReceivedSpan]:
        return self.receiver.of_trace(self.trace_id)

    @property
    def orphans(self) -> list[str]:
        """Return the names of spans whose parent is missing."""
        ids = {span.span_id for span in self.spans}
        return [span.name for span in self.spans if span.parent_id not in ids]

    def one(self, name: str) -> ReceivedSpan:
        """Return the first span whose name begins with `name`."""
        return next(span for span in self.spans if span.name.startswith(name))

    def ancestors(self, span: ReceivedSpan) -> list[str]:
        """Return the names from the span's parent up to the root."""
        by_id = {one.span_id: one for one in self.receiver.spans}
        names = []
        while (parent := by_id.get(span.parent_id)) is not None:
            names.append(parent.name)
            span = parent
        return names


def ask(stack: LocalStack, trace_id: str, **body: Any) -> httpx.Response:
    headers = {
        "Authorization": f"Bearer {stack.token(ANNA)}",
        "traceparent": f"00-{trace_id}-00f067aa0ba902b7-01",
    }
    payload = {"question": QUESTION, **body}
    return httpx.post(f"{stack.base_url}/api/chat", json=payload, headers=headers, timeout=HANG_GUARD_S)


@pytest.fixture(scope="module")
def traced(stack: LocalStack) -> Iterator[Traced]:
    with otlp_receiver() as receiver, configured(stack, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url):
        drop(stack, FILE, pdf_of("Inventory", FACT))
        assert wait_until_ended(stack, FILE)["status"] == "ready"
        trace_id = "5b8aa5a2d2c872e8321cf37308d69df2"
        answered = ask(stack, trace_id, deep=True)
        traced = Traced(stack, receiver, trace_id, answered.headers["x-run-id"], answered)
        # Spans are exported when they end, and these two end last.
        eventually(lambda: {"answer_question", "POST /api/chat"} <= {span.name for span in traced.spans})
        yield traced


def test_a_question_is_one_trace_from_its_caller_to_each_call(traced: Traced) -> None:
    assert traced.answered.status_code == 200
    assert traced.one("POST /api/chat").parent_id == "00f067aa0ba902b7"
    assert traced.ancestors(traced.one("answer_question")) == ["POST /api/chat"]
    for kind in ("prepare", "turn", "commit_answer"):
        assert traced.ancestors(traced.one(f"perform_step {kind}")) == ["answer_question", "POST /api/chat"]
    for call in ("search content-blocks", "chat ", "embeddings ", "blob storage append"):
        step = traced.ancestors(traced.one(call))[-3:]
        assert step[-2:] == ["answer_question", "POST /api/chat"] or step[-1:] == ["POST /api/chat"], call


def test_sub_agents_are_in_the_trace_with_their_turns_tools_and_calls(traced: Traced) -> None:
    child = traced.one("run_sub_agent ")
    assert traced.ancestors(child) == ["answer_question", "POST /api/chat"]
    assert child.attributes["gen_ai.operation.name"] == "invoke_agent"
    turn = next(span for span in traced.spans if span.name == "perform_step sub_agent_turn")
    assert traced.ancestors(turn)[0].startswith("run_sub_agent ")
    below = {span.name for span in traced.spans if turn.name in traced.ancestors(span)}
    assert any(name.startswith("chat ") for name in below)
    assert any(name.startswith("search ") for name in below)


def test_every_span_has_its_parent_and_lies_within_the_request(traced: Traced) -> None:
    eventually(lambda: traced.orphans == ["POST /api/chat"])
    request = traced.one("POST /api/chat")
    assert all(span.started >= request.started - 0.01 for span in traced.spans)
    run = traced.one("answer_question")
    assert request.started <= run.started <= request.ended
    assert run.started <= run.ended


def test_calls_of_models_say_how_much_and_which(traced: Traced) -> None:
    chat = [span.attributes for span in traced.spans if span.name.startswith("chat ")]
    assert chat
    for attributes in chat:
        assert attributes["gen_ai.request.model"]
        assert attributes["gen_ai.usage.input_tokens"] > 0
        assert attributes["gen_ai.usage.output_tokens"] > 0


def test_an_ingestion_is_one_trace_from_its_event(traced: Traced) -> None:
    def ingested() -> list[ReceivedSpan] | None:
        """Return the spans of one complete ingestion, or None if there is none yet. The first event may
        belong to another file.
        """
        for end in [span for span in traced.receiver.spans if span.name == "ingest_document"]:
            spans = traced.receiver.of_trace(end.trace_id)
            if any(span.name.startswith("upload content-blocks") for span in spans):
                return spans
        return None

    accepted = next(span for span in eventually(ingested) if span.name == "ingest accept")
    # A document that had to wait is started by the one before it, which may be a deletion, or by the watch.
    starters = {"blob_created", "blob_deleted", "start_ingestion", "watch_ingestions"}
    assert traced.ancestors(accepted)[-1] in starters
    assert traced.ancestors(accepted)[:-1] == ["ingest_document"]


def test_no_span_holds_a_word_of_documents_questions_names_or_addresses(traced: Traced) -> None:
    assert "4711" in traced.answered.text
    span_text = json.dumps(
        [
            [span.name, dict(span.attributes), [list(event) for event in span.events]]
            for span in traced.receiver.spans
        ]
    )
    assert [secret for secret in SECRETS if secret in span_text.lower()] == []
    assert pseudonym(ANNA.user_id) in span_text


def test_lines_of_the_log_name_trace_run_thread_and_pseudonym(traced: Traced) -> None:
    text = (traced.stack.data / "functions-host.log").read_text(encoding="utf-8", errors="replace")
    lines = [json.loads(line) for line in re.findall(r"\{\"[^\n]*\}", text) if traced.trace_id in line]
    assert lines
    assert {line["run_id"] for line in lines} == {traced.run_id}
    required_fields = {"thread_id", "user_id", "span_id"}
    searches = [line for line in lines if line["event"] == "search.answered"]
    assert searches
    assert all(
        line.keys() >= required_fields and line["user_id"] == pseudonym(ANNA.user_id) for line in searches
    )
    eventually(lambda: {line["span_id"] for line in searches} <= {span.span_id for span in traced.spans})


@pytest.mark.nightly
def test_a_receiver_that_is_gone_harms_nothing(traced: Traced) -> None:
    traced.stack.kill_host()
    traced.stack.start_host({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
    trace_id = "6b8aa5a2d2c872e8321cf37308d69df3"
    answered = ask(traced.stack, trace_id, stream=False)
    assert answered.status_code == 200
    assert "4711" in answered.json()["answer"]["text"]
    assert traced.receiver.of_trace(trace_id) == []
