"""The real embedding service, created once per run, and prompts as an application writes them."""

from collections.abc import Iterator
from html import escape

import pytest

from local.model_server.embedding.service import EmbeddingService
from local.model_server.protocol.requests import ChatRequest


@pytest.fixture(scope="session")
def embedder() -> Iterator[EmbeddingService]:
    service = EmbeddingService()
    yield service
    service.close()


def block(text: str, **attributes: str) -> str:
    """Return a <block> element with its text escaped."""
    attribute_text = "".join(
        f' {name}="{escape(value)}"' for name, value in {"type": "text", **attributes}.items()
    )
    return f"<block{attribute_text}>{escape(text, quote=False)}</block>"


def document(doc_id: str, *inside: str, **attributes: str) -> str:
    """Return a <document> element around blocks or a summary."""
    attribute_text = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())
    return f'<document doc_id="{doc_id}"{attribute_text}>{"".join(inside)}</document>'


def prompt(question: str, query_type: str, *documents: str) -> str:
    """Return the user message that requests an answer."""
    return (
        f"<question>{escape(question)}</question>\n<query_type>{query_type}</query_type>\n"
        f"<documents>{''.join(documents)}</documents>\n<output_rules>Cite.</output_rules>"
    )


def request(message: str) -> ChatRequest:
    """Return a chat request with one user message."""
    return ChatRequest.model_validate({"messages": [{"role": "user", "content": message}]})
