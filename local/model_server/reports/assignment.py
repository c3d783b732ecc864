"""A sub-agent's task as its messages give it: the task in words, and what was found for it so far.

The task stands in the last message of the user that has a <task>; passages stand in that message, in later
ones, and in the results of tools.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pydantic import JsonValue

from local.model_server.answers.material import without_captions
from local.model_server.embedding.service import EmbeddingService
from local.model_server.prompt_reader import (
    Block,
    Document,
    WebPage,
    element_text,
    has_element,
    read_documents,
    read_targets,
    read_web_results,
)
from local.model_server.protocol.requests import Message
from local.model_server.text.passages import Passage, passages_of

RESULT_ROLES = frozenset({"tool", "function"})
_TEXT_FIELDS = ("content", "image_caption", "summary_standard", "summary_brief", "text")


@dataclass(frozen=True)
class Assignment:
    """What a report is written from.

    Attributes:
        question: the task in words.
        targets: ids of the documents that the task is about; none = all that are found.
        documents: all that the messages name; those without passages have no blocks.
        pages: of the web.
    """

    question: str
    targets: tuple[str, ...]
    documents: tuple[Document, ...]
    pages: tuple[WebPage, ...]
    embedder: EmbeddingService

    @property
    def read(self) -> list[Document]:
        """The documents that have passages."""
        return [document for document in self.documents if document.blocks]

    @cached_property
    def passages(self) -> list[Passage]:
        return passages_of(self.documents)


def read_assignment(messages: Sequence[Message], embedder: EmbeddingService) -> Assignment:
    """The task of a conversation, or of a single message; an empty one where there is none."""
    start = _task_place(messages)
    texts = [message.text for message in messages[start:]]
    results = [message.text for message in messages[start:] if message.role in RESULT_ROLES]
    targets = [target for text in texts for target in read_targets(text)]
    found = [document for text in texts for document in read_documents(text)]
    documents = _merged([*found, *read_results(results), *targets])
    return Assignment(
        question=element_text(texts[0], "task") or element_text(texts[0], "question") or "" if texts else "",
        targets=tuple(target.doc_id for target in targets),
        documents=tuple(without_captions(document) for document in documents),
        pages=_unique([*(page for text in texts for page in read_web_results(text)), *_web_pages(results)]),
        embedder=embedder,
    )


def read_results(results: Iterable[str]) -> Iterator[Document]:
    """The documents in the JSON results of tools, a document for each passage."""
    for item in _items(results):
        if document := _document(item):
            yield document


def _task_place(messages: Sequence[Message]) -> int:
    users = [place for place, message in enumerate(messages) if message.role == "user"]
    tasks = [place for place in users if has_element(messages[place].text, "task")]
    return (tasks or users or [0])[-1]


def _merged(documents: Iterable[Document]) -> list[Document]:
    """Each document once, with all its blocks; repeated blocks only once."""
    merged: dict[str, Document] = {}
    for document in documents:
        known = merged.get(document.doc_id)
        if known is None:
            merged[document.doc_id] = document
            continue
        texts = {block.text for block in known.blocks}
        fresh = tuple(block for block in document.blocks if block.text not in texts)
        attributes = {**document.attributes, **known.attributes}
        merged[document.doc_id] = replace(known, attributes=attributes, blocks=(*known.blocks, *fresh))
    return list(merged.values())


def _unique(pages: Iterable[WebPage]) -> tuple[WebPage, ...]:
    return tuple({(page.url, page.text): page for page in pages}.values())


def _items(results: Iterable[str]) -> Iterator[dict[str, JsonValue]]:
    for result in results:
        try:
            content = json.loads(result)
        except json.JSONDecodeError:
            continue
        found = content.get("results") or content.get("documents") if isinstance(content, dict) else content
        yield from (item for item in found or () if isinstance(item, dict)) if isinstance(found, list) else ()


def _document(item: dict[str, JsonValue]) -> Document | None:
    text = next((item[name] for name in _TEXT_FIELDS if isinstance(item.get(name), str)), None)
    doc_id = item.get("doc_id")
    if not isinstance(text, str) or not isinstance(doc_id, str):
        return None
    attributes = {name: value for name in ("filename", "title") if isinstance(value := item.get(name), str)}
    heading = item.get("heading_path") or item.get("heading") or ""
    page = str(item.get("page_number") or item.get("page") or "")
    return Document(doc_id, attributes, (Block(text, page=page, heading=str(heading)),))


def _web_pages(results: Iterable[str]) -> Iterator[WebPage]:
    for item in _items(results):
        url, title = item.get("url"), item.get("title")
        text = next((item[name] for name in ("text", "content", "snippet") if item.get(name)), "")
        if isinstance(url, str) and isinstance(text, str) and "doc_id" not in item:
            yield WebPage(url, title if isinstance(title, str) else "", text)
