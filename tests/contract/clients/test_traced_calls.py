"""Spans of calls by the real SDKs: named by operation, without names, URLs or text, and with propagated
context.
"""

import re
from collections.abc import AsyncIterator

import pytest

from shared.platform import tracing
from shared.platform.azure_search import AzureSearchIndex
from shared.platform.blobs import BlobStore
from shared.platform.calls import model_endpoint
from shared.platform.errors import DependencyError, NotFoundError
from shared.platform.language_models.chat_model import OpenAIChatModel
from shared.platform.language_models.embeddings import OpenAIEmbedder
from shared.platform.language_models.models import CallLimits, Message
from shared.platform.language_models.traced import TracedChatModel, TracedEmbedder
from shared.platform.queues import TaskQueues
from shared.platform.search import SearchRequest
from shared.platform.tables import Table
from shared.runs.blob_run_log import BlobRunLog
from shared.runs.events import ThoughtEvent
from shared.tools.web_search import SearxngWebSearch
from shared.wiring import Connections
from tests.contract.agents.completions import words
from tests.contract.clients.conftest import NOWHERE, Connect
from tests.contract.clients.scripted_server import Answer, ScriptedServer
from tests.fakes.services import fake_settings
from tests.servers import unique_name
from tests.tracing_fixture import Recorded, recorded, start_recording

__all__ = ["recorded", "start_recording"]
pytestmark = pytest.mark.contract

LIMITS = CallLimits(timeout_s=60, max_retries=0)
ENDPOINT = model_endpoint(fake_settings())
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def pieces() -> AsyncIterator[bytes]:
    yield b"SECRET"


def describe_spans(recorded: Recorded) -> str:
    return str([(span.name, dict(span.attributes or {}), span.events) for span in recorded.all])


async def test_storage_is_spans_by_what_was_done(to_storage: Connections, recorded: Recorded) -> None:
    container, run_id = unique_name("container"), unique_name("run")
    blobs, log = BlobStore(to_storage.blobs), BlobRunLog(to_storage.blobs, container)
    table = Table(to_storage.tables, unique_name("table").replace("-", "x"))
    await table.ensure()
    await blobs.ensure_containers([container])
    queues = TaskQueues(to_storage.queues)
    await queues.ensure_queues([container])
    with tracing.root("step", "server"):
        await blobs.write(container, "SECRET.pdf", b"SECRET")
        await blobs.write_stream(container, "SECRET-2.pdf", pieces())
        assert await blobs.read(container, "SECRET.pdf") == b"SECRET"
        assert len([blob async for blob in blobs.list_blobs(container, "SECRET")]) == 2
        with pytest.raises(NotFoundError):
            await blobs.read(container, "SECRET-none")
        await log.create(run_id)
        await log.append(run_id, [ThoughtEvent(text="SECRET")])
        await table.insert({"PartitionKey": "SECRET", "RowKey": "SECRET", "text": "SECRET"})
        assert len([row async for row in table.query("PartitionKey eq 'SECRET'")]) == 1
        await queues.send(container, "SECRET")
    names = ["write", "write", "properties", "read", "list", "read", "create", "append"]
    assert recorded.names == [
        *(f"blob storage {name}" for name in names),
        *("table storage insert", "table storage query", "queue storage send", "step"),
    ]
    assert "SECRET" not in describe_spans(recorded)
    assert container not in describe_spans(recorded)
    assert "127.0.0.1" not in describe_spans(recorded)


async def test_a_service_that_is_down_is_a_failed_span(connect: Connect, recorded: Recorded) -> None:
    index = AzureSearchIndex(
        connect(azure_search_endpoint=NOWHERE).search_index("blocks"), "blocks", timeout_s=0.3, key_field="id"
    )
    with pytest.raises(DependencyError), tracing.root("step", "server"):
        await index.search(SearchRequest(text="SECRET", top=1))
    span = recorded.one("search blocks")
    assert not span.status.is_ok
    assert recorded.attributes("search blocks")["error.type"] in ("NetworkError", "TimeoutError")
    assert "SECRET" not in describe_spans(recorded)


async def test_search_and_models_are_handed_the_trace(connect: Connect, recorded: Recorded) -> None:
    data = b'[{"object": "embedding", "index": 0, "embedding": [1, 0]}]'
    vector = b'{"object": "list", "model": "e", "data": %b}' % data
    answers = (Answer(body=b'{"value": []}'), words("ANSWER"), Answer(body=vector))
    async with ScriptedServer(*answers) as server:
        to = connect(
            azure_search_endpoint=server.endpoint,
            azure_search_api_key="key",
            openai_base_url=f"{server.endpoint}/v1",
            openai_api_key="key",
        )
        index = AzureSearchIndex(to.search_index("blocks"), "blocks", timeout_s=60, key_field="id")
        chat = TracedChatModel(OpenAIChatModel(to.model, "gpt", ENDPOINT), "gpt", "openai")
        embedder = TracedEmbedder(OpenAIEmbedder(to.model, "e", 2, ENDPOINT), "e", "openai")
        with tracing.root("step", "server", PARENT):
            await index.search(SearchRequest(text="QUESTION", top=1))
            assert [
                piece async for piece in chat.stream_turn([Message(role="user", text="QUESTION")], (), LIMITS)
            ]
            await embedder.embed(["QUESTION"], LIMITS)
    by_name = {span.name: span for span in recorded.all}
    trace_headers = [re.search(r"traceparent: (\S+)", head, re.IGNORECASE) for head in server.heads]
    assert [header and header[1].split("-")[1] for header in trace_headers] == [PARENT.split("-")[1]] * 3
    ids = [header[1].split("-")[2] for header in trace_headers if header]
    contexts = [by_name[name].context for name in ("search blocks", "chat gpt", "embeddings e")]
    assert ids == [f"{context.span_id:016x}" for context in contexts if context]
    usage = recorded.attributes("chat gpt")
    assert (usage["gen_ai.usage.input_tokens"], usage["gen_ai.usage.output_tokens"]) == (50, 10)
    assert not any(word in describe_spans(recorded) for word in ("QUESTION", "ANSWER"))


async def test_the_search_of_the_web_learns_nothing_of_the_trace(
    connect: Connect, recorded: Recorded
) -> None:
    async with ScriptedServer(Answer(body=b'{"results": []}')) as server:
        to = connect(web_search_url=f"{server.endpoint}/search")
        with tracing.root("step", "server", PARENT):
            await SearxngWebSearch(to.web_search, f"{server.endpoint}/search").search("QUESTION", 3, LIMITS)
    assert "traceparent" not in server.heads[0].lower()
    assert recorded.names == ["web search query", "step"]
    assert "QUESTION" not in describe_spans(recorded)


async def test_without_a_trace_nothing_is_handed_on(connect: Connect, recorded: Recorded) -> None:
    async with ScriptedServer(Answer(body=b'{"value": []}')) as server:
        to = connect(azure_search_endpoint=server.endpoint, azure_search_api_key="key")
        await AzureSearchIndex(to.search_index("blocks"), "blocks", timeout_s=60, key_field="id").search(
            SearchRequest(text="QUESTION", top=1)
        )
    assert "traceparent" not in server.heads[0].lower()
    assert recorded.names == []
