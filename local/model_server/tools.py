"""Tool calls by rules: search first, answer from the results afterwards."""

import json

from pydantic import JsonValue

from local.model_server.answers.content import answer_content
from local.model_server.answers.material import Material
from local.model_server.embedding.service import EmbeddingService
from local.model_server.prompt_reader import element_text
from local.model_server.protocol.replies import ToolCall
from local.model_server.protocol.requests import ChatRequest, FunctionSpec, NamedTool
from local.model_server.reports.assignment import RESULT_ROLES, read_results
from local.model_server.schemas.filler import fill
from local.model_server.text.words import stems_of, topic_words

SEARCH_BONUS = 2  # a search tool wins unless another one shares more words with the question
_QUESTION_FIELDS = frozenset(
    {"query", "question", "q", "text", "search_query", "prompt", "input", "user_query"}
)
_ANY_TOOL = FunctionSpec(
    name="search",
    parameters={"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)


def choose_tool_call(request: ChatRequest, is_tool_loop: bool) -> ToolCall | None:
    """The call to make now; None to answer instead.

    `tool_choice` is obeyed: "none", "required", or a function by name. With "auto" a tool is called once per
    question, if one of them fits; a tool loop never stops calling.
    """
    choice = request.tool_choice
    functions = [tool.function for tool in request.tools]
    if isinstance(choice, NamedTool):
        functions = [function for function in functions if function.name == choice.function.name]
    if not functions or choice == "none":
        return None
    question = _question(request)
    best = max(functions, key=lambda function: _fit(function, question))
    is_forced = is_tool_loop or choice != "auto"
    if not is_forced and (_results_since_question(request) or _fit(best, question) == 0):
        return None
    return ToolCall(
        best.name, json.dumps(arguments_for(best, _vary(request, question, is_tool_loop)), ensure_ascii=False)
    )


def call_regardless(request: ChatRequest) -> ToolCall:
    """A call though none is wanted or offered, each a little different: a model that heeds nothing."""
    question = _question(request)
    functions = [tool.function for tool in request.tools] or [_ANY_TOOL]
    best = max(functions, key=lambda function: _fit(function, question))
    arguments = arguments_for(best, _vary(request, question, is_tool_loop=True))
    return ToolCall(best.name, json.dumps(arguments, ensure_ascii=False))


def answer_from_results(request: ChatRequest, embedder: EmbeddingService) -> str | None:
    """An answer out of the tools' results, None when they hold no text that can be quoted."""
    documents = list(read_results(_results_since_question(request)))
    if not documents:
        return None
    return answer_content(Material(_question(request), "CONTENT_SEARCH", tuple(documents), embedder))


def _question(request: ChatRequest) -> str:
    text = request.messages[_question_place(request)].text
    return element_text(text, "question") or element_text(text, "task") or text


def _question_place(request: ChatRequest) -> int:
    """Of the last question. A message right behind a result says how to go on, and asks nothing new."""
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


def _vary(request: ChatRequest, question: str, is_tool_loop: bool) -> str:
    """In a loop every call differs, so that a check for repeated calls alone cannot end it."""
    rounds = len(_results_since_question(request))
    return f"{question} ({rounds + 1})" if is_tool_loop and rounds else question


def _fit(function: FunctionSpec, question: str) -> int:
    words = set(stems_of(f"{function.name.replace('_', ' ')} {function.description}"))
    shared = len(words & set(stems_of(" ".join(topic_words(question)))))
    return shared + (SEARCH_BONUS if "search" in function.name.lower() and question.strip() else 0)


def arguments_for(function: FunctionSpec, question: str) -> dict[str, JsonValue]:
    """Required parameters by the schema, the question in the one that asks for it."""
    properties = function.parameters.get("properties")
    names = set(properties) if isinstance(properties, dict) else set()
    filled = fill(function.parameters) if function.parameters else {}
    arguments = dict(filled) if isinstance(filled, dict) else {}
    for name in sorted(names & _QUESTION_FIELDS)[:1]:
        arguments[name] = question
    required = function.parameters.get("required")
    wanted = {*(required if isinstance(required, list) else ()), *_QUESTION_FIELDS}
    return {name: value for name, value in arguments.items() if name in wanted}
