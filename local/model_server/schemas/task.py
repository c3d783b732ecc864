"""One structured-output request, as every handler gets it."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from local.model_server.embedding.service import EmbeddingService
from local.model_server.protocol.requests import Message


@dataclass(frozen=True)
class SchemaTask:
    """One request.

    Attributes:
        name, schema: of the output, as requested.
        message: the last one of the user.
        messages: all of the conversation, for those who need more than the last.
        output_limit: in tokens; None = none.
    """

    name: str
    schema: dict[str, JsonValue]
    message: str
    embedder: EmbeddingService
    messages: Sequence[Message] = ()
    output_limit: int | None = None
