"""Summarises documents: the central sentences of each, in their order, each cited."""

from collections.abc import Sequence
from dataclasses import replace

from local.model_server.answers.content import abstain_from
from local.model_server.answers.markup import cite, plain, statement
from local.model_server.answers.material import Material
from local.model_server.answers.phrases import phrases_for
from local.model_server.prompt_reader import Document
from local.model_server.text.central import central_indices, is_byline
from local.model_server.text.passages import Passage, passages_of

SENTENCES_ONE_DOCUMENT = 7
SENTENCES_EACH = 4
SENTENCES_PER_PARAGRAPH = 3


def answer_summary(material: Material) -> str:
    """A narrative per document that has blocks, headed by its title; abstains when there is no text."""
    documents = [document for document in material.documents if passages_of([document])]
    if not documents:
        return abstain_from(material.question)
    count = SENTENCES_ONE_DOCUMENT if len(documents) == 1 else SENTENCES_EACH
    return "\n\n".join(_summarise(document, count, material) for document in documents)


def _summarise(document: Document, count: int, material: Material) -> str:
    passages = _sentences_first(passages_of([_in_page_order(document)]))
    indices = central_indices([passage.reading for passage in passages], count, material.embedder)
    sentences = [f"{statement(passages[index])} {cite(passages[index])}" for index in indices]
    paragraphs = [
        " ".join(sentences[start : start + SENTENCES_PER_PARAGRAPH])
        for start in range(0, len(sentences), SENTENCES_PER_PARAGRAPH)
    ]
    title = phrases_for(material.question).summary_of.format(plain(document.title))
    return "\n\n".join([title, *paragraphs])


def _in_page_order(document: Document) -> Document:
    """Blocks come best first; a summary follows the document. Without page numbers they stay as they came."""
    blocks = sorted(document.blocks, key=lambda block: int(block.page) if block.page.isdecimal() else 0)
    return replace(document, blocks=tuple(blocks))


def _sentences_first(passages: Sequence[Passage]) -> list[Passage]:
    """Rows, headings and bylines only where there is nothing else: they say little by themselves."""
    prose = [
        passage
        for passage in passages
        if passage.quote.endswith((".", "!", "?")) and not is_byline(passage.reading)
    ]
    return prose or list(passages)
