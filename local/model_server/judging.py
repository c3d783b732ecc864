"""PassageScores, PassageGrades, RepairedQuotations: passages judged by the question's topic words in them."""

import re
from html import unescape

from pydantic import JsonValue

from local.model_server.embedding.service import EmbeddingService
from local.model_server.prompt_reader import element_text, read_documents, read_passages
from local.model_server.protocol.requests import ChatRequest
from local.model_server.text.passages import passages_of
from local.model_server.text.ranking import Ranked, rank_passages
from local.model_server.text.words import stem, stems_of, topic_words, words_of

LEAST_RELEVANT = 0.3  # share of the topic words; unmeasured
BEST_SCORE = 10
MIN_COSINE = 0.55  # of a quotation with its claim; two sentences on one matter lie above 0.6; unmeasured
MIN_SHARED_WORDS = 0.6  # of the claim's topic words, where the cosine says little
_CLAIM = re.compile(r'<claim number="(\d+)" doc_id="([^"]*)">(.*?)</claim>', re.DOTALL)


def score_passages(request: ChatRequest, _: EmbeddingService) -> dict[str, JsonValue]:
    """{"scores": [{"number", "score"}]}, one for each passage, 0-10."""
    judged = _closeness(request.last_user_message.text)
    scores = ((number, round(BEST_SCORE * min(max(value, 0.0), 1.0))) for number, value in judged)
    return {"scores": [{"number": number, "score": score} for number, score in scores]}


def grade_passages(request: ChatRequest, _: EmbeddingService) -> dict[str, JsonValue]:
    """{"grades": [{"number", "relevant"}]}, one for each passage."""
    judged = _closeness(request.last_user_message.text)
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


def _closeness(message: str) -> list[tuple[int, float]]:
    question = element_text(message, "question") or ""
    passages = read_passages(message)
    texts = (f"{one.document} {one.heading} {one.text}" for one in passages)
    return [(one.number, _coverage(question, text)) for one, text in zip(passages, texts, strict=True)]


def _coverage(question: str, text: str) -> float:
    wanted = {stem(word) for word in topic_words(question)} or {stem(word) for word in words_of(question)}
    return len(wanted & set(stems_of(text))) / len(wanted) if wanted else 0.0
