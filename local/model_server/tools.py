"""Decides what to do in a turn with tools: search for unread documents or the web, answer, or reply READY
before a report.

A sub-agent's task is in the last user message with a <task>; passages are in that message, later ones, and
tool results. No call is repeated.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from local.model_server.answers import Material, quote_answer, without_captions
from local.model_server.embedding.service import EmbeddingService
from local.model_server.filler import fill
from local.model_server.prompt_reader import (
    Block,
    Document,
    element_text,
    has_element,
    merge_documents,
    read_documents,
    read_targets,
    read_web_results,
)
from local.model_server.protocol.replies import Reply, ToolCall, tool_call_reply
from local.model_server.protocol.requests import ChatRequest, FunctionSpec, Message
from local.model_server.text.ranking import subject_of

RETRIEVE = "rag_semantic_search"
WEB = "web_search"
MAX_QUERY_CHARS = 200
READY = "READY"  # reply that the prompts request when no more tools are needed
_TEXT_FIELDS = ("content", "image_caption", "summary_standard", "summary_brief", "text", "snippet")
_QUESTION_FIELDS = ("query", "question", "text")
_PROFILES = ("evidence_builder", "doc_reader", "comparator", "web_verifier")
_ANY_TOOL = FunctionSpec(name="search", parameters={"properties": {"query": {}}})


@dataclass(frozen=True)
class Assignment:
    """The task of a sub-agent with the material in its messages: all documents that they name, with or
    without text, and web pages.
    """

    question: str
    documents: list[Document]
    pages: list[Document]


def choose_tool_call(request: ChatRequest, is_tool_loop: bool) -> ToolCall | None:
    """Return the next tool call, or None if the model should answer.

    A search is called once per question; a loop never stops while it may call.
    """
    may_search = "search" in _search_of(request).name and not _results_since_question(request)
    return force_tool_call(request) if request.offered and (is_tool_loop or may_search) else None


def force_tool_call(request: ChatRequest) -> ToolCall:
    """Return a tool call even if the request offers no tool. The question fills the query parameters; other
    required ones get placeholder values.

    Every call differs, so that detecting repeated calls isn't enough to end a loop.
    """
    rounds = len(_results_since_question(request))
    question = f"{_question(request)} ({rounds + 1})" if rounds else _question(request)
    function = _search_of(request)
    filled, required = fill(function.parameters), function.parameters.get("required")
    fields = [*(required if isinstance(required, list) else ()), *_QUESTION_FIELDS]
    values = filled if isinstance(filled, dict) else {}
    arguments = {
        name: question if name in _QUESTION_FIELDS else value
        for name, value in values.items()
        if name in fields
    }
    return _call(function.name, arguments)


def delegate_call(request: ChatRequest) -> ToolCall | None:
    """Return a `delegate` call for the whole question with the profile that the prompt advises, or None if a
    tool was already called.
    """
    if "delegate" not in request.offered or _results_since_question(request):
        return None
    advice = element_text("".join(request.texts_of("user")), "advice") or ""
    profile = next((name for name in _PROFILES if name in advice), _PROFILES[0])
    return _call("delegate", {"task": _question(request), "profile": profile})


def answer_from_results(request: ChatRequest, embedder: EmbeddingService) -> str | None:
    """Return an answer that quotes the tool results, or None if they contain no quotable text."""
    documents = _read_results(_results_since_question(request))
    return quote_answer(Material(_question(request), documents, embedder)) if documents else None


def read_assignment(messages: Sequence[Message]) -> Assignment:
    """Return the sub-agent's task and material from the messages since its <task>. Without messages, all
    fields are empty.
    """
    users = [place for place, message in enumerate(messages) if message.role == "user"]
    tasks = [place for place in users if has_element(messages[place].text, "task")]
    since = messages[(tasks or users or [0])[-1] :]
    texts = [message.text for message in since]
    documents = _read_results(message.text for message in since if message.role == "tool")
    for text in texts:
        documents += [*read_documents(text), *read_targets(text), *read_web_results(text)]
    question = (element_text(texts[0], "task") or element_text(texts[0], "question")) if texts else ""
    web = ("http://", "https://")
    return Assignment(
        question or "",
        [
            without_captions(one)
            for one in merge_documents(one for one in documents if not one.doc_id.startswith(web))
        ],
        merge_documents(one for one in documents if one.doc_id.startswith(web)),
    )


def take_turn(request: ChatRequest) -> Reply:
    """Return a call that searches the web or documents not read yet, or the reply READY if nothing remains to
    be searched.
    """
    assignment = read_assignment(request.messages)
    subject = subject_of(assignment.question, assignment.documents)[:MAX_QUERY_CHARS]
    unread: list[JsonValue] = [one.doc_id for one in assignment.documents if not one.blocks]
    candidates: list[tuple[str, dict[str, JsonValue]]] = []
    if not assignment.pages:
        candidates.append((WEB, {"query": subject}))
    if unread or not (assignment.documents or assignment.pages):
        candidates.append((RETRIEVE, {"query": subject, **({"doc_ids": unread} if unread else {})}))
    calls = [call.function for message in request.messages for call in message.tool_calls]
    previous = [(call.name, _value(call.arguments)) for call in calls]
    for name, values in candidates if subject else ():
        if name in request.offered and (name, values) not in previous:
            return tool_call_reply(_call(name, values))
    return Reply(READY)


def _search_of(request: ChatRequest) -> FunctionSpec:
    """Return the first offered function with "search" in its name, or else the first one."""
    functions = [tool.function for tool in request.tools] or [_ANY_TOOL]
    return next((one for one in functions if "search" in one.name), functions[0])


def _question(request: ChatRequest) -> str:
    text = request.messages[_question_place(request)].text
    return element_text(text, "question") or element_text(text, "task") or text


def _question_place(request: ChatRequest) -> int:
    """Return the index of the message with the last question. A user message right after a tool result is an
    instruction and doesn't count.
    """
    roles = [message.role for message in request.messages]
    return max(
        (at for at, role in enumerate(roles) if role == "user" and (at == 0 or roles[at - 1] != "tool")),
        default=0,
    )


def _results_since_question(request: ChatRequest) -> list[str]:
    later = request.messages[_question_place(request) :]
    return [message.text for message in later if message.role == "tool"]


def _read_results(results: Iterable[str]) -> list[Document]:
    """Return the passages and web pages in JSON tool results, each as a document. The doc_id of a page is its
    URL.
    """
    read = []
    for result in results:
        content = _value(result)
        items = content.get("results") or content.get("documents") if isinstance(content, dict) else ()
        for item in items if isinstance(items, list) else ():
            fields = item if isinstance(item, dict) else {}
            text = next((fields[name] for name in _TEXT_FIELDS if fields.get(name)), None)
            doc_id = fields.get("doc_id") or fields.get("url")
            if isinstance(text, str) and isinstance(doc_id, str):
                names = {name: str(fields[name]) for name in ("filename", "title") if fields.get(name)}
                place = (str(fields.get(name) or "") for name in ("page_number", "heading_path"))
                read.append(Document(doc_id, names, (Block(text, *place),)))
    return read


def _call(name: str, arguments: dict[str, JsonValue]) -> ToolCall:
    return ToolCall(name, json.dumps(arguments, ensure_ascii=False))


def _value(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return None
    return value
