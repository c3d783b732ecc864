"""Tool calls by one plain rule: search first, answer from the results afterwards."""

import json

from pydantic import JsonValue

from local.model_server.answers import quote_answer
from local.model_server.embedding.service import EmbeddingService
from local.model_server.filler import fill
from local.model_server.prompt_reader import element_text
from local.model_server.protocol.replies import ToolCall
from local.model_server.protocol.requests import ChatRequest, FunctionSpec, NamedTool
from local.model_server.sub_agents import RESULT_ROLES, read_results

_QUESTION_FIELDS = frozenset(
    {"query", "question", "q", "text", "search_query", "prompt", "input", "user_query"}
)
_PROFILES = ("evidence_builder", "doc_reader", "comparator", "web_verifier")
_ANY_TOOL = FunctionSpec(
    name="search",
    parameters={"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)


def choose_tool_call(request: ChatRequest, is_tool_loop: bool) -> ToolCall | None:
    """The call to make now; None to answer instead.

    `tool_choice` is obeyed: "none", "required", or a function by name. With "auto" a search is called once
    per question; a tool loop never stops calling.
    """
    choice = request.tool_choice
    functions = [tool.function for tool in request.tools]
    if isinstance(choice, NamedTool):
        functions = [function for function in functions if function.name == choice.function.name]
    if not functions or choice == "none":
        return None
    best = _search_of(functions)
    is_forced = is_tool_loop or choice != "auto"
    if not is_forced and (_results_since_question(request) or "search" not in best.name.lower()):
        return None
    return _call(best, request, is_tool_loop)


def call_regardless(request: ChatRequest) -> ToolCall:
    """A call though none is wanted or offered, each a little different: a model that ignores instructions."""
    functions = [tool.function for tool in request.tools] or [_ANY_TOOL]
    return _call(_search_of(functions), request, is_tool_loop=True)


def delegated(request: ChatRequest) -> ToolCall | None:
    """A sub-agent for the whole question, where that is advised and none was asked yet."""
    text = "".join(message.text for message in request.messages if message.role == "user")
    advice = element_text(text, "advice") or ""
    may = request.tool_choice != "none" and any(tool.function.name == "delegate" for tool in request.tools)
    if not may or not advice or _results_since_question(request):
        return None
    profile = next((name for name in _PROFILES if name in advice), _PROFILES[0])
    return ToolCall(
        "delegate", json.dumps({"task": _question(request), "profile": profile}, ensure_ascii=False)
    )


def answer_from_results(request: ChatRequest, embedder: EmbeddingService) -> str | None:
    """An answer out of the tools' results, None when they hold no text that can be quoted."""
    documents = list(read_results(_results_since_question(request)))
    return quote_answer(_question(request), documents, embedder) if documents else None


def _search_of(functions: list[FunctionSpec]) -> FunctionSpec:
    """The first function that searches, by its name; else the first."""
    return next((one for one in functions if "search" in one.name.lower()), functions[0])


def _question(request: ChatRequest) -> str:
    text = request.messages[_question_place(request)].text
    return element_text(text, "question") or element_text(text, "task") or text


def _question_place(request: ChatRequest) -> int:
    """Of the last question. A message right behind a result says how to continue, and asks nothing new."""
    messages = request.messages
    asked = [
        place
        for place, message in enumerate(messages)
        if message.role == "user" and (place == 0 or messages[place - 1].role not in RESULT_ROLES)
    ]
    return asked[-1] if asked else 0


def _results_since_question(request: ChatRequest) -> list[str]:
    """Contents of the tool messages after the last question."""
    later = request.messages[_question_place(request) :]
    return [message.text for message in later if message.role in RESULT_ROLES]


def _call(function: FunctionSpec, request: ChatRequest, is_tool_loop: bool) -> ToolCall:
    """In a loop every call differs, so that a check for repeated calls alone cannot end it."""
    rounds = len(_results_since_question(request))
    question = _question(request)
    asked = f"{question} ({rounds + 1})" if is_tool_loop and rounds else question
    return ToolCall(function.name, json.dumps(_arguments_for(function, asked), ensure_ascii=False))


def _arguments_for(function: FunctionSpec, question: str) -> dict[str, JsonValue]:
    """Required parameters by the schema, the question in the one that asks for it."""
    filled = fill(function.parameters) if function.parameters else {}
    arguments = dict(filled) if isinstance(filled, dict) else {}
    for name in sorted(set(arguments) & _QUESTION_FIELDS)[:1]:
        arguments[name] = question
    required = function.parameters.get("required")
    wanted = {*(required if isinstance(required, list) else ()), *_QUESTION_FIELDS}
    return {name: value for name, value in arguments.items() if name in wanted}
