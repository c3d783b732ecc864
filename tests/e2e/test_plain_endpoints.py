"""Endpoints with little of the OpenAI protocol, and Azure's shapes, with the whole app and no configuration.

The endpoint rejects schemas, JSON mode, tools, the system role, usage in streams and the newer name of the
token limit. Tests ingest a document and ask questions with it, one of them with a sub-agent.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from local.run_all.stack import LocalStack
from samples.acl import ANNA
from tests.e2e.stack_client import client_of, drop, wait_until_ended
from tests.e2e.sub_agents.hosts import MODEL, answer_of, ask, configured, decision_of
from tests.servers import ModelServer
from tests.unit.ingestion.figure_files import FigureMaker

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

LACKING = "json_schema+json_object+tools+stream_options+max_completion_tokens+system"
FACT = "The tide wheel of Rye turns 14 times a minute."
CAPTION = "Turns of the tide wheel by the hour"


@pytest.fixture(scope="module")
def plain(stack: LocalStack, model_server: ModelServer) -> Iterator[LocalStack]:
    """Yield the stack with such an endpoint, reached as an Azure OpenAI resource."""
    endpoint = {
        "OPENAI_BASE_URL": "",
        "OPENAI_API_KEY": "",
        "AZURE_OPENAI_ENDPOINT": model_server.base_url.removesuffix("/v1"),
        "AZURE_OPENAI_API_KEY": model_server.api_key,
    }
    with configured(stack, CHAT_MODEL=f"{MODEL}@without={LACKING},fenced,think", **endpoint) as running:
        yield running


@pytest.fixture(scope="module")
def document(plain: LocalStack, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return a page with a figure, ingested with that endpoint."""
    maker = FigureMaker()
    maker.page()
    maker.heading("The tide wheel")
    maker.paragraph(f"{FACT} It is greased every spring by the miller and his two sons.")
    maker.chart(caption=f"Figure 1: {CAPTION}")
    folder: Path = tmp_path_factory.mktemp("plain")
    drop(plain, "tide-wheel.pdf", maker.write(folder / "tide-wheel.pdf").read_bytes())
    return wait_until_ended(plain, "tide-wheel.pdf")


def test_a_document_is_described_and_its_figure_captioned_by_the_model(
    plain: LocalStack, document: dict[str, Any]
) -> None:
    wait_until_ended(plain, "tide-wheel.pdf")  # a second event for the file may have restarted its ingestion
    with client_of(plain, ANNA) as anna:
        details = anna.get(f"/documents/{document['doc_id']}").json()
    assert (details["status"], details["warnings"]) == ("ready", [])
    assert "tide wheel" in details["summary_brief"]


def test_a_question_is_answered_with_proof_and_figure(plain: LocalStack, document: dict[str, Any]) -> None:
    answer = answer_of(ask(plain, "How many times a minute does the tide wheel of Rye turn?"))
    assert FACT in answer["text"]
    assert [(one["filename"], one["verified"]) for one in answer["citations"]] == [("tide-wheel.pdf", True)]
    assert [figure["caption"] for figure in answer["figures"]], "the model's caption is in the index"
    assert "think" not in answer["text"]
    assert answer["warnings"] == []


def test_a_sub_agent_calls_tools_and_reports_in_words(plain: LocalStack) -> None:
    followed = ask(plain, "Compare the revenue in the annual report 2023 and the annual report 2024.")
    assert decision_of(followed)["selected_profile"] == "comparator"
    answer = answer_of(followed)
    assert {view["status"] for view in answer["sub_agents"]} == {"done"}
    assert len({citation["filename"] for citation in answer["citations"]}) == 2
    assert all(citation["verified"] for citation in answer["citations"])


def test_each_refusal_was_met_once_by_the_process(
    plain: LocalStack, model_server: ModelServer, document: dict[str, Any]
) -> None:
    headers = {"api-key": model_server.api_key}
    before = httpx.get(f"{model_server.base_url}/stats", headers=headers, timeout=60).json()
    ask(plain, "How often is the tide wheel of Rye greased?")
    after = httpx.get(f"{model_server.base_url}/stats", headers=headers, timeout=60).json()
    chat_requests = after["requests"]["chat"] - before["requests"]["chat"]
    accepted_calls = after["calls"]["count"] - before["calls"]["count"]
    assert chat_requests == accepted_calls > 0
