"""Handlers for PlanReply and QueryRewrite, which apply simple rules to the wording of the question.

A question is about contents unless its first words say otherwise; a follow-up takes the names of the previous
question. A real model plans better.
"""

import re
from collections.abc import Sequence

from pydantic import JsonValue

from local.model_server.embedding.service import EmbeddingService
from local.model_server.prompt_reader import element_text, read_turns
from local.model_server.protocol.requests import ChatRequest
from local.model_server.tables import takes_calculating
from local.model_server.text.ranking import NAME
from local.model_server.text.words import detect_language, topic_words

MAX_REFERENCES = 4
_DOCUMENTS = r"(?:documents|files|manuals|reports|policies|dokumente|dateien|unterlagen)"
_KINDS_OF_QUESTIONS = (
    ("comparison", r"\b(?:compare|differ|what changed|vergleiche|unterscheiden)\b"),
    ("summary", r"\b(?:summari[sz]e|summary|main points|zusammenfassung|fasse\b.*\bzusammen)\b"),
    ("metadata", r"\b(?:who wrote|written by|wer hat\b.*\bgeschrieben)\b"),
    ("listing", rf"^(?:list all|which|welche)\s+{_DOCUMENTS}\b"),
    ("evidence", r"\b(?:proof|evidence|which passage|quote|beleg)\b"),
    ("overview", r"\b(?:what do we know|everything about|risks)\b"),
    ("fact", ""),
)
_KINDS = "report|manual|guide|handbook|policy|plan|list|minutes|bericht|handbuch|richtlinie|anleitung"
_NOT_IN_A_NAME = r"(?!(?:the|a|an|in|of|and|to|with|from|on|for|der|die|das|dem|den|und|im|mit|von)\b)"
_REFERENCES = (
    r"\b\w[\w.-]*\.(?:pdf|docx?|pptx?|xlsx?|csv|md|html?|txt|vtt|srt|png|jpe?g)\b",
    r"[\"“„«]([^\"”“»]{3,100})[\"”“»]",
    rf"\b(?:the|our|der|die|das|dem|den|im|laut)\s+((?:{_NOT_IN_A_NAME}[\w-]+\s+){{0,3}}?"
    rf"{_NOT_IN_A_NAME}[\w-]*(?:{_KINDS})\b(?:\s+(?:19|20)\d\d\b)?)",
)
_POINTS_BACK = r"\b(?:it|its|they|them|their|he|she|er|sie|es|ihn|davon|darin)\b|^(?:and|und)\b"
_EVERY = re.compile(
    r"\b(?:all|alle)\s+(?:(?:of|the|our)\s+)*((?:[\w-]+\s+){0,2}"
    r"(?:reports|manuals|guides|handbooks|policies|plans|contracts|berichte|handbücher|richtlinien|verträge))\b"
    r"(?:\s+(?:19|20)\d\d\b)?",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\b\d[\w.,]*\b")
_SMALL_TALK = re.compile(
    r"(?:hi|hello|hey|good (?:morning|evening)|thanks|thank you|what can you do|who are you"
    r"|(?P<de>hallo|guten (?:morgen|tag|abend)|danke|vielen dank|was kannst du|wer bist du))[\s!.?,]*",
    re.IGNORECASE,
)
_HELLO = "Hello! I answer questions from your organisation's documents and show where it all stands."
_HALLO = "Hallo! Ich beantworte Fragen aus den Dokumenten Ihrer Organisation und zeige, wo alles steht."


def plan_question(request: ChatRequest, _: EmbeddingService) -> dict[str, JsonValue]:
    """Return a PlanReply as JSON fields, derived from the wording of the question."""
    original, question = _read(request)
    kind = next(kind for kind, words in _KINDS_OF_QUESTIONS if re.search(words, question, re.IGNORECASE))
    references = references_of(question)
    every = None if kind in ("listing", "metadata") else _EVERY.search(question)
    bare = " ".join(topic_words(question))
    details: dict[str, JsonValue] = {
        "reply": "",
        "filters": [],
        "every": every[1] if every else "",
        "needs_tables": takes_calculating(question),
        "missing_subject": "",
        "todo": _todo(references) if kind == "comparison" and len(references) > 1 else [],
    }
    plan: dict[str, JsonValue] = {
        "kind": kind,
        "language": detect_language(question),
        "question": question if question != original else None,
        "searches": [bare] if bare and bare != question else [],
        "documents": [] if every else list[JsonValue](references),
    }
    if talk := _SMALL_TALK.fullmatch(original):
        language, reply = ("de", _HALLO) if talk["de"] else ("en", _HELLO)
        plan |= {"kind": "conversation", "language": language, "searches": []}
        details["reply"] = reply
    return {**plan, "more": details if any(details.values()) else None}


def rewrite_query(request: ChatRequest, _: EmbeddingService) -> dict[str, JsonValue]:
    """Return {"standalone_question", "search_queries"}, where the queries are the question and its topic
    words.
    """
    _original, question = _read(request)
    bare = " ".join(topic_words(question)) or question
    return {"standalone_question": question, "search_queries": list(dict.fromkeys([question, bare]))}


def standalone(question: str, earlier: Sequence[str]) -> str:
    """Return a question that can be understood without the conversation. If it refers back, names from the
    last of the `earlier` questions are appended.

    "And 2024?" replaces a number of that question.
    """
    if not earlier or not re.search(_POINTS_BACK, question, re.IGNORECASE):
        return question
    number = _NUMBER.search(question)
    if number and topic_words(question) == [number[0].lower()]:
        return _NUMBER.sub(number[0], earlier[-1])
    names = references_of(earlier[-1]) or NAME.findall(earlier[-1]) or [earlier[-1].rstrip("?. ")]
    return f"{question.rstrip('?. ')} ({' '.join(names)})?"


def references_of(question: str) -> list[str]:
    """Return the document names that a question contains: file names, quoted titles and phrases such as "the
    annual report 2023".
    """
    references = [name.strip() for one in _REFERENCES for name in re.findall(one, question, re.IGNORECASE)]
    whole = [
        one
        for one in dict.fromkeys(references)
        if not any(one != other and one in other for other in references)
    ]
    return whole[:MAX_REFERENCES]


def _read(request: ChatRequest) -> tuple[str, str]:
    """Return the user's question as asked, and the same question completed with names from earlier
    questions.
    """
    message = request.last_user_message.text
    original = " ".join((element_text(message, "question") or message).split())
    earlier = [text for role, text in read_turns(message) if role == "user" and text not in ("", original)]
    return original, standalone(original, earlier)


def _todo(references: Sequence[str]) -> list[JsonValue]:
    """Return the todo list of a comparison: one reading task per document and a final comparison."""
    items: list[JsonValue] = [
        {
            "description": f"Read “{name}”",
            "acceptance_criteria": "A quotation from it.",
            "dependencies": [],
        }
        for name in references
    ]
    return [
        *items,
        {
            "description": "Compare the documents",
            "acceptance_criteria": "A quotation in each cell.",
            "dependencies": list[JsonValue](range(1, len(items) + 1)),
        },
    ]
