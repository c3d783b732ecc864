"""Cuts the blocks of documents into passages: sentences and table rows, each quotable as it stands. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from local.model_server.prompt_reader import Block, Document
from local.model_server.text.run_ons import split_run_on
from local.model_server.text.sentences import is_table_line, split_sentences, table_rows
from local.model_server.text.words import words_of

_FEWEST_WORDS = 3  # shorter pieces are headings, page numbers, captions


@dataclass(frozen=True)
class Passage:
    """The smallest thing that an answer can state.

    Attributes:
        quote: verbatim from the block, white space folded.
        reading: the same for a reader; differs from the quote for table rows.
        block_index: place of its block among all blocks of the prompt, which come best first.
        position: place within its document.
        cells: of a table row, with their header; empty for a sentence.
    """

    document: Document
    block: Block
    quote: str
    reading: str
    block_index: int
    position: int
    cells: tuple[str, ...] = ()
    header: tuple[str, ...] = ()

    @property
    def is_row(self) -> bool:
        return bool(self.cells)


def passages_of(documents: Sequence[Document]) -> list[Passage]:
    """All passages, document by document, in reading order; repetitions (overlap of blocks) only once."""
    passages: list[Passage] = []
    block_index = 0
    for document in documents:
        seen: set[str] = set()
        position = 0
        for block in document.blocks:
            for passage in _passages_of_block(document, block, block_index):
                if passage.quote not in seen:
                    seen.add(passage.quote)
                    passages.append(_at(passage, position))
                    position += 1
            block_index += 1
    return passages


def _at(passage: Passage, position: int) -> Passage:
    return Passage(**{**vars(passage), "position": position})


def _passages_of_block(document: Document, block: Block, block_index: int) -> Iterator[Passage]:
    for row in table_rows(block.text):
        if len(words_of(row.line)) >= 2:
            yield Passage(document, block, row.line, row.reading, block_index, 0, row.cells, row.header)
    prose = "\n".join("" if is_table_line(line) else line for line in block.text.split("\n"))
    for sentence in (piece for whole in split_sentences(prose) for piece in split_run_on(whole)):
        folded = " ".join(sentence.split())
        if len(words_of(folded)) >= _FEWEST_WORDS and folded not in block.heading:
            yield Passage(document, block, folded, folded, block_index, 0)
