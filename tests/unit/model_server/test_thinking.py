"""Tests for hidden reasoning and the number of its tokens."""

import pytest

from local.model_server.knobs import Knobs, hidden_tokens
from local.model_server.protocol.requests import ChatRequest, Message


def request(effort: str | None = None, limit: int | None = None) -> ChatRequest:
    return ChatRequest(messages=(Message(role="user"),), reasoning_effort=effort, max_completion_tokens=limit)


@pytest.mark.parametrize(
    ("effort", "tokens"), [("none", 0), ("minimal", 0), ("low", 200), (None, 800), ("high", 2000)]
)
def test_more_effort_is_more_hidden_tokens(effort: str | None, tokens: int) -> None:
    assert hidden_tokens(Knobs(thinks=True), request(effort)) == tokens
    assert hidden_tokens(Knobs(), request(effort)) == 0


def test_no_more_is_thought_than_the_limit_allows() -> None:
    assert hidden_tokens(Knobs(thinks=True), request(limit=300)) == 300
