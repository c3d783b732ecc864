"""PassageScores, PassageGrades, RepairedQuotations: passages judged by the question's topic words in them."""

from pydantic import JsonValue

from local.model_server.embedding.service import EmbeddingService
from local.model_server.prompt_reader import element_text, elements, read_documents, read_passages
from local.model_server.protocol.requests import ChatRequest
from local.model_server.text.passages import passages_of
from local.model_server.text.ranking import rank_passages
from local.model_server.text.words import stems_of, topic_stems, words_of

LEAST_RELEVANT = 0.3  # share of the topic words; unmeasured
BEST_SCORE = 10
MIN_COSINE = 0.55  # of a quotation with its claim; two sentences on one matter lie above 0.6; unmeasured


def score_passages(request: ChatRequest, _: EmbeddingService) -> dict[str, JsonValue]:
    """{"scores": [{"number", "score"}]}, one for each passage, 0-10."""
    judged = _closeness(request.last_user_message.text)
    return {"scores": [{"number": number, "score": round(BEST_SCORE * value)} for number, value in judged]}


def grade_passages(request: ChatRequest, _: EmbeddingService) -> dict[str, JsonValue]:
    """{"grades": [{"number", "relevant"}]}, one for each passage."""
    judged = _closeness(request.last_user_message.text)
    return {"grades": [{"number": number, "relevant": value >= LEAST_RELEVANT} for number, value in judged]}


def repair_quotes(request: ChatRequest, embedder: EmbeddingService) -> dict[str, JsonValue]:
    """{"quotations": [{"number", "doc_id", "quote": the document's best sentence, or None}]}.

    A sentence that lacks one of the claim's numbers does not support it.
    """
    message = request.last_user_message.text
    repaired: list[JsonValue] = []
    for claim in elements(message, "claim"):
        said, doc_id = element_text(claim.inside, "statement") or "", claim.attributes.get("doc_id", "")
        passages = passages_of([one for one in read_documents(message) if one.doc_id == doc_id])
        proofs = (
            item.passage.quote
            for item in rank_passages(said, passages, embedder)
            if item.cosine >= MIN_COSINE and _numbers(said) <= _numbers(item.passage.quote)
        )
        number = int(claim.attributes.get("number", "0"))
        repaired.append({"number": number, "doc_id": doc_id, "quote": next(proofs, None)})
    return {"quotations": repaired}


def _numbers(text: str) -> set[str]:
    return {word for word in words_of(text) if word[0].isdigit()}


def _closeness(message: str) -> list[tuple[int, float]]:
    """The number of each passage, and the share of the question's topic words that it holds."""
    wanted = {*topic_stems(element_text(message, "question") or "")} or {""}
    held = [(one.number, f"{one.document} {one.heading} {one.text}") for one in read_passages(message)]
    return [(number, len(wanted & set(stems_of(text))) / len(wanted)) for number, text in held]
