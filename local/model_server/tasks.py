"""Recognises the task of a request and selects a handler for its schema. Unknown schemas get placeholder
values.
"""

import json
import logging
from collections.abc import Callable

from pydantic import JsonValue

from local.model_server.answers import find_question_message
from local.model_server.embedding.service import EmbeddingService
from local.model_server.filler import fill
from local.model_server.judging import grade_passages, score_passages
from local.model_server.metadata import extract_metadata
from local.model_server.plans import plan_question, rewrite_query
from local.model_server.prompt_reader import has_element
from local.model_server.protocol.requests import ChatRequest, JsonSchema
from local.model_server.reports import REPORT_HANDLERS
from local.model_server.summaries import (
    choose_findings,
    merge_findings,
    summarise_conversation,
    summarise_window,
)

_log = logging.getLogger(__name__)

HANDLERS: dict[str, Callable[[ChatRequest, EmbeddingService], dict[str, JsonValue]]] = {
    "PlanReply": plan_question,
    "DocumentMetadata": extract_metadata,
    # This model quotes verbatim, so there is nothing to repair.
    "RepairedQuotations": lambda *_: {"quotations": []},
    "ConversationSummary": summarise_conversation,
    "PassageScores": score_passages,
    "PassageGrades": grade_passages,
    "QueryRewrite": rewrite_query,
    # The model declines, because SQL written by rules would mostly be wrong.
    "SqlDraft": lambda *_: {"sql": "", "assumptions": [], "unanswerable": "the local model writes no SQL."},
    "WindowSummary": summarise_window,
    "FindingChoice": choose_findings,
    "MergedSummary": merge_findings,
    **REPORT_HANDLERS,
}
SUB_AGENT_TURN = "sub_agent"
TASK_NAMES = frozenset({*HANDLERS, SUB_AGENT_TURN, "documents", "tools", "vision", "plain", "embeddings"})
TASK_GROUPS: dict[str, tuple[str, ...]] = {
    "plan": ("PlanReply",),
    "answer": ("documents",),
    SUB_AGENT_TURN: (SUB_AGENT_TURN, *REPORT_HANDLERS),
}


def task_of(request: ChatRequest) -> str:
    """Return the task of a chat request: its schema name, "documents", "tools", "sub_agent", "vision" or
    "plain".
    """
    shape = request.response_format
    if shape and shape.json_schema:
        return shape.json_schema.name
    if find_question_message(request):
        return "documents"
    if request.tools:
        is_child = any(has_element(text, "task") for text in request.texts_of("user"))
        return SUB_AGENT_TURN if is_child else "tools"
    message = request.last_user_message
    if message.image_urls:
        return "vision"
    return "documents" if has_element(message.text, "documents") else "plain"


def fill_schema(schema: JsonSchema, request: ChatRequest, embedder: EmbeddingService) -> str:
    """Return JSON that fits the schema. Fields keep the order of the schema, because clients stream them."""
    values = fill(schema.schema_)
    computed = HANDLERS[schema.name](request, embedder) if schema.name in HANDLERS else {}
    fields = values if isinstance(values, dict) else {}
    if blind := [name for name in fields if name not in computed]:
        _log.warning(
            "schema.unknown name=%s fields=%s: filled with placeholder values", schema.name, ",".join(blind)
        )
    if fields:
        values = {name: computed.get(name, value) for name, value in fields.items()}
    return json.dumps(values or computed, ensure_ascii=False)
