"""Tests for conversation summaries: extractive, bounded and in order, whatever the turns contain."""

from html import escape

from local.model_server.embedding.service import EmbeddingService
from local.model_server.summaries import MAX_WORDS, summarise_conversation
from tests.unit.model_server.conftest import request

WORDS = [f"{first}{second}" for first in ("blu", "gre", "tal", "ste") for second in "abcdefghij"]


def summary_of(embedder: EmbeddingService, previous: str, *turns: tuple[str, str]) -> str:
    turn_markup = "".join(f'<turn role="{role}">{escape(text, quote=False)}</turn>' for role, text in turns)
    message = (
        f"<previous_summary>{escape(previous)}</previous_summary>\n<conversation>{turn_markup}</conversation>"
    )
    return str(summarise_conversation(request(message), embedder)["summary"])


def test_each_question_is_kept_with_the_beginning_of_its_answer(embedder: EmbeddingService) -> None:
    summary = summary_of(
        embedder,
        "They began with valves.",
        ("user", "How heavy is the <X200>?"),
        ("assistant", "It weighs 12 kg. It is blue."),
        ("user", "And the X300?"),
        ("assistant", "(no answer)"),
    )
    assert summary == (
        "They began with valves. Asked: How heavy is the <X200>? Answered: It weighs 12 kg. "
        "Asked: And the X300? Answered: (no answer)"
    )


def test_however_long_the_conversation_the_summary_is_bounded_and_keeps_what_is_new(
    embedder: EmbeddingService,
) -> None:
    old = " ".join(
        f"Sentence {number} says something about {word} valves." for number, word in enumerate(WORDS)
    )
    turns = [
        turn
        for number in range(12)
        for turn in (
            ("user", f"What of part {number}? " + "word " * 30),
            ("assistant", f"Part {number} is " + "long " * 90 + "."),
        )
    ]
    summary = summary_of(embedder, old, *turns)
    assert len(summary.split()) <= MAX_WORDS
    assert "part 11" in summary
    short = summary_of(embedder, old, turns[0], turns[1])
    assert len(short.split()) <= MAX_WORDS
    assert "part 0" in short
    assert 3 < short.count("Sentence") < 40


def test_nothing_said_is_nothing_summarised(embedder: EmbeddingService) -> None:
    assert summary_of(embedder, "") == ""
