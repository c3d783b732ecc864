"""Runs whose search service is slow, hangs or sheds load: the real SDK against a scripted server."""

import json
from dataclasses import replace

import pytest

from shared.platform.azure_search import AzureSearchIndex
from shared.runs.models import RunAnswer
from shared.wiring import Services
from tests.contract.clients.conftest import Connect
from tests.contract.clients.scripted_server import FOR_EVER_S, Answer, ScriptedServer
from tests.fakes.services import fake_settings
from tests.unit.answering.faulty_writers import CITED, answer_of
from tests.world import Model, ask, corpus_services, plan

pytestmark = pytest.mark.contract

BLOCK = {
    "@search.score": 5.0,
    "block_id": "manual-1",
    "doc_id": "manual",
    "filename": "manual.pdf",
    "block_type": "text",
    "page_number": 1,
    "content": "The pump runs at 15 bar.",
}
FOUND = Answer(body=json.dumps({"value": [BLOCK]}).encode())
BUSY = Answer("503 Service Unavailable", b"", {"retry-after-ms": "50"})
HANGING = Answer(delay_s=FOR_EVER_S)


async def services_with(server: ScriptedServer, connect: Connect, retrieval_timeout_s: float) -> Services:
    connection = connect(azure_search_endpoint=server.endpoint).search_index("blocks")
    index = AzureSearchIndex(connection, "blocks", timeout_s=30, key_field="block_id")
    settings = fake_settings(retrieval_timeout_s=retrieval_timeout_s, subagents_enabled=False)
    services = await corpus_services(Model(plan(search_queries=()), answer=CITED), settings=settings)
    return replace(services, content_index=index)


async def answered(services: Services) -> RunAnswer:
    return answer_of(*(await ask(services)))


async def test_a_query_that_hangs_is_asked_again_on_another_connection(connect: Connect) -> None:
    async with ScriptedServer(HANGING, FOUND) as server:
        answer = await answered(await services_with(server, connect, 2.0))
        assert answer.text.startswith("It runs at 15 bar.")
        assert answer.warnings == ()
        assert len(server.requests) > 2


async def test_a_service_that_sheds_load_is_asked_again(connect: Connect) -> None:
    async with ScriptedServer(BUSY, BUSY, FOUND) as server:
        answer = await answered(await services_with(server, connect, 20.0))
        assert answer.text.startswith("It runs at 15 bar.")


async def test_a_service_that_is_slow_is_waited_for(connect: Connect) -> None:
    slow = Answer(body=FOUND.body, delay_s=0.2)
    async with ScriptedServer(slow) as server:
        answer = await answered(await services_with(server, connect, 20.0))
        assert answer.text.startswith("It runs at 15 bar.")
        assert answer.warnings == ()


async def test_a_service_that_never_answers_fails_the_run(connect: Connect) -> None:
    async with ScriptedServer(HANGING) as server:
        view, events = await ask(await services_with(server, connect, 0.5))
        assert (view.status, view.error_type) == ("failed", "TimeoutError")
        assert "in two attempts" in events[-1].data["message"]
        assert len(server.requests) == 2
