"""Reads the XML that an application puts into messages. Never raises; unknown tags are text.

Application text inside is escaped, so a tag that is seen is a tag that was meant.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from html import unescape
from typing import NamedTuple

_ATTRIBUTE = re.compile(r"([\w:-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_INSIDE_TAG = r"(?:[^>\"']|\"[^\"]*\"|'[^']*')*"  # a ">" may stand inside quotes


@dataclass(frozen=True)
class Block:
    """One quotable piece of a document, unescaped. Only pictures have a `block_id`: a figure tag names it."""

    text: str
    page: str = ""
    heading: str = ""
    kind: str = "text"
    block_id: str = ""


@dataclass(frozen=True)
class Document:
    """A document of the prompt, its attributes, and its blocks or its summary. A web page's id is its URL."""

    doc_id: str
    attributes: dict[str, str] = field(default_factory=dict)
    blocks: tuple[Block, ...] = ()
    summary: str = ""

    @property
    def title(self) -> str:
        return self.attributes.get("title") or self.filename or self.doc_id

    @property
    def filename(self) -> str:
        return self.attributes.get("filename", "")


class Turn(NamedTuple):
    """One turn of an earlier conversation."""

    role: str
    text: str


class NumberedPassage(NamedTuple):
    """A passage to judge or to choose; `document` is its file's name."""

    number: int
    text: str
    document: str
    heading: str


class Element(NamedTuple):
    """One element of a message; `inside` is still escaped."""

    attributes: dict[str, str]
    inside: str

    @property
    def text(self) -> str:
        return unescape(self.inside).strip()


def elements(message: str, tag: str) -> list[Element]:
    """The elements of that name, in order; of nested ones the outer."""
    pattern = rf"<{tag}((?:\s{_INSIDE_TAG})?)>(.*?)</{tag}>"
    return [Element(_attributes(found[1]), found[2]) for found in re.finditer(pattern, message, re.DOTALL)]


def has_element(message: str, tag: str) -> bool:
    """Whether the message holds an element of that name, closed or not."""
    return re.search(rf"<{tag}(\s{_INSIDE_TAG})?>", message) is not None


def element_text(message: str, tag: str) -> str | None:
    """Unescaped text of the first element of that name, None when there is none."""
    found = elements(message, tag)
    return found[0].text if found else None


def read_turns(message: str) -> list[Turn]:
    """The turns inside <conversation>, oldest first."""
    turns = elements(_inside(message, "conversation"), "turn")
    return [Turn(turn.attributes.get("role", "user"), turn.text) for turn in turns]


def read_passages(message: str) -> list[NumberedPassage]:
    """The passages inside <passages>, in the order given; those without a number are left out."""
    return [
        NumberedPassage(int(number), one.text, named.get("document", ""), named.get("heading", ""))
        for one in elements(_inside(message, "passages"), "passage")
        if (number := (named := one.attributes).get("number", "")).isdecimal()
    ]


def read_documents(message: str) -> list[Document]:
    """The documents inside <documents>, in the order given; those without a doc_id are left out."""
    return [
        Document(doc_id, one.attributes, _blocks(one.inside), element_text(one.inside, "summary") or "")
        for one in elements(_inside(message, "documents"), "document")
        if (doc_id := one.attributes.pop("doc_id", ""))
    ]


def read_targets(message: str) -> list[Document]:
    """The documents that <targets> lists, one a line as `doc_id: file name`; none of them has blocks."""
    lines = (element_text(message, "targets") or "").splitlines()
    named = (line.partition(":") for line in lines if line.strip())
    return [Document(doc_id.strip(), {"filename": filename.strip()}) for doc_id, _, filename in named]


def read_proofs(message: str) -> list[Document]:
    """What proves the notes of sub-agents inside <findings>: a document for each proof."""
    proofs = ((proof.attributes.get("doc_id", ""), proof.text) for proof in elements(message, "proof"))
    return [Document(doc_id, blocks=(Block(quote),)) for doc_id, quote in proofs if doc_id and quote]


def read_web_results(message: str) -> list[Document]:
    """The pages inside <web_results>: url, title and text as elements or attributes of <result>."""
    pages = []
    for one in elements(_inside(message, "web_results"), "result"):
        url, title = (
            one.attributes.get(name) or element_text(one.inside, name) or "" for name in ("url", "title")
        )
        text = element_text(one.inside, "text")
        pages.append(Document(url, {"title": title}, (Block(one.text if text is None else text),)))
    return [page for page in pages if page.doc_id and page.blocks[0].text]


def merged(documents: Iterable[Document]) -> list[Document]:
    """Each document once, with all its blocks; repeated blocks only once."""
    known: dict[str, Document] = {}
    for document in documents:
        first = known.setdefault(document.doc_id, document)
        blocks = {block.text: block for block in (*document.blocks, *first.blocks)}
        order = dict.fromkeys(block.text for block in (*first.blocks, *document.blocks))
        attributes = {**document.attributes, **first.attributes}
        known[document.doc_id] = replace(
            first, attributes=attributes, blocks=tuple(blocks[text] for text in order)
        )
    return list(known.values())


def documents_attribute(message: str, name: str) -> str:
    """An attribute of <documents>, such as `total` or `filters`; empty when it is not there."""
    found = elements(message, "documents")
    return found[0].attributes.get(name, "") if found else ""


def _inside(message: str, tag: str) -> str:
    found = elements(message, tag)
    return found[0].inside if found else ""


def _blocks(inside: str) -> tuple[Block, ...]:
    names = {"page": "", "heading": "", "type": "text", "block_id": ""}
    read = (
        Block(one.text, *(one.attributes.get(name, usual) for name, usual in names.items()))
        for one in elements(inside, "block")
    )
    return tuple(block for block in read if block.text)


def _attributes(text: str) -> dict[str, str]:
    return {found[1]: unescape(found[2] or found[3] or "") for found in _ATTRIBUTE.finditer(text)}
