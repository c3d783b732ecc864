"""Tool calls by rules: search first, answer from the results afterwards."""

import json
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from local.model_server.answers.content import answer_content
from local.model_server.answers.material import Material
from local.model_server.embedding.service import EmbeddingService
from local.model_server.prompt_reader import Block, Document, element_text
from local.model_server.protocol.replies import ToolCall
from local.model_server.protocol.requests import ChatRequest, FunctionSpec, NamedTool
from local.model_server.schemas.filler import fill
from local.model_server.text.words import stems_of, topic_words

SEARCH_BONUS = 2  # a search tool wins unless another one shares more words with the question
_QUESTION_FIELDS = frozenset(
    {"query", "question", "q", "text", "search_query", "prompt", "input", "user_query"}
)
_RESULT_ROLES = frozenset({"tool", "function"})
_TEXT_FIELDS = ("content", "image_caption", "summary_standard", "summary_brief", "text")


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
        best.name, json.dumps(_arguments(best, _vary(request, question, is_tool_loop)), ensure_ascii=False)
    )


def answer_from_results(request: ChatRequest, embedder: EmbeddingService) -> str | None:
    """An answer out of the tools' results, None when they hold no text that can be quoted."""
    documents = list(_documents(_results_since_question(request)))
    if not documents:
        return None
    return answer_content(Material(_question(request), "CONTENT_SEARCH", tuple(documents), embedder))


def _question(request: ChatRequest) -> str:
    text = request.messages[_question_place(request)].text
    return element_text(text, "question") or text


def _question_place(request: ChatRequest) -> int:
    """Of the last question. A message right behind a result says how to go on, and asks nothing new."""
    messages = request.messages
    asked = [
        place
        for place, message in enumerate(messages)
        if message.role == "user" and (place == 0 or messages[place - 1].role not in _RESULT_ROLES)
    ]
    return asked[-1] if asked else 0


def _results_since_question(request: ChatRequest) -> list[str]:
    """Contents of the tool messages after the last question."""
    later = request.messages[_question_place(request) :]
    return [message.text for message in later if message.role in _RESULT_ROLES]


def _vary(request: ChatRequest, question: str, is_tool_loop: bool) -> str:
    """In a loop every call differs, so that a check for repeated calls alone cannot end it."""
    rounds = len(_results_since_question(request))
    return f"{question} ({rounds + 1})" if is_tool_loop and rounds else question


def _fit(function: FunctionSpec, question: str) -> int:
    words = set(stems_of(f"{function.name.replace('_', ' ')} {function.description}"))
    shared = len(words & set(stems_of(" ".join(topic_words(question)))))
    return shared + (SEARCH_BONUS if "search" in function.name.lower() and question.strip() else 0)


def _arguments(function: FunctionSpec, question: str) -> dict[str, JsonValue]:
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


def _documents(results: Sequence[str]) -> Iterator[Document]:
    for result in results:
        try:
            content = json.loads(result)
        except json.JSONDecodeError:
            continue
        found = content.get("results") or content.get("documents") if isinstance(content, dict) else content
        for item in found if isinstance(found, list) else ():
            if isinstance(item, dict) and (document := _document(item)):
                yield document


def _document(item: dict[str, JsonValue]) -> Document | None:
    text = next((item[name] for name in _TEXT_FIELDS if isinstance(item.get(name), str)), None)
    doc_id = item.get("doc_id")
    if not isinstance(text, str) or not isinstance(doc_id, str):
        return None
    attributes = {name: value for name in ("filename", "title") if isinstance(value := item.get(name), str)}
    return Document(doc_id, attributes, (Block(text, page=str(item.get("page_number") or "")),))
