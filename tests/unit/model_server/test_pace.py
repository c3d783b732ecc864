"""Paces of hosted models: how long a reply waits, and what hidden reasoning leaves of it."""

import pytest

from local.model_server.knobs import PACES, Knobs, paced, parse_knobs
from local.model_server.protocol.requests import ChatRequest, Message


def request(effort: str | None = None, limit: int | None = None) -> ChatRequest:
    return ChatRequest(messages=(Message(role="user"),), reasoning_effort=effort, max_completion_tokens=limit)


@pytest.mark.parametrize(
    ("pace", "effort", "first_ms", "hidden"),
    [
        ("gpt-4.1", "medium", 700, 0),
        ("gpt-5-mini", "none", 900, 0),
        ("gpt-5-mini", "minimal", 900, 0),
        ("gpt-5-mini", "low", 900 + 1667, 200),
        ("gpt-5-mini", None, 900 + 6667, 800),
        ("first-word", None, 500, 0),
    ],
)
def test_hidden_tokens_take_their_time(pace: str, effort: str | None, first_ms: int, hidden: int) -> None:
    knobs = paced(parse_knobs(f"pace={pace}"), request(effort))
    assert (knobs.ttft, knobs.tps, knobs.hidden) == (first_ms, PACES[pace].tokens_per_s, hidden)


def test_no_more_is_thought_than_the_limit_allows() -> None:
    assert paced(parse_knobs("pace=gpt-5-mini"), request(limit=300)).hidden == 300


def test_without_a_pace_nothing_changes() -> None:
    assert paced(Knobs(), request()) == Knobs()
