"""Tool calls by one plain rule: search first, answer from the results afterwards."""

import json

from pydantic import JsonValue

from local.model_server.answers import Material, quote_answer
from local.model_server.embedding.service import EmbeddingService
from local.model_server.filler import fill
from local.model_server.prompt_reader import element_text
from local.model_server.protocol.replies import ToolCall
from local.model_server.protocol.requests import ChatRequest, FunctionSpec
from local.model_server.sub_agents import read_results

_QUESTION_FIELDS = frozenset({"query", "question", "text"})
_PROFILES = ("evidence_builder", "doc_reader", "comparator", "web_verifier")
_ANY_TOOL = FunctionSpec(name="search", parameters={"properties": {"query": {}}})


def choose_tool_call(request: ChatRequest, is_tool_loop: bool) -> ToolCall | None:
    """The call to make now; None to answer instead.

    `tool_choice` is obeyed. With "auto" a search is called once per question; a loop never stops calling.
    """
    if not request.tools or request.tool_choice == "none":
        return None
    if is_tool_loop or request.tool_choice == "required":
        return call_regardless(request)
    may_search = "search" in _search_of(request).name.lower() and not _results_since_question(request)
    return call_regardless(request) if may_search else None


def call_regardless(request: ChatRequest) -> ToolCall:
    """A call though none may be wanted or offered.

    Every one is different, so that a check for repeated calls alone cannot end a loop.
    """
    rounds = len(_results_since_question(request))
    question = f"{_question(request)} ({rounds + 1})" if rounds else _question(request)
    function = _search_of(request)
    return ToolCall(function.name, json.dumps(_arguments_for(function, question), ensure_ascii=False))


def delegated(request: ChatRequest) -> ToolCall | None:
    """A sub-agent for the whole question, where that is advised and none was asked yet."""
    text = "".join(message.text for message in request.messages if message.role == "user")
    advice = element_text(text, "advice") or ""
    may = request.tool_choice != "none" and any(tool.function.name == "delegate" for tool in request.tools)
    if not may or not advice or _results_since_question(request):
        return None
    profile = next((name for name in _PROFILES if name in advice), _PROFILES[0])
    values = {"task": _question(request), "profile": profile}
    return ToolCall("delegate", json.dumps(values, ensure_ascii=False))


def answer_from_results(request: ChatRequest, embedder: EmbeddingService) -> str | None:
    """An answer out of the tools' results, None when they hold no text that can be quoted."""
    documents = read_results(_results_since_question(request))
    return quote_answer(Material(_question(request), documents, embedder)) if documents else None


def _search_of(request: ChatRequest) -> FunctionSpec:
    """The first function that searches, by its name; else the first."""
    functions = [tool.function for tool in request.tools] or [_ANY_TOOL]
    return next((one for one in functions if "search" in one.name.lower()), functions[0])


def _question(request: ChatRequest) -> str:
    text = request.messages[_question_place(request)].text
    return element_text(text, "question") or element_text(text, "task") or text


def _question_place(request: ChatRequest) -> int:
    """Of the last question. A message right behind a result says how to continue, and asks nothing new."""
    roles = [message.role for message in request.messages]
    return max(
        (at for at, role in enumerate(roles) if role == "user" and (at == 0 or roles[at - 1] != "tool")),
        default=0,
    )


def _results_since_question(request: ChatRequest) -> list[str]:
    """Contents of the tool messages after the last question."""
    later = request.messages[_question_place(request) :]
    return [message.text for message in later if message.role == "tool"]


def _arguments_for(function: FunctionSpec, question: str) -> dict[str, JsonValue]:
    """Required parameters by the schema, the question in the one that asks for it."""
    filled = fill(function.parameters)
    required = function.parameters.get("required")
    wanted = {*(required if isinstance(required, list) else ()), *_QUESTION_FIELDS}
    return {
        name: question if name in _QUESTION_FIELDS else value
        for name, value in (filled.items() if isinstance(filled, dict) else ())
        if name in wanted
    }
