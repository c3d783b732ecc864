"""Reads the XML that an application puts into the user message. Never raises; unknown tags are text.

Application text inside is escaped, so a tag that is seen is a tag that was meant.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

_ATTRIBUTE = re.compile(r"([\w:-]+)\s*=\s*\"([^\"]*)\"|([\w:-]+)\s*=\s*'([^']*)'")
_ENTITY = re.compile(r"&(?:#(\d{1,7})|#x([0-9a-fA-F]{1,6})|(lt|gt|amp|quot|apos));")
_INSIDE_TAG = r"(?:[^>\"']|\"[^\"]*\"|'[^']*')*"  # a ">" may stand inside quotes
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_LAST_CODE_POINT = 0x10FFFF


@dataclass(frozen=True)
class Block:
    """One quotable piece of a document. `text` is unescaped, exactly as it is indexed.

    Only pictures have a `block_id`: a figure tag names it.
    """

    text: str
    page: str = ""
    heading: str = ""
    kind: str = "text"
    block_id: str = ""


@dataclass(frozen=True)
class Document:
    """A document of the prompt, its attributes, and its blocks or its summary."""

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


@dataclass(frozen=True)
class WebPage:
    """A page that a search of the web found, with what it says."""

    url: str
    title: str
    text: str


@dataclass(frozen=True)
class Turn:
    """One turn of an earlier conversation."""

    role: str
    text: str


@dataclass(frozen=True)
class NumberedPassage:
    """A passage that is to be judged; `document` is its file's name."""

    number: int
    text: str
    document: str = ""
    heading: str = ""


def has_element(message: str, tag: str) -> bool:
    """Whether the message holds an element of that name."""
    return re.search(rf"<{tag}(\s{_INSIDE_TAG})?>", message) is not None


def element_text(message: str, tag: str) -> str | None:
    """Unescaped text of the first element of that name, None when there is none."""
    found = _element(tag).search(message)
    return unescape(found.group(2)).strip() if found else None


def read_turns(message: str) -> list[Turn]:
    """The turns inside <conversation>, oldest first."""
    conversation = _element("conversation").search(message)
    if not conversation:
        return []
    return [
        Turn(_attributes(found.group(1)).get("role", "user"), unescape(found.group(2)).strip())
        for found in _element("turn").finditer(conversation.group(2))
    ]


def read_passages(message: str) -> list[NumberedPassage]:
    """The passages inside <passages>, in the order given; those without a number are left out."""
    found = _element("passages").search(message)
    parts = _element("passage").finditer(found.group(2)) if found else ()
    passages: list[NumberedPassage] = []
    for part in parts:
        attributes = _attributes(part.group(1))
        if (number := attributes.get("number", "")).isdecimal():
            text, document = unescape(part.group(2)).strip(), attributes.get("document", "")
            passages.append(NumberedPassage(int(number), text, document, attributes.get("heading", "")))
    return passages


def read_documents(message: str) -> list[Document]:
    """The documents inside <documents>, in the order given; those without a doc_id are left out."""
    found = _element("documents").search(message)
    documents = (
        [_read_document(part) for part in _element("document").finditer(found.group(2))] if found else []
    )
    return [document for document in documents if document.doc_id]


def read_targets(message: str) -> list[Document]:
    """The documents that <targets> lists, one a line as `doc_id: file name`; none of them has blocks."""
    lines = (element_text(message, "targets") or "").splitlines()
    named = (line.partition(":") for line in lines if line.strip())
    return [Document(doc_id.strip(), {"filename": filename.strip()}) for doc_id, _, filename in named]


def read_proofs(message: str) -> list[Document]:
    """What the notes of sub-agents inside <findings> are proved by: a document for each proof."""
    proofs = _element("proof").finditer(message)
    read = (
        (_attributes(proof.group(1)).get("doc_id", ""), unescape(proof.group(2)).strip()) for proof in proofs
    )
    return [Document(doc_id, blocks=(Block(quote),)) for doc_id, quote in read if doc_id and quote]


def merged(documents: Iterable[Document]) -> list[Document]:
    """Each document once, with all its blocks; repeated blocks only once."""
    known: dict[str, Document] = {}
    for document in documents:
        first = known.setdefault(document.doc_id, document)
        fresh = tuple(
            block for block in document.blocks if all(block.text != one.text for one in first.blocks)
        )
        attributes = {**document.attributes, **first.attributes}
        known[document.doc_id] = replace(first, attributes=attributes, blocks=(*first.blocks, *fresh))
    return list(known.values())


def read_web_results(message: str) -> list[WebPage]:
    """The pages inside <web_results>: url, title and text as elements or attributes of <result>."""
    found = _element("web_results").search(message)
    pages = (
        [_read_page(part) for part in _element("(?:result|page|hit)").finditer(found.group(2))]
        if found
        else []
    )
    return [page for page in pages if page.url and page.text]


def is_narrowed(message: str) -> bool:
    """Whether `<documents filters="…">` says that the documents were narrowed to what is asked for."""
    found = re.search(rf"<documents({_INSIDE_TAG})>", message)
    return bool(found and _attributes(found.group(1)).get("filters"))


def read_total(message: str) -> int:
    """How many documents `<documents total="60" shown="50">` says there are; 0 when it does not say."""
    found = _element("documents").search(message)
    total = _attributes(found.group(1)).get("total", "") if found else ""
    return int(total) if total.isdecimal() else 0


def _read_document(found: re.Match[str]) -> Document:
    attributes = _attributes(found.group(1))
    blocks = [_read_block(part) for part in _element("block").finditer(found.group(2))]
    return Document(
        doc_id=attributes.pop("doc_id", ""),
        attributes=attributes,
        blocks=tuple(block for block in blocks if block.text),
        summary=element_text(found.group(2), "summary") or "",
    )


def _read_page(found: re.Match[str]) -> WebPage:
    attributes, inside = _attributes(found.group(1)), found.group(2)
    values = {name: attributes.get(name) or element_text(inside, name) or "" for name in ("url", "title")}
    text = element_text(inside, "text")
    # Without an element of its own the text is all that is inside.
    return WebPage(values["url"], values["title"], unescape(inside).strip() if text is None else text)


def _read_block(found: re.Match[str]) -> Block:
    attributes = _attributes(found.group(1))
    return Block(
        text=unescape(found.group(2)).strip(),
        page=attributes.get("page", ""),
        heading=attributes.get("heading", ""),
        kind=attributes.get("type", "text"),
        block_id=attributes.get("block_id", ""),
    )


def _element(tag: str) -> re.Pattern[str]:
    return re.compile(rf"<{tag}((?:\s{_INSIDE_TAG})?)>(.*?)</{tag}>", re.DOTALL)


def _attributes(text: str) -> dict[str, str]:
    return {
        (found.group(1) or found.group(3)): unescape(found.group(2) or found.group(4) or "")
        for found in _ATTRIBUTE.finditer(text)
    }


def unescape(text: str) -> str:
    """Resolve the five XML entities and numeric references, each once; leave everything else alone."""
    return _ENTITY.sub(_character, text)


def _character(found: re.Match[str]) -> str:
    decimal, hexadecimal, name = found.groups()
    if name:
        return _NAMED[name]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(code) if code <= _LAST_CODE_POINT else found.group()
