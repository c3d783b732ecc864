"""Handlers for summary schemas: ConversationSummary, WindowSummary, FindingChoice and MergedSummary.

Every finding is a verbatim sentence of its block; a narrative is a sequence of findings.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeVar

from pydantic import JsonValue

from local.model_server.embedding.service import EmbeddingService
from local.model_server.metadata import find_tags
from local.model_server.prompt_reader import (
    NumberedPassage,
    element_text,
    read_documents,
    read_passages,
    read_turns,
)
from local.model_server.protocol.requests import ChatRequest
from local.model_server.text.passages import passages_of, split_sentences, spread
from local.model_server.text.words import stems_of, topic_stems

MAX_WORDS = 200  # maximum number of words per conversation summary, as stated in the prompt
MAX_SENTENCE_WORDS = 40
MAX_FINDINGS = 6
MAX_METRICS = 10  # maximum number of metrics per window, as stated in the prompt
MAX_TAGS = 4
MAX_STATEMENTS = 8
MAX_NAME_WORDS = 8
_MEASURE = re.compile(
    r"(?<![\w.,/-])(?P<value>\d+(?:[.,]\d+)*)\s?"
    r"(?P<unit>%|°C|bar|mm|km|kg|kW|hours?|days?|years?|EUR|USD|€|million(?: (?:EUR|USD))?)(?!\w)"
)
Item = TypeVar("Item")


def summarise_conversation(request: ChatRequest, _: EmbeddingService) -> dict[str, JsonValue]:
    """Return {"summary"}: the first sentences of questions and answers. Beyond 200 words, the oldest are
    dropped.
    """
    message = request.last_user_message.text
    sentences = split_sentences(element_text(message, "previous_summary") or "")
    for role, text in read_turns(message):
        sentence = next(iter(split_sentences(" ".join(text.split()))), "")
        opening = " ".join(sentence.split()[:MAX_SENTENCE_WORDS])
        sentences += [f"{'Asked' if role == 'user' else 'Answered'}: {opening}"] if opening else []
    while sum(len(sentence.split()) for sentence in sentences) > MAX_WORDS:
        sentences.pop(0)
    return {"summary": " ".join(sentences)}


def summarise_window(request: ChatRequest, _: EmbeddingService) -> dict[str, JsonValue]:
    """Return the findings, metrics and tags of a window of document text, each finding and metric with its
    quote.
    """
    message = request.last_user_message.text
    passages = passages_of(read_documents(message))
    prose = {one.quote: one for one in passages if one.is_prose}
    chosen = _on_focus(prose, MAX_FINDINGS, message)
    return {
        "findings": [{"text": one.statement, "quote": one.quote} for one in chosen],
        "metrics": [metric for one in passages for metric in _metrics(one.quote)][:MAX_METRICS],
        "tags": list[JsonValue](find_tags(" ".join(one.quote for one in passages))[:MAX_TAGS]),
    }


def choose_findings(request: ChatRequest, _: EmbeddingService) -> dict[str, JsonValue]:
    """Return {"numbers"} of the findings to keep, at most as many as the <most> element allows."""
    message = request.last_user_message.text
    most = int(element_text(message, "most") or MAX_STATEMENTS)
    return {"numbers": list[JsonValue](_numbers(read_passages(message), most, message))}


def merge_findings(request: ChatRequest, _: EmbeddingService) -> dict[str, JsonValue]:
    """Return a merged summary, {"statements", "key_findings", "tags"}, with statements from every
    document.
    """
    message = request.last_user_message.text
    passages = read_passages(message)
    parts = [[*part] for _, part in groupby(passages, key=lambda one: one.document)]
    each = max(1, MAX_STATEMENTS // max(len(parts), 1))
    chosen = {number for part in parts for number in _numbers(part, each, message)}
    tags = (tag.strip() for tag in (element_text(message, "tags") or "").split(","))
    return {
        "statements": [
            {"text": one.text, "findings": [one.number]} for one in passages if one.number in chosen
        ],
        "key_findings": list[JsonValue](_numbers(passages, MAX_STATEMENTS, message)),
        "tags": [tag for tag in tags if tag],
    }


def _numbers(passages: Sequence[NumberedPassage], count: int, message: str) -> list[int]:
    return _on_focus({one.text: one.number for one in passages}, count, message)


def _on_focus(items: Mapping[str, Item], count: int, message: str) -> list[Item]:
    """Return at most `count` items. Those that share words with the <focus> come first, then an even sample
    of the rest.
    """
    focus = {*topic_stems(element_text(message, "focus") or "")}
    shared = {text: len(focus & set(stems_of(text))) for text in items}
    near = sorted((text for text in items if shared[text]), key=lambda text: -shared[text])
    rest = spread([text for text in items if not shared[text]], max(count - len(near), 0))
    return [items[text] for text in (*near, *rest)][:count]


def _metrics(quote: str) -> Iterator[JsonValue]:
    """Yield a metric for each number with a unit. Its name is the words before the number."""
    for measure in _MEASURE.finditer(quote):
        words = re.split(r"[.;:!?](?:\s|$)|,\s", quote[: measure.start()])[-1].replace("|", " ").split()
        if name := " ".join(words[-MAX_NAME_WORDS:]).strip(" ,(-"):
            yield {"name": name, "value": measure["value"], "unit": measure["unit"], "quote": quote}
