"""QueryRewrite: the question standing alone, and phrasings of it, by the rules that plan questions."""

from pydantic import JsonValue

from local.model_server.prompt_reader import element_text, read_turns
from local.model_server.schemas.follow_up import resolve
from local.model_server.schemas.question_plan import keywords, search_queries
from local.model_server.schemas.task import SchemaTask

MAX_QUERIES = 4


def rewrite_query(task: SchemaTask) -> dict[str, JsonValue]:
    """{"standalone_question", "search_queries"}: its parts, its topic words, its names and numbers."""
    question = " ".join((element_text(task.message, "question") or task.message).split())
    standalone = resolve(question, read_turns(task.message))
    literal = " ".join(keywords(standalone))
    phrasings = dict.fromkeys([*search_queries(standalone), literal])
    queries: list[JsonValue] = [phrasing for phrasing in phrasings if phrasing]
    return {"standalone_question": standalone, "search_queries": queries[:MAX_QUERIES]}
