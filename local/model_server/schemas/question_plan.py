"""QuestionPlan: type, intent, search phrasings, keywords and a todo list, by rules in English and German."""

import re

from pydantic import JsonValue

from local.model_server.prompt_reader import element_text, read_turns
from local.model_server.schemas.classify import intent_of, query_type_of
from local.model_server.schemas.follow_up import resolve
from local.model_server.schemas.references import find_references
from local.model_server.schemas.task import SchemaTask
from local.model_server.schemas.todo import plan_todo
from local.model_server.text.parts import question_parts
from local.model_server.text.words import topic_words

MAX_QUERIES = 3
MAX_KEYWORDS = 8
_QUOTED = re.compile(r"[\"“„«]([^\"”“»]{2,80})[\"”“»]")
_NUMBER_OR_CODE = re.compile(r"\b(?=[\w./-]*\d)[\w][\w./,-]*\w|\b\d\b")
_NAME = re.compile(r"(?<![.?!]\s)(?<!^)\b[A-ZÄÖÜ][\w-]+(?:\s+[A-ZÄÖÜ][\w-]+)*")


def plan_question(task: SchemaTask) -> dict[str, JsonValue]:
    """Values of every field of the schema."""
    question = " ".join((element_text(task.message, "question") or task.message).split())
    standalone = resolve(question, read_turns(task.message))
    query_type = query_type_of(standalone)
    references = find_references(standalone)
    return {
        "query_type": query_type,
        "intent": intent_of(standalone, query_type),
        "standalone_question": standalone,
        "search_queries": list(search_queries(standalone)),
        "keywords": list(keywords(standalone)),
        "document_references": list(references),
        "todo": plan_todo(standalone, query_type, references, question_parts(standalone)),
    }


def search_queries(question: str) -> list[str]:
    """The question, its bare topic words, and its parts: at most three different ones."""
    parts = question_parts(question)
    bare = " ".join(topic_words(question))
    candidates = [question, *(parts if len(parts) > 1 else ()), bare]
    return [query for query in dict.fromkeys(candidates) if query][:MAX_QUERIES]


def keywords(question: str) -> list[str]:
    """Quoted terms, numbers and codes, names; longer topic words when there is none of them."""
    found = [*_QUOTED.findall(question), *_NUMBER_OR_CODE.findall(question), *_NAME.findall(question)]
    if not found:
        found = [word for word in topic_words(question) if len(word) > 4]
    return list(dict.fromkeys(found))[:MAX_KEYWORDS]
