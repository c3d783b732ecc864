"""Handlers for PassageScores and PassageGrades. Relevance is the share of the question's topic words that a
passage contains.
"""

from pydantic import JsonValue

from local.model_server.embedding.service import EmbeddingService
from local.model_server.prompt_reader import element_text, read_passages
from local.model_server.protocol.requests import ChatRequest
from local.model_server.text.words import stems_of, topic_stems

LEAST_RELEVANT = 0.3  # minimum share of the topic words in a relevant passage; unmeasured
BEST_SCORE = 10


def score_passages(request: ChatRequest, _: EmbeddingService) -> dict[str, JsonValue]:
    """Return {"scores": [{"number", "score"}]}, with a relevance score from 0 to 10 for each passage."""
    judged = _closeness(request.last_user_message.text)
    return {"scores": [{"number": number, "score": round(BEST_SCORE * value)} for number, value in judged]}


def grade_passages(request: ChatRequest, _: EmbeddingService) -> dict[str, JsonValue]:
    """Return {"grades": [{"number", "relevant"}]}, with a Boolean grade for each passage."""
    judged = _closeness(request.last_user_message.text)
    return {"grades": [{"number": number, "relevant": value >= LEAST_RELEVANT} for number, value in judged]}


def _closeness(message: str) -> list[tuple[int, float]]:
    """Return (number, share) of each passage, where `share` is the share of the question's topic words that
    the passage contains.
    """
    topic = {*topic_stems(element_text(message, "question") or "")} or {""}
    candidates = [(one.number, f"{one.document} {one.heading} {one.text}") for one in read_passages(message)]
    return [(number, len(topic & set(stems_of(text))) / len(topic)) for number, text in candidates]
