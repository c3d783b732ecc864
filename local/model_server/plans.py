"""QuestionPlan and QueryRewrite, by what a question plainly says. It claims nothing about routing.

A question is about contents unless its first words say otherwise; a follow-up takes the names of the
question before it. A real model plans better: what routing is worth is not to be seen here.
"""

import re
from collections.abc import Sequence

from pydantic import JsonValue

from local.model_server.embedding.service import EmbeddingService
from local.model_server.plain_chat import reply_to_small_talk
from local.model_server.prompt_reader import Turn, element_text, read_turns
from local.model_server.protocol.requests import ChatRequest
from local.model_server.tables import takes_calculating
from local.model_server.text.languages import detect_language
from local.model_server.text.support import NAME
from local.model_server.text.words import topic_words

MAX_REFERENCES = 4
_DOCUMENTS = r"(?:documents|files|manuals|reports|policies|dokumente|dateien|unterlagen)"
_TYPES = (
    ("COMPARISON", "compare_docs", r"\b(?:compare|differ|what changed|vergleiche|unterscheiden)\b"),
    ("DOCUMENT_SUMMARY", "doc_summary", r"\b(?:summari[sz]e|summary|zusammenfassung|fasse\b.*\bzusammen)\b"),
    ("METADATA_SEARCH", "fact_lookup", r"\b(?:who wrote|written by|wer hat\b.*\bgeschrieben)\b"),
    ("LISTING", "fact_lookup", rf"^(?:list all|which|welche)\s+{_DOCUMENTS}\b"),
    ("CONTENT_SEARCH", "evidence_trace", r"\b(?:proof|evidence|which passage|quote|beleg)\b"),
    ("CONTENT_SEARCH", "exploratory", r"\b(?:what do we know|everything about|risks)\b"),
)
_KINDS = "report|manual|guide|handbook|policy|plan|list|minutes|bericht|handbuch|richtlinie|anleitung|plan"
_NOT_IN_A_NAME = r"(?!(?:the|a|an|in|of|and|to|with|from|on|for|der|die|das|dem|den|und|im|mit|von)\b)"
_REFERENCES = (
    re.compile(r"\b\w[\w.-]*\.(?:pdf|docx?|pptx?|xlsx?|csv|md|html?|txt|vtt|srt|png|jpe?g)\b", re.IGNORECASE),
    re.compile(r"[\"“„«]([^\"”“»]{3,100})[\"”“»]"),
    re.compile(
        rf"\b(?:the|our|der|die|das|dem|den|im|laut)\s+((?:{_NOT_IN_A_NAME}[\w-]+\s+){{0,3}}?"
        rf"{_NOT_IN_A_NAME}[\w-]*(?:{_KINDS})\b(?:\s+(?:19|20)\d\d\b)?)",
        re.IGNORECASE,
    ),
)
_POINTS_BACK = re.compile(
    r"\b(?:it|its|they|them|their|he|she|er|sie|es|ihn|davon|darin)\b|^(?:and|und)\b", re.IGNORECASE
)
_NUMBER = re.compile(r"\b\d[\w.,]*\b")


def plan_question(request: ChatRequest, _: EmbeddingService) -> dict[str, JsonValue]:
    """Values of every field of QuestionPlan."""
    asked, question = _read(request)
    small_talk = reply_to_small_talk(asked)
    query_type, intent = ("CONVERSATION", "fact_lookup") if small_talk else _type_of(question)
    references = [] if small_talk else references_of(question)
    return {
        "query_type": query_type,
        "intent": intent,
        "language": detect_language(question),
        "standalone_question": question if question != asked else "",
        "reply": small_talk,
        "search_queries": [] if small_talk else _queries(question),
        "filters": [],
        "needs_tables": not small_talk and takes_calculating(question),
        "document_references": list[JsonValue](references),
        "todo": _todo(references, detect_language(question)) if query_type == "COMPARISON" else [],
    }


def decline_sql(_request: ChatRequest, _embedder: EmbeddingService) -> dict[str, JsonValue]:
    """No SQL: rules for it would be wrong more often than right."""
    return {"sql": "", "assumptions": [], "unanswerable": "the local model writes no SQL."}


def rewrite_query(request: ChatRequest, _: EmbeddingService) -> dict[str, JsonValue]:
    """{"standalone_question", "search_queries"}: the question, and its bare topic words."""
    _asked, question = _read(request)
    return {"standalone_question": question, "search_queries": [question, *_queries(question)]}


def standalone(question: str, turns: Sequence[Turn]) -> str:
    """The question with the names of the one before, where it points back; "And 2024?" changes a number."""
    before = next(
        (turn.text for turn in reversed(turns) if turn.role == "user" and turn.text != question), ""
    )
    if not before or not _POINTS_BACK.search(question):
        return question
    number = _NUMBER.search(question)
    if number and topic_words(question) == [number.group().lower()]:
        return _NUMBER.sub(number.group(), before)
    names = references_of(before) or NAME.findall(before) or [before.rstrip("?. ")]
    return f"{question.rstrip('?. ')} ({' '.join(names)})?"


def references_of(question: str) -> list[str]:
    """Documents that a question names, as it words them: files, quoted titles, "the annual report 2023"."""
    found = [name.strip() for pattern in _REFERENCES for name in pattern.findall(question)]
    unique = list(dict.fromkeys(found))
    return [one for one in unique if not any(one != other and one in other for other in unique)][
        :MAX_REFERENCES
    ]


def _read(request: ChatRequest) -> tuple[str, str]:
    """The question as it was asked, and standing alone."""
    message = request.last_user_message.text
    asked = " ".join((element_text(message, "question") or message).split())
    return asked, standalone(asked, read_turns(message))


def _type_of(question: str) -> tuple[str, str]:
    for query_type, intent, pattern in _TYPES:
        if re.search(pattern, question, re.IGNORECASE):
            return query_type, intent
    return "CONTENT_SEARCH", "fact_lookup"


def _queries(question: str) -> list[JsonValue]:
    bare = " ".join(topic_words(question))
    return [bare] if bare and bare != question else []


_TODO = ("“{}” is read", "A quotation from it.", "The documents are compared", "A quotation in each cell.")
_TODO_GERMAN = (
    "„{}“ ist gelesen",
    "Ein Zitat daraus.",
    "Die Dokumente sind verglichen",
    "Ein Zitat in jeder Zelle.",
)


def _todo(references: Sequence[str], language: str) -> list[JsonValue]:
    """An item for each document, and one for what is made of them."""
    read, quoted, compared_all, filled = _TODO_GERMAN if language == "de" else _TODO
    found: list[JsonValue] = [
        {
            "description": read.format(name),
            "acceptance_criteria": quoted,
            "dependencies": [],
        }
        for name in references
    ]
    positions: list[JsonValue] = list(range(1, len(found) + 1))
    compared: JsonValue = {
        "description": compared_all,
        "acceptance_criteria": filled,
        "dependencies": positions,
    }
    return [*found, compared] if len(found) > 1 else []
