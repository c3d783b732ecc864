"""An `Embedder` for any OpenAI-compatible endpoint, which sends concurrent batches of texts."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shared.platform.calls import Deadline, Dependency, RateGate, call_within
from shared.platform.concurrency import run_together
from shared.platform.connections import Connection
from shared.platform.errors import ConfigurationError, DependencyError
from shared.platform.language_models.endpoint import model_errors
from shared.platform.language_models.features import FeatureMemory
from shared.platform.language_models.models import CallLimits, Embedder
from shared.platform.language_models.protocol import Feature
from shared.platform.telemetry import get_logger

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types import CreateEmbeddingResponse

MODEL_SETTING = "EMBEDDING_MODEL"
BATCH_TEXTS = 64  # 64 blocks of 500 tokens stay far below Azure OpenAI's limit of 300,000 tokens per request
BATCHES_AT_ONCE = 4  # unmeasured; enough to hide the round trip, few enough for small rate limits

Vector = tuple[float, ...]


class OpenAIEmbedder(Embedder):
    """Client of one embedding model or deployment."""

    def __init__(
        self,
        connection: "Connection[AsyncOpenAI]",
        model: str,
        dimensions: int,
        endpoint: Dependency,
        *,
        memory: FeatureMemory | None = None,
    ) -> None:
        self._connection = connection
        self._model = model
        self._dimensions = dimensions
        self._endpoint = endpoint
        self._memory = memory or FeatureMemory()
        self._is_shortened = False  # whether requests ask for shorter vectors than the model's default
        self._gate = RateGate()

    @property
    def dimensions(self) -> int:
        return self._dimensions

    async def embed(self, texts: Sequence[str], limits: CallLimits) -> list[Vector]:
        """Return one vector per text, in order. `limits` apply to all batches together.

        Raises:
            ConfigurationError: the vectors' length differs from EMBEDDING_DIMENSIONS.
        """
        deadline = Deadline(limits.timeout_s)
        started = time.perf_counter()
        starts = range(0, len(texts), BATCH_TEXTS)

        async def embed_from(start: int) -> list[Vector]:
            batch = texts[start : start + BATCH_TEXTS]
            return await call_within(
                deadline, limits.max_retries, lambda: self._embed_batch(batch, deadline), gate=self._gate
            )

        batches = await run_together(*(embed_from(start) for start in starts), at_once=BATCHES_AT_ONCE)
        get_logger().info(
            "texts.embedded",
            model=self._model,
            result_count=len(texts),
            duration_ms=round((time.perf_counter() - started) * 1000),
        )
        return [vector for batch in batches for vector in batch]

    async def _embed_batch(self, texts: Sequence[str], deadline: Deadline) -> list[Vector]:
        client = await self._connection.opened()
        with model_errors(self._endpoint, MODEL_SETTING):

            async def create_vectors() -> list[Vector]:
                create = client.embeddings.create
                answer, _ = await self._memory.call(
                    create, self._model, lambda features: self._arguments(texts, features), deadline
                )
                return self._vectors(answer, len(texts))

            was_shortened, vectors = self._is_shortened, await create_vectors()
            is_longer = any(len(vector) > self._dimensions for vector in vectors)
            if is_longer and not was_shortened and "dimensions" in self._memory.features:
                self._is_shortened = True
                vectors = await create_vectors()
            return self._of_right_length(vectors)

    def _arguments(
        self, texts: Sequence[str], features: frozenset[Feature]
    ) -> tuple[dict[str, Any], frozenset[Feature]]:
        """Return the arguments of a request, and the protocol features that it uses."""
        arguments: dict[str, Any] = {"input": list(texts)}
        # The SDK requests base64 by default, which takes a quarter of the space and is fast to decode, but
        # some endpoints don't support it.
        if "base64_vectors" not in features:
            arguments["encoding_format"] = "float"
        used: frozenset[Feature] = features & {"base64_vectors"}
        if self._is_shortened and "dimensions" in features:
            arguments["dimensions"] = self._dimensions
            used = used | {"dimensions"}
        return arguments, used

    def _vectors(self, answer: "CreateEmbeddingResponse", expected: int) -> list[Vector]:
        rows = sorted(answer.data, key=lambda row: row.index)
        if len(rows) != expected:
            raise DependencyError(
                f"The number of vectors from {self._endpoint.name} is {len(rows)}, but {expected} are needed."
            )
        return [tuple(row.embedding) for row in rows]

    def _of_right_length(self, vectors: list[Vector]) -> list[Vector]:
        for vector in vectors:
            if len(vector) != self._dimensions:
                raise ConfigurationError(
                    f"EMBEDDING_DIMENSIONS is {self._dimensions}, but {self._model} gives {len(vector)}.",
                    f"Set EMBEDDING_DIMENSIONS={len(vector)}, and use indexes made for it.",
                )
        return vectors
