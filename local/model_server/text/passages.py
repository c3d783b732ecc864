"""Cuts the blocks of documents into passages: sentences and table rows, each quotable as it stands. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from xml.sax.saxutils import escape

from local.model_server.prompt_reader import Block, Document
from local.model_server.text.sentences import is_table_line, split_sentences, table_rows
from local.model_server.text.words import words_of

_FEWEST_WORDS = 3  # shorter pieces are headings, page numbers, captions
_LEADING_MARK = re.compile(r"^\s*(?:#{1,6}\s+|[-*•‣▪◦·–]\s*|\(?\d{1,2}[.)]\s+)")
_ATTRIBUTE = {'"': "&quot;", "\n": " ", "\r": " ", "\t": " "}


@dataclass(frozen=True)
class Passage:
    """The smallest thing that an answer can state.

    Attributes:
        quote: verbatim from the block, white space folded.
        reading: the same for a reader; differs from the quote for table rows.
        block_index: place of its block among all blocks of the prompt.
    """

    document: Document
    block: Block
    quote: str
    reading: str
    block_index: int

    @property
    def is_prose(self) -> bool:
        return self.quote.endswith((".", "!", "?"))

    @property
    def statement(self) -> str:
        """The passage as a sentence of an answer: without list marks, and without what looks like a tag."""
        text = _LEADING_MARK.sub("", self.reading).strip()
        return plain(text if text.endswith((".", "!", "?", ":", "…")) else f"{text}.")

    @property
    def cited(self) -> str:
        """The statement with its citation tag: the quote letter by letter, as an XML attribute."""
        doc_id, quote = attribute(self.document.doc_id), attribute(self.quote)
        return f'{self.statement} <cite doc_id="{doc_id}" quote="{quote}"/>'


def attribute(text: str) -> str:
    """Text escaped for a double-quoted XML attribute, on one line."""
    return escape(text, _ATTRIBUTE)


def plain(text: str) -> str:
    """Text of a document, safe to stand in an answer next to tags."""
    return re.sub(r"<(?=[/\w])", "&lt;", text)


def passages_of(documents: Sequence[Document]) -> list[Passage]:
    """All passages, document by document, in reading order; repetitions (overlap of blocks) only once."""
    passages: dict[tuple[str, str], Passage] = {}
    blocks = ((document, block) for document in documents for block in document.blocks)
    for index, (document, block) in enumerate(blocks):
        for quote, reading in _pieces(block):
            passages.setdefault((document.doc_id, quote), Passage(document, block, quote, reading, index))
    return list(passages.values())


def _pieces(block: Block) -> Iterator[tuple[str, str]]:
    """(quote, reading) of each table row and sentence."""
    yield from (row for row in table_rows(block.text) if len(words_of(row[0])) > 1)
    prose = "\n".join("" if is_table_line(line) else line for line in block.text.split("\n"))
    for sentence in split_sentences(prose):
        folded = " ".join(sentence.split())
        if len(words_of(folded)) >= _FEWEST_WORDS and folded not in block.heading:
            yield folded, folded


def in_page_order(document: Document) -> Document:
    """With its blocks by page; those without a page number stay where they are."""
    blocks = sorted(document.blocks, key=lambda block: int(block.page) if block.page.isdecimal() else 0)
    return replace(document, blocks=tuple(blocks))
