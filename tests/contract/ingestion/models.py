"""Models that count their calls, for tests in which all other parts of an ingestion are real."""

import hashlib
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING

from shared.platform.language_models.models import CallLimits, Embedder, Prompt, StructuredOutput
from shared.retrieval.models import DocumentMetadata
from shared.wiring import Services
from tests.fakes.models import NoConversations
from tests.fakes.services import fake_services, fake_settings

if TYPE_CHECKING:
    from shared.platform.errors import GroundworkError

DIMENSIONS = 8
METADATA = DocumentMetadata(
    title="Pump manual",
    author="Groundwork",
    document_type="manual",
    department="maintenance",
    date="2024",
    language="en",
    tags=("pump", "pressure", "safety"),
    summary_brief="How to run the pump.",
    summary_standard="How to run the pump, and what its limits are.",
)


class CountingChatModel(NoConversations):
    """A chat model that describes every document in the same way. The errors in `failures` are raised first,
    one per call.
    """

    def __init__(self) -> None:
        self.prompts: list[Prompt] = []
        self.failures: list[GroundworkError] = []

    async def parse(
        self, prompt: Prompt, output: type[StructuredOutput], limits: CallLimits
    ) -> StructuredOutput:
        self.prompts.append(prompt)
        if self.failures:
            raise self.failures.pop(0)
        return output.model_validate(METADATA.model_dump())

    def stream(self, prompt: Prompt, limits: CallLimits) -> AsyncGenerator[str, None]:
        raise AssertionError("ingestion streams nothing")


class CountingVisionModel(NoConversations):
    """A vision model that returns a different caption for each picture. The errors in `failures` are raised
    first, one per call.
    """

    def __init__(self) -> None:
        self.prompts: list[Prompt] = []
        self.failures: list[GroundworkError] = []

    async def parse(
        self, prompt: Prompt, output: type[StructuredOutput], limits: CallLimits
    ) -> StructuredOutput:
        raise AssertionError("captions are plain text")

    async def stream(self, prompt: Prompt, limits: CallLimits) -> AsyncGenerator[str, None]:
        self.prompts.append(prompt)
        if self.failures:
            raise self.failures.pop(0)
        picture = hashlib.sha256((prompt.picture_url or "").encode()).hexdigest()
        yield "A drawing "
        yield f"known as {picture[:8]}."


class CountingEmbedder(Embedder):
    """An embedder that derives vectors from a hash of the text. The errors in `failures` are raised first,
    one per call.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.failures: list[GroundworkError] = []

    @property
    def dimensions(self) -> int:
        return DIMENSIONS

    async def embed(self, texts: Sequence[str], limits: CallLimits) -> list[tuple[float, ...]]:
        if self.failures:
            raise self.failures.pop(0)
        self.texts.extend(texts)
        return [
            tuple(byte / 255 for byte in hashlib.sha256(text.encode()).digest()[:DIMENSIONS])
            for text in texts
        ]


def counting_services() -> Services:
    """Return services in memory with counting models."""
    return fake_services(
        settings=fake_settings(subagents_enabled=False, embedding_dimensions=DIMENSIONS, max_block_tokens=60),
        chat_model=CountingChatModel(),
        vision_model=CountingVisionModel(),
        embedder=CountingEmbedder(),
    )
