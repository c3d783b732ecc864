"""All services that wiring builds, used together with all local servers."""

import pytest

from shared.platform.language_models.models import CallLimits, Prompt
from shared.platform.names import CONTAINERS, WORK
from shared.platform.search import SearchRequest, VectorQuery
from shared.runs.events import TokenEvent
from shared.wiring import build_services
from tests.contract.clients.test_search_index import definition
from tests.fakes.services import fake_settings
from tests.servers import Azurite, ModelServer, SearchServer, unique_name

pytestmark = pytest.mark.contract


async def test_a_block_is_embedded_written_and_found_again(
    azurite: Azurite, search_server: SearchServer, model_server: ModelServer
) -> None:
    settings = fake_settings(
        azure_search_endpoint=search_server.endpoint,
        azure_search_api_key=search_server.api_key,
        azure_search_content_index=unique_name("wired"),
        DocumentsStorage=azurite.connection_string,
        openai_base_url=model_server.base_url,
        openai_api_key=model_server.api_key,
        chat_model=model_server.chat_model,
        embedding_model=model_server.embedding_model,
        embedding_dimensions=model_server.embedding_dimensions,
    )
    services = build_services(settings)
    limits = CallLimits(timeout_s=30)
    await services.blobs.ensure_containers(CONTAINERS)
    await services.search_admin.ensure_index(
        definition(settings.search.content_index, settings.models.embedding_dimensions)
    )
    text = "The relief valve opens at twelve bar."
    (vector,) = await services.embedder.embed([text], limits)
    await services.content_index.upload([{"block_id": "b1", "content": text, "content_vector": vector}])
    nearest = VectorQuery(vector=vector, field="content_vector", k=1)
    page = await services.content_index.search(SearchRequest(vectors=(nearest,)))
    assert page.rows[0]["@search.score"] == pytest.approx(1.0, abs=1e-3)

    await services.run_log.create("r1")
    prompt = Prompt(name="answer", system="Answer.", user="Who are you?")
    async for piece in services.vision_model.stream(prompt, limits):
        await services.run_log.append("r1", [TokenEvent(text=piece)])
    assert (await services.run_log.read("r1")).lines
    assert await services.runs.get("r1") is None
    assert await services.documents.get("d1") is None
    await services.blobs.write(WORK, "a.json", b"{}")
    await services.close()
