"""Parser for the XML elements in an application's prompts. It never raises; unknown tags count as text.

The application escapes its text, so every tag found is a real one.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from html import unescape
from typing import NamedTuple

_ATTRIBUTE = re.compile(r"([\w:-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_INSIDE_TAG = r"(?:[^>\"']|\"[^\"]*\"|'[^']*')*"  # quoted attribute values may contain ">"


@dataclass(frozen=True)
class Block:
    """A quotable part of a document, with XML escapes resolved. Only pictures have a `block_id`."""

    text: str
    page: str = ""
    heading: str = ""
    kind: str = "text"
    block_id: str = ""


@dataclass(frozen=True)
class Document:
    """A document in a prompt, with attributes and either blocks or a summary. The `doc_id` of a web page is
    its URL.
    """

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


class NumberedPassage(NamedTuple):
    """A numbered passage that the prompt asks the model to judge or select. `document` is a file name."""

    number: int
    text: str
    document: str
    heading: str


class Element(NamedTuple):
    """An XML element in a message. `inside` is its content, with XML escapes; `text` resolves them."""

    attributes: dict[str, str]
    inside: str

    @property
    def text(self) -> str:
        return unescape(self.inside).strip()


def elements(message: str, tag: str) -> list[Element]:
    """Return the elements with the given tag name in order. Elements nested inside an element of the same
    name are omitted.
    """
    pattern = rf"<{tag}((?:\s{_INSIDE_TAG})?)>(.*?)</{tag}>"
    return [
        Element({one[1]: unescape(one[2] or one[3] or "") for one in _ATTRIBUTE.finditer(match[1])}, match[2])
        for match in re.finditer(pattern, message, re.DOTALL)
    ]


def has_element(message: str, tag: str) -> bool:
    """Return whether the message contains an opening tag of that name, even if it is never closed."""
    return re.search(rf"<{tag}(\s{_INSIDE_TAG})?>", message) is not None


def element_text(message: str, tag: str) -> str | None:
    """Return the text of the first element with the given tag name, with XML escapes resolved, or None."""
    return next((element.text for element in elements(message, tag)), None)


def element_attribute(message: str, tag: str, name: str) -> str:
    """Return an attribute of the first element with the given tag name, or "" if either is missing."""
    return next((element.attributes.get(name, "") for element in elements(message, tag)), "")


def read_turns(message: str) -> list[tuple[str, str]]:
    """Return (role, text) of each turn in <conversation>, oldest first."""
    turns = elements(_inside(message, "conversation"), "turn")
    return [(turn.attributes.get("role", "user"), turn.text) for turn in turns]


def read_passages(message: str) -> list[NumberedPassage]:
    """Return the passages in <passages>, in order. Passages without a number are skipped."""
    return [
        NumberedPassage(int(number), one.text, attributes.get("document", ""), attributes.get("heading", ""))
        for one in elements(_inside(message, "passages"), "passage")
        if (number := (attributes := one.attributes).get("number", "")).isdecimal()
    ]


def read_documents(message: str) -> list[Document]:
    """Return the documents in <documents>, in order. Documents without a doc_id are skipped."""
    return [
        Document(doc_id, one.attributes, _blocks(one.inside), element_text(one.inside, "summary") or "")
        for one in elements(_inside(message, "documents"), "document")
        if (doc_id := one.attributes.pop("doc_id", ""))
    ]


def read_targets(message: str) -> list[Document]:
    """Return the documents listed in <targets>, without blocks. Each line has the form `doc_id: file
    name`.
    """
    lines = (element_text(message, "targets") or "").splitlines()
    targets = (line.partition(":") for line in lines if line.strip())
    return [Document(doc_id.strip(), {"filename": filename.strip()}) for doc_id, _, filename in targets]


def read_proofs(message: str) -> list[Document]:
    """Return the proofs in <findings>, each as a document with one block. Proofs without a doc_id or text are
    skipped.
    """
    proofs = ((proof.attributes.get("doc_id", ""), proof.text) for proof in elements(message, "proof"))
    return [Document(doc_id, blocks=(Block(quote),)) for doc_id, quote in proofs if doc_id and quote]


def read_web_results(message: str) -> list[Document]:
    """Return the pages in <web_results> as documents. Pages without a URL or text are skipped."""
    return [
        Document(url, {"title": one.attributes.get("title", "")}, (Block(one.text),))
        for one in elements(_inside(message, "web_results"), "result")
        if (url := one.attributes.get("url", "")) and one.text
    ]


def merge_documents(documents: Iterable[Document]) -> list[Document]:
    """Merge documents with the same doc_id, without duplicate blocks. Attributes of the first one take
    precedence.
    """
    by_id: dict[str, Document] = {}
    for document in documents:
        first = by_id.setdefault(document.doc_id, document)
        blocks: dict[str, Block] = {}
        for block in (*first.blocks, *document.blocks):
            blocks.setdefault(block.text, block)
        attributes = {**document.attributes, **first.attributes}
        by_id[document.doc_id] = replace(first, attributes=attributes, blocks=tuple(blocks.values()))
    return list(by_id.values())


def _inside(message: str, tag: str) -> str:
    return "".join(element.inside for element in elements(message, tag)[:1])


def _blocks(inside: str) -> tuple[Block, ...]:
    names = {"page": "", "heading": "", "type": "text", "block_id": ""}
    read = (
        Block(one.text, *(one.attributes.get(name, usual) for name, usual in names.items()))
        for one in elements(inside, "block")
    )
    return tuple(block for block in read if block.text)
