"""Which handler fills which schema. A new schema: one file beside this one, and one line here.

A handler returns the values; fields that the requested schema does not have are dropped and fields that the
handler does not know are filled blindly, so that the reply fits the request even
when the two have drifted apart.
"""

import json
import logging
from collections.abc import Callable

from pydantic import JsonValue

from local.model_server.schemas.conversation_summary import summarise_conversation
from local.model_server.schemas.document_metadata import extract_metadata
from local.model_server.schemas.document_summary import (
    choose_findings,
    merge_findings,
    summarise_window,
)
from local.model_server.schemas.filler import fill
from local.model_server.schemas.passages import grade_passages, score_passages
from local.model_server.schemas.query_rewrite import rewrite_query
from local.model_server.schemas.question_plan import plan_question
from local.model_server.schemas.quote_repair import repair_quote
from local.model_server.schemas.reports import REPORT_HANDLERS
from local.model_server.schemas.task import SchemaTask

_log = logging.getLogger(__name__)

HANDLERS: dict[str, Callable[[SchemaTask], dict[str, JsonValue]]] = {
    "QuestionPlan": plan_question,
    "DocumentMetadata": extract_metadata,
    "QuoteRepair": repair_quote,
    "ConversationSummary": summarise_conversation,
    "PassageScores": score_passages,
    "PassageGrades": grade_passages,
    "QueryRewrite": rewrite_query,
    "WindowSummary": summarise_window,
    "FindingChoice": choose_findings,
    "MergedSummary": merge_findings,
    **REPORT_HANDLERS,
}


def fill_schema(task: SchemaTask) -> str:
    """JSON text that fits the task's schema."""
    values = fill(task.schema)
    handler = HANDLERS.get(task.name)
    if handler is None:
        _log.warning("schema.unknown name=%s: filled blindly", task.name)
        return json.dumps(values, ensure_ascii=False)
    known = handler(task)
    if not isinstance(values, dict) or not values:
        return json.dumps(known, ensure_ascii=False)
    if blind := sorted(set(values) - set(known)):
        _log.warning("schema.unknown_fields name=%s fields=%s: filled blindly", task.name, ",".join(blind))
    return json.dumps({name: known.get(name, value) for name, value in values.items()}, ensure_ascii=False)
