"""One structured-output request, as every handler gets it."""

from dataclasses import dataclass

from pydantic import JsonValue

from local.model_server.embedding.service import EmbeddingService


@dataclass(frozen=True)
class SchemaTask:
    """The schema's name and body as requested, the user message, and the embedding service."""

    name: str
    schema: dict[str, JsonValue]
    message: str
    embedder: EmbeddingService
