"""The embedding client against the model server."""

import math

import pytest

from shared.platform.calls import model_endpoint
from shared.platform.errors import CallTimeoutError, ConfigurationError, DependencyError, RateLimitError
from shared.platform.language_models.embeddings import BATCH_TEXTS, OpenAIEmbedder
from shared.platform.language_models.models import CallLimits
from shared.wiring import Connections
from tests.fakes.services import fake_settings
from tests.servers import ModelServer

pytestmark = pytest.mark.contract

LIMITS = CallLimits(timeout_s=60)
ENDPOINT = model_endpoint(fake_settings())


def embedder(
    connections: Connections, server: ModelServer, knobs: str = "", dimensions: int | None = None
) -> OpenAIEmbedder:
    return OpenAIEmbedder(
        connections.model,
        f"{server.embedding_model}{knobs}",
        dimensions or server.embedding_dimensions,
        ENDPOINT,
    )


async def test_texts_of_several_batches_come_back_in_order(
    to_models: Connections, model_server: ModelServer
) -> None:
    model = embedder(to_models, model_server)
    texts = [f"valve {n}" for n in range(BATCH_TEXTS + 6)]
    vectors = await model.embed(texts, LIMITS)
    assert len(vectors) == len(texts)
    for position in (0, BATCH_TEXTS - 1, BATCH_TEXTS, len(texts) - 1):
        alone = (await model.embed([texts[position]], LIMITS))[0]
        assert vectors[position] == pytest.approx(alone, abs=1e-5)


async def test_a_vector_has_the_length_that_was_set_and_length_one(
    to_models: Connections, model_server: ModelServer
) -> None:
    model = embedder(to_models, model_server)
    vector = (await model.embed(["The relief valve opens at twelve bar."], LIMITS))[0]
    assert len(vector) == model.dimensions
    assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-4)


async def test_no_texts_need_no_call(to_models: Connections, model_server: ModelServer) -> None:
    assert await embedder(to_models, model_server, "@fail=500").embed([], LIMITS) == []


async def test_other_dimensions_than_set_name_the_setting(
    to_models: Connections, model_server: ModelServer
) -> None:
    with pytest.raises(ConfigurationError, match="EMBEDDING_DIMENSIONS is 7"):
        await embedder(to_models, model_server, dimensions=7).embed(["valve"], LIMITS)


async def test_a_batch_that_fails_once_is_tried_again(
    to_models: Connections, model_server: ModelServer
) -> None:
    assert await embedder(to_models, model_server, "@fail=429:1,retry_after=0").embed(["valve"], LIMITS)


@pytest.mark.parametrize(
    ("knobs", "error", "timeout_s"),
    [
        ("@fail=429", RateLimitError, 60),
        ("@garbage=content", DependencyError, 60),
        ("@stall=0", CallTimeoutError, 1.5),
    ],
)
async def test_a_failing_batch_fails_the_call_with_its_own_error(
    to_models: Connections,
    model_server: ModelServer,
    knobs: str,
    error: type[DependencyError],
    timeout_s: float,
) -> None:
    with pytest.raises(error):
        await embedder(to_models, model_server, knobs).embed(
            ["valve"] * 130, CallLimits(timeout_s=timeout_s, max_retries=0)
        )


async def test_an_unknown_model_points_to_its_setting(
    to_models: Connections, model_server: ModelServer
) -> None:
    model = OpenAIEmbedder(to_models.model, "embedding-nobody", 384, ENDPOINT)
    with pytest.raises(ConfigurationError) as unknown:
        await model.embed(["valve"], LIMITS)
    assert "EMBEDDING_MODEL" in unknown.value.hints[0]
