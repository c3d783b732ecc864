"""ConversationSummary, WindowSummary, FindingChoice, MergedSummary: central sentences, numbers with units.

Extractive: every finding is a sentence of its block and its own proof; a narrative is the central findings
one after the other.
"""

import re
from collections.abc import Sequence

from pydantic import JsonValue

from local.model_server.embedding.service import EmbeddingService
from local.model_server.metadata import find_tags
from local.model_server.prompt_reader import (
    NumberedPassage,
    Turn,
    element_text,
    read_documents,
    read_passages,
    read_turns,
)
from local.model_server.protocol.requests import ChatRequest
from local.model_server.text.central import central_indices
from local.model_server.text.passages import passages_of
from local.model_server.text.sentences import split_sentences
from local.model_server.text.words import stem, stems_of, topic_words

MAX_WORDS = 200  # of a conversation's summary, as the prompt asks
MAX_SENTENCE_WORDS = 40
MAX_FINDINGS = 6
MAX_METRICS = 10  # as the prompt allows
MAX_TAGS = 4
MAX_STATEMENTS = 8
MAX_NAME_WORDS = 8
_MEASURE = re.compile(
    r"(?<![\w.,/-])(?P<value>\d{1,3}(?:[ ,.]\d{3})*(?:[.,]\d+)?|\d+(?:[.,]\d+)?)\s?"
    r"(?P<unit>%|°C|bar|mm|cm|km|kg|kW|kWh|MWh|l/min|m³/h|rpm|m|t|l|g|V|A|W|minutes?|hours?|days?|weeks?|months?|"
    r"years?|Stunden?|Tage|Wochen|Monate|Jahre|EUR|USD|€|(?:thousand|million|billion)(?: (?:EUR|USD))?)(?!\w)"
)


def summarise_conversation(request: ChatRequest, embedder: EmbeddingService) -> dict[str, JsonValue]:
    """{"summary": text of at most 200 words}. What is new is kept before what was summarised already."""
    message = request.last_user_message.text
    new = _exchanges(read_turns(message))
    while len(new) > 1 and _count(new) > MAX_WORDS:
        new.pop(0)
    old = split_sentences(element_text(message, "previous_summary") or "")
    while old and _count(old) + _count(new) > MAX_WORDS:
        old = [old[place] for place in central_indices(old, len(old) - 1, embedder)]
    return {"summary": " ".join([*old, *new])}


def summarise_window(request: ChatRequest, embedder: EmbeddingService) -> dict[str, JsonValue]:
    """{"findings": [{"text", "quote"}], "metrics": [{"name", "value", "unit", "quote"}], "tags": […]}."""
    message = request.last_user_message.text
    passages = passages_of(read_documents(message))
    prose = [one for one in passages if one.quote.endswith((".", "!", "?"))]
    chosen = _weightiest([one.reading for one in prose], MAX_FINDINGS, message, embedder)
    return {
        "findings": [{"text": prose[place].statement, "quote": prose[place].quote} for place in chosen],
        "metrics": [metric for one in passages for metric in _metrics(one.quote)][:MAX_METRICS],
        "tags": list[JsonValue](find_tags(" ".join(one.quote for one in passages))[:MAX_TAGS]),
    }


def choose_findings(request: ChatRequest, embedder: EmbeddingService) -> dict[str, JsonValue]:
    """{"numbers": […]}: the central findings, those on the focus ahead."""
    message = request.last_user_message.text
    most = element_text(message, "most") or ""
    return {"numbers": _numbers(message, int(most) if most.isdecimal() else MAX_STATEMENTS, embedder)}


def merge_findings(request: ChatRequest, embedder: EmbeddingService) -> dict[str, JsonValue]:
    """{"statements": [{"text", "findings"}], "key_findings": […], "tags": […]}; of each document some."""
    message = request.last_user_message.text
    by_document: dict[str, list[NumberedPassage]] = {}
    for passage in read_passages(message):
        by_document.setdefault(passage.document, []).append(passage)
    each = max(1, MAX_STATEMENTS // max(len(by_document), 1))
    chosen = [
        passages[place]
        for passages in by_document.values()
        for place in sorted(_weightiest([one.text for one in passages], each, message, embedder))
    ]
    tags = (element_text(message, "tags") or "").split(",")
    return {
        "statements": [{"text": one.text, "findings": [one.number]} for one in chosen],
        "key_findings": _numbers(message, MAX_STATEMENTS, embedder),
        "tags": [tag.strip() for tag in tags if tag.strip()],
    }


def _exchanges(turns: Sequence[Turn]) -> list[str]:
    """'Asked: … Answered: …' for each question, in order."""
    said: list[str] = []
    for turn in turns:
        sentences = split_sentences(" ".join(turn.text.split()))
        sentence = " ".join(sentences[0].split()[:MAX_SENTENCE_WORDS]) if sentences else ""
        if sentence and turn.role == "user":
            said.append(f"Asked: {sentence}")
        elif sentence and said:
            said[-1] = f"{said[-1]} Answered: {sentence}"
    return said


def _count(sentences: Sequence[str]) -> int:
    return sum(len(sentence.split()) for sentence in sentences)


def _numbers(message: str, count: int, embedder: EmbeddingService) -> list[JsonValue]:
    passages = read_passages(message)
    chosen = _weightiest([passage.text for passage in passages], count, message, embedder)
    return [passages[place].number for place in chosen]


def _weightiest(texts: Sequence[str], count: int, message: str, embedder: EmbeddingService) -> list[int]:
    """Places of the texts that share most with the focus, then of the central ones."""
    focus = {stem(word) for word in topic_words(element_text(message, "focus") or "")}
    shared = [len(focus & set(stems_of(text))) for text in texts]
    chosen = sorted((place for place, count in enumerate(shared) if count), key=lambda place: -shared[place])
    rest = [place for place, count in enumerate(shared) if not count]
    central = central_indices([texts[place] for place in rest], max(count - len(chosen), 0), embedder)
    return [*chosen, *(rest[place] for place in central)][:count]


def _metrics(quote: str) -> list[JsonValue]:
    """Each number with a unit in a passage; its name are the words before it."""
    found: list[JsonValue] = []
    for measure in _MEASURE.finditer(quote):
        words = re.split(r"[.;:!?](?:\s|$)|,\s", quote[: measure.start()])[-1].replace("|", " ").split()
        if name := " ".join(words[-MAX_NAME_WORDS:]).strip(" ,(-"):
            found.append({"name": name, "value": measure["value"], "unit": measure["unit"], "quote": quote})
    return found
