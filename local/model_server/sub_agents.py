"""A sub-agent's task as its messages give it, and its turns: search what was not read, then READY.

The task stands in the last message of the user that has a <task>; passages stand in that message, in later
ones, and in the results of tools. A call that was made is not made again, whatever it brought.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from local.model_server.answers import without_captions
from local.model_server.prompt_reader import (
    Block,
    Document,
    WebPage,
    element_text,
    has_element,
    merged,
    read_documents,
    read_targets,
    read_web_results,
)
from local.model_server.protocol.replies import Reply, ToolCall
from local.model_server.protocol.requests import ChatRequest, Message
from local.model_server.text.words import stems_of, subject_of

RESULT_ROLES = frozenset({"tool", "function"})
RETRIEVE = "rag_semantic_search"
WEB = "web_search"
MAX_QUERY_CHARS = 200
READY = "READY"  # the word that the prompts ask for when nothing more is needed
_TEXT_FIELDS = ("content", "image_caption", "summary_standard", "summary_brief", "text")


@dataclass(frozen=True)
class Assignment:
    """What a report is written from.

    Attributes:
        question: the task in words.
        documents: all that the messages name; those without passages have no blocks.
        pages: of the web.
    """

    question: str
    documents: list[Document]
    pages: list[WebPage]


def read_assignment(messages: Sequence[Message]) -> Assignment:
    """The task of a conversation, or of a single message; an empty one where there is none."""
    users = [place for place, message in enumerate(messages) if message.role == "user"]
    tasks = [place for place in users if has_element(messages[place].text, "task")]
    since = messages[(tasks or users or [0])[-1] :]
    texts = [message.text for message in since]
    results = [message.text for message in since if message.role in RESULT_ROLES]
    found = [document for text in texts for document in (*read_documents(text), *read_targets(text))]
    documents = [without_captions(one) for one in merged([*found, *read_results(results)])]
    pages = [page for text in texts for page in read_web_results(text)]
    question = element_text(texts[0], "task") or element_text(texts[0], "question") if texts else ""
    return Assignment(question or "", documents, list(dict.fromkeys([*pages, *_web_pages(results)])))


def take_turn(request: ChatRequest) -> Reply:
    """A search for the documents that were not read, or of the web; else READY."""
    assignment = read_assignment(request.messages)
    names = stems_of(" ".join(f"{one.title} {one.filename}" for one in assignment.documents))
    subject = subject_of(assignment.question, names)[:MAX_QUERY_CHARS]
    unread: list[JsonValue] = [one.doc_id for one in assignment.documents if not one.blocks]
    wanted: list[tuple[str, JsonValue]] = []
    if not assignment.pages:
        wanted.append((WEB, {"query": subject}))
    if unread or not (assignment.documents or assignment.pages):
        wanted.append((RETRIEVE, {"query": subject, **({"doc_ids": unread} if unread else {})}))
    made = {
        (call.function.name, call.function.arguments) for one in request.messages for call in one.tool_calls
    }
    offered = {tool.function.name for tool in request.tools} if request.tool_choice != "none" else set()
    for name, values in wanted if subject else ():
        call = ToolCall(name, json.dumps(values, ensure_ascii=False))
        if name in offered and not any(_is_same(call, *other) for other in made):
            return Reply(tool_call=call, finish_reason="tool_calls")
    return Reply(READY)


def read_results(results: Iterable[str]) -> Iterator[Document]:
    """The documents in the JSON results of tools, a document for each passage."""
    for item in _items(results):
        text = next((item[name] for name in _TEXT_FIELDS if isinstance(item.get(name), str)), None)
        doc_id = item.get("doc_id")
        if isinstance(text, str) and isinstance(doc_id, str):
            named = {
                name: value for name in ("filename", "title") if isinstance(value := item.get(name), str)
            }
            page = str(item.get("page_number") or item.get("page") or "")
            yield Document(doc_id, named, (Block(text, page, str(item.get("heading_path") or "")),))


def _is_same(call: ToolCall, name: str, arguments: str) -> bool:
    """Whether a call was made with these arguments, in whatever order and spacing they are written."""
    try:
        return call.name == name and json.loads(call.arguments) == json.loads(arguments)
    except json.JSONDecodeError:
        return False


def _items(results: Iterable[str]) -> Iterator[dict[str, JsonValue]]:
    for result in results:
        try:
            content = json.loads(result)
        except json.JSONDecodeError:
            continue
        found = content.get("results") or content.get("documents") if isinstance(content, dict) else content
        yield from (item for item in found if isinstance(item, dict)) if isinstance(found, list) else ()


def _web_pages(results: Iterable[str]) -> Iterator[WebPage]:
    for item in _items(results):
        url, title = item.get("url"), item.get("title")
        text = next((item[name] for name in ("text", "content", "snippet") if item.get(name)), "")
        if isinstance(url, str) and isinstance(text, str) and "doc_id" not in item:
            yield WebPage(url, title if isinstance(title, str) else "", text)
