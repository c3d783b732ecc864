"""A sub-agent's task as its messages give it, and its turns: search what was not read, then READY.

The task stands in the last message of the user that has a <task>; passages stand in that message, in later
ones, and in the results of tools. A call that was made is not made again, whatever it brought.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from local.model_server.answers import without_captions
from local.model_server.prompt_reader import (
    Block,
    Document,
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

RETRIEVE = "rag_semantic_search"
WEB = "web_search"
MAX_QUERY_CHARS = 200
READY = "READY"  # the word that the prompts ask for when nothing more is needed
_TEXT_FIELDS = ("content", "image_caption", "summary_standard", "summary_brief", "text", "snippet")


@dataclass(frozen=True)
class Assignment:
    """What a report is written from: the task, all documents that are named, read or not, and web pages."""

    question: str
    documents: list[Document]
    pages: list[Document]


def read_assignment(messages: Sequence[Message]) -> Assignment:
    """The task of a conversation, or of a single message; an empty one where there is none."""
    users = [place for place, message in enumerate(messages) if message.role == "user"]
    tasks = [place for place in users if has_element(messages[place].text, "task")]
    since = messages[(tasks or users or [0])[-1] :]
    texts = [message.text for message in since]
    results = read_results(message.text for message in since if message.role == "tool")
    found = [document for text in texts for document in (*read_documents(text), *read_targets(text))]
    pages = [page for text in texts for page in read_web_results(text)]
    question = (element_text(texts[0], "task") or element_text(texts[0], "question")) if texts else ""
    return Assignment(
        question or "",
        [without_captions(one) for one in merged([*found, *(one for one in results if not _is_page(one))])],
        merged([*pages, *(one for one in results if _is_page(one))]),
    )


def take_turn(request: ChatRequest) -> Reply:
    """A search for the documents that were not read, or of the web; else READY."""
    assignment = read_assignment(request.messages)
    names = stems_of(" ".join(f"{one.title} {one.filename}" for one in assignment.documents))
    subject = subject_of(assignment.question, names)[:MAX_QUERY_CHARS]
    unread: list[JsonValue] = [one.doc_id for one in assignment.documents if not one.blocks]
    wanted: list[tuple[str, dict[str, JsonValue]]] = []
    if not assignment.pages:
        wanted.append((WEB, {"query": subject}))
    if unread or not (assignment.documents or assignment.pages):
        wanted.append((RETRIEVE, {"query": subject, **({"doc_ids": unread} if unread else {})}))
    calls = [call.function for message in request.messages for call in message.tool_calls]
    made = [(call.name, _value(call.arguments)) for call in calls]
    offered = {tool.function.name for tool in request.tools} if request.tool_choice != "none" else set()
    for name, values in wanted if subject else ():
        if name in offered and (name, values) not in made:
            call = ToolCall(name, json.dumps(values, ensure_ascii=False))
            return Reply(tool_call=call, finish_reason="tool_calls")
    return Reply(READY)


def read_results(results: Iterable[str]) -> list[Document]:
    """The passages and pages in the JSON results of tools, a document for each; a page's id is its URL."""
    read = []
    for result in results:
        content = _value(result)
        found = content.get("results") or content.get("documents") if isinstance(content, dict) else content
        for item in found if isinstance(found, list) else ():
            fields = {name: value for name, value in item.items() if value} if isinstance(item, dict) else {}
            text = next((fields[name] for name in _TEXT_FIELDS if name in fields), None)
            doc_id = fields.get("doc_id") or fields.get("url")
            if isinstance(text, str) and isinstance(doc_id, str):
                named = {name: str(value) for name, value in fields.items() if name in ("filename", "title")}
                block = Block(
                    text, str(fields.get("page_number") or ""), str(fields.get("heading_path") or "")
                )
                read.append(Document(doc_id, named, (block,)))
    return read


def _is_page(document: Document) -> bool:
    return document.doc_id.startswith(("http://", "https://"))


def _value(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return None
    return value
