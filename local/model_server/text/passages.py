"""Splits document blocks into passages: sentences and table rows that can be quoted verbatim. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar
from xml.sax.saxutils import escape

from local.model_server.prompt_reader import Block, Document
from local.model_server.text.words import words_of

_BULLET = re.compile(r"^\s*(?:[-*•‣▪◦·–]|\(?[0-9]{1,2}[.)]|\(?[a-z]\))\s+")
_BREAK = re.compile(r"[.!?…][\"'”’»)\]]*\s+(?=[\"'“„«(\[]?[A-ZÄÖÜÀ-Þ0-9•])|\s+(?=[•‣▪])")
# A point after one of these abbreviations, a single letter ("J. Smith", "z. B.") or a two-digit number
# doesn't end a sentence.
_ABBREVIATIONS = frozenset(
    """approx art bzgl bzw ca cf co corp dr e.g eg eq etc fig figs ggf hr i.e ie inc incl inkl jr kap lt ltd
    max min mio mr mrs ms no nos nr pp prof ref rev s.o sec sr st str tab u.a u.s usw vgl vol vs z.b
    """.split()
)
_ABBREVIATED = re.compile(r"([^\s(\"“„]+)\.[\"'”’»)\]]*\s*$")
Item = TypeVar("Item")
_SEPARATOR_ROW = re.compile(r"^\s*\|?[\s:|-]*-[\s:|-]*$")


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text in order, each verbatim and without surrounding whitespace.

    A line break ends a sentence only at the end of a paragraph, list item or heading, because PDF text wraps
    within sentences.
    """
    return [sentence for part in _paragraphs(text) for sentence in _split_paragraph(part)]


def spread(items: Sequence[Item], count: int) -> list[Item]:
    """Return at most `count` items at even distances, always including the first."""
    if len(items) <= count:
        return list(items)
    return [items[len(items) * place // count] for place in range(count)]


def table_rows(text: str) -> list[tuple[str, str]]:
    """Return (line, reading) of each row in the Markdown tables of a text, where `reading` phrases the row as
    a sentence: "Model X200: Price 1,200 EUR". Header rows are excluded.

    The reading phrases a row as a sentence: "Model X200: Price 1,200 EUR".
    """
    rows: list[tuple[str, str]] = []
    header: list[str] = []
    lines = text.split("\n")
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if not is_table_line(line):
            header = []
        elif _SEPARATOR_ROW.match(following):
            header = _cells(line)
        elif not _SEPARATOR_ROW.match(line):
            titles = header + [""] * line.count("|")
            parts = [f"{title} {cell}".strip() for title, cell in zip(titles, _cells(line)) if cell]  # noqa: B905
            reading = f"{parts[0]}: {', '.join(parts[1:])}" if len(parts) > 1 else "".join(parts)
            rows.append((line.strip(), reading))
    return rows


def is_table_line(line: str) -> bool:
    """Return whether a line is part of a Markdown table."""
    return line.lstrip().startswith("|") and line.count("|") > 1


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _paragraphs(text: str) -> Iterator[str]:
    start = 0
    for match in re.finditer(r"\n+", text):
        before = text[start : match.start()]
        if len(match[0]) > 1 or _line_ends_here(before.rsplit("\n", 1)[-1], text[match.end() :][:40]):
            yield before
            start = match.end()
    yield text[start:]


def _line_ends_here(line: str, following: str) -> bool:
    if line.startswith("#") or following.startswith(("#", "|")) or _BULLET.match(following):
        return True
    return line.rstrip().endswith((".", "!", "?", ":"))


def _split_paragraph(paragraph: str) -> Iterator[str]:
    start = 0
    for match in _BREAK.finditer(paragraph):
        if sentence := paragraph[start : match.end()].strip():
            if _ends_in_abbreviation(sentence):
                continue
            yield sentence
        start = match.end()
    if rest := paragraph[start:].strip():
        yield rest


def _ends_in_abbreviation(sentence: str) -> bool:
    match = _ABBREVIATED.search(sentence)
    token = match[1].lower() if match else ""
    return token in _ABBREVIATIONS or len(token) == 1 or (token.isdigit() and len(token) == 2)


_FEWEST_WORDS = 3  # minimum length of a sentence; shorter pieces are headings, page numbers or captions
_LEADING_MARK = re.compile(r"^\s*(?:#{1,6}\s+|[-*•‣▪◦·–]\s*|\(?\d{1,2}[.)]\s+)")
_ATTRIBUTE = {'"': "&quot;", "\n": " ", "\r": " ", "\t": " "}


@dataclass(frozen=True)
class Passage:
    """A sentence or table row, the smallest unit that an answer can quote.

    Attributes:
        quote: verbatim from the block, with white space collapsed.
        reading: text for the reader; differs from the quote for table rows.
        block_index: position of its block among all blocks of the prompt.
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
        """The passage as a sentence in an answer, without list markers and with tag-like text escaped."""
        text = _LEADING_MARK.sub("", self.reading).strip()
        return plain(text if text.endswith((".", "!", "?", ":", "…")) else f"{text}.")

    @property
    def cited(self) -> str:
        """The statement followed by its citation tag with the verbatim quote."""
        doc_id, quote = attribute(self.document.doc_id), attribute(self.quote)
        return f'{self.statement} <cite doc_id="{doc_id}" quote="{quote}"/>'


def attribute(text: str) -> str:
    """Escape text for a double-quoted XML attribute. Line breaks and tabs become spaces."""
    return escape(text, _ATTRIBUTE)


def plain(text: str) -> str:
    """Escape everything in document text that could be read as a tag of the answer."""
    return re.sub(r"<(?=[/\w])", "&lt;", text)


def passages_of(documents: Sequence[Document]) -> list[Passage]:
    """Return the passages of all documents in reading order. Repeated passages, as in overlapping blocks, are
    returned once per document.
    """
    passages: dict[tuple[str, str], Passage] = {}
    blocks = ((document, block) for document in documents for block in document.blocks)
    for index, (document, block) in enumerate(blocks):
        for quote, reading in _pieces(block):
            passages.setdefault((document.doc_id, quote), Passage(document, block, quote, reading, index))
    return list(passages.values())


def _pieces(block: Block) -> Iterator[tuple[str, str]]:
    """Yield (quote, reading) of each table row, then of each sentence in the block; `reading` is the wording
    for an answer. Sentences of fewer than three words are skipped.
    """
    yield from (row for row in table_rows(block.text) if len(words_of(row[0])) > 1)
    prose = "\n".join("" if is_table_line(line) else line for line in block.text.split("\n"))
    for sentence in split_sentences(prose):
        folded = " ".join(sentence.split())
        if len(words_of(folded)) >= _FEWEST_WORDS and folded not in block.heading:
            yield folded, folded


def in_page_order(document: Document) -> Document:
    """Return the document with its blocks sorted by page. Blocks without a page number come first."""
    blocks = sorted(document.blocks, key=lambda block: int(block.page) if block.page.isdecimal() else 0)
    return replace(document, blocks=tuple(blocks))
