"""QuoteRepair: the verbatim sentence that best supports a claim, or null when none does."""

from pydantic import JsonValue

from local.model_server.prompt_reader import element_text, read_documents
from local.model_server.schemas.task import SchemaTask
from local.model_server.text.passages import Passage, passages_of
from local.model_server.text.ranking import Ranked, rank_passages
from local.model_server.text.words import content_words, stem, words_of

MIN_COSINE = 0.55  # unmeasured: two sentences on one matter lie above 0.6, on one topic around 0.4
MIN_SHARED_WORDS = 0.6  # of the claim's content words, where the cosine says little


def repair_quote(task: SchemaTask) -> dict[str, JsonValue]:
    """{"quote": sentence or None}. A sentence that lacks one of the claim's numbers does not support it."""
    claim = element_text(task.message, "claim") or ""
    passages = passages_of(read_documents(task.message))
    for item in rank_passages(claim, passages, task.embedder):
        if _supports(claim, item, task.embedder.understands_meaning):
            return {"quote": item.passage.quote}
    return {"quote": None}


def _supports(claim: str, item: Ranked, understands_meaning: bool) -> bool:
    if not _numbers(claim) <= _numbers(item.passage.quote):
        return False
    if understands_meaning and item.cosine >= MIN_COSINE:
        return True
    return _shared_words(claim, item.passage) >= MIN_SHARED_WORDS


def _numbers(text: str) -> set[str]:
    return {word for word in words_of(text) if word[0].isdigit()}


def _shared_words(claim: str, passage: Passage) -> float:
    wanted = {stem(word) for word in content_words(claim)}
    held = {stem(word) for word in content_words(passage.quote)}
    return len(wanted & held) / len(wanted) if wanted else 0.0
