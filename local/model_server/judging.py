"""PassageScores, PassageGrades, RepairedQuotations: passages judged by words and meaning.

closeness = 0.6 * best cosine of a passage's windows + 0.4 * share of the question's topic words in it; with
hashing, whose cosines say little, the words alone.
"""

import re
from collections.abc import Sequence
from html import unescape

from pydantic import JsonValue

from local.model_server.embedding.service import EmbeddingService
from local.model_server.prompt_reader import NumberedPassage, element_text, read_documents, read_passages
from local.model_server.protocol.requests import ChatRequest
from local.model_server.text.passages import passages_of
from local.model_server.text.ranking import Ranked, rank_passages
from local.model_server.text.words import stem, stems_of, topic_words, words_of

COSINE_WEIGHT = 0.6
COVERAGE_WEIGHT = 0.4
LEAST_RELEVANT = 0.3  # see docs/internals/model-server.md for what it keeps and drops
BEST_SCORE = 10
WINDOW_WORDS = 150  # what MiniLM reads at once
STEP_WORDS = 120
MIN_COSINE = 0.55  # of a quotation with its claim; two sentences on one matter lie above 0.6; unmeasured
MIN_SHARED_WORDS = 0.6  # of the claim's topic words, where the cosine says little
_CLAIM = re.compile(r'<claim number="(\d+)" doc_id="([^"]*)">(.*?)</claim>', re.DOTALL)


def score_passages(request: ChatRequest, embedder: EmbeddingService) -> dict[str, JsonValue]:
    """{"scores": [{"number", "score"}]}, one for each passage, 0-10."""
    judged = _closeness(request.last_user_message.text, embedder)
    scores = ((number, round(BEST_SCORE * min(max(value, 0.0), 1.0))) for number, value in judged)
    return {"scores": [{"number": number, "score": score} for number, score in scores]}


def grade_passages(request: ChatRequest, embedder: EmbeddingService) -> dict[str, JsonValue]:
    """{"grades": [{"number", "relevant"}]}, one for each passage."""
    judged = _closeness(request.last_user_message.text, embedder)
    return {"grades": [{"number": number, "relevant": value >= LEAST_RELEVANT} for number, value in judged]}


def repair_quotes(request: ChatRequest, embedder: EmbeddingService) -> dict[str, JsonValue]:
    """{"quotations": [{"number", "doc_id", "quote": the document's best sentence, or None}]}.

    A sentence that lacks one of the claim's numbers does not support it.
    """
    message = request.last_user_message.text
    documents = read_documents(message)
    repaired: list[JsonValue] = []
    for number, escaped, claim in _CLAIM.findall(message):
        said, doc_id = element_text(claim, "statement") or "", unescape(escaped)
        ranked = rank_passages(
            said, passages_of([one for one in documents if one.doc_id == doc_id]), embedder
        )
        proofs = (item.passage.quote for item in ranked if _supports(said, item, embedder))
        repaired.append({"number": int(number), "doc_id": doc_id, "quote": next(proofs, None)})
    return {"quotations": repaired}


def _supports(claim: str, item: Ranked, embedder: EmbeddingService) -> bool:
    numbers, held = (
        {word for word in words_of(one) if word[0].isdigit()} for one in (claim, item.passage.quote)
    )
    is_near = embedder.understands_meaning and item.cosine >= MIN_COSINE
    return numbers <= held and (is_near or _coverage(claim, item.passage.quote) >= MIN_SHARED_WORDS)


def _closeness(message: str, embedder: EmbeddingService) -> list[tuple[int, float]]:
    question = element_text(message, "question") or ""
    passages = read_passages(message)
    coverage = [_coverage(question, f"{one.document} {one.heading} {one.text}") for one in passages]
    values = coverage
    if embedder.understands_meaning and question:
        cosines = _best_cosines(question, passages, embedder)
        pairs = zip(cosines, coverage, strict=True)
        values = [COSINE_WEIGHT * cosine + COVERAGE_WEIGHT * share for cosine, share in pairs]
    return [(passage.number, value) for passage, value in zip(passages, values, strict=True)]


def _best_cosines(
    question: str, passages: Sequence[NumberedPassage], embedder: EmbeddingService
) -> list[float]:
    """The best of each passage's windows: a long passage may hold the answer at its end."""
    windows = [(place, window) for place, passage in enumerate(passages) for window in _windows(passage)]
    vectors = embedder.embed([question, *(text for _, text in windows)])
    best = [0.0] * len(passages)
    for (place, _), cosine in zip(windows, vectors[1:] @ vectors[0], strict=True):
        best[place] = max(best[place], float(cosine))
    return best


def _windows(passage: NumberedPassage) -> list[str]:
    words = passage.text.split()
    starts = range(0, max(len(words) - (WINDOW_WORDS - STEP_WORDS), 1), STEP_WORDS)
    return [f"{passage.heading} {' '.join(words[start : start + WINDOW_WORDS])}".strip() for start in starts]


def _coverage(question: str, text: str) -> float:
    wanted = {stem(word) for word in topic_words(question)} or {stem(word) for word in words_of(question)}
    return len(wanted & set(stems_of(text))) / len(wanted) if wanted else 0.0
