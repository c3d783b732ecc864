"""Puts pictures into an answer: behind the paragraph that cites the page which they stand on.

A picture must have to do with the question: its caption is near to it in meaning, nearer when it stands on a
page that the answer does not cite.
"""

import re
from dataclasses import dataclass

from local.model_server.answers.markup import figure
from local.model_server.answers.material import Material, asks_for_picture
from local.model_server.prompt_reader import Block, Document, unescape

LIKE_ON_CITED_PAGE = 0.25  # cosine of question and caption; unmeasured
LIKE_ELSEWHERE = 0.5  # unmeasured
LIKE_WHEN_ASKED_FOR = 0.1  # for a question that speaks of a picture; unmeasured
MAX_FIGURES = {"DOCUMENT_SUMMARY": 2, "COMPARISON": 2}  # of other answers: one
_CITE = re.compile(r'<cite doc_id="([^"]*)" quote="([^"]*)"/>')


@dataclass(frozen=True)
class _Choice:
    block: Block
    likeness: float
    line: int | None


def with_figures(answer: str, material: Material) -> str:
    """The answer with a figure tag on a line of its own for each picture that belongs to it."""
    lines = answer.split("\n")
    cited = _cited_pages(lines, material)
    if not cited:
        return answer
    choices = [choice for choice in _choices(cited, material) if choice.likeness >= _least(choice, material)]
    choices.sort(key=lambda choice: (choice.line is None, -choice.likeness))
    placed: dict[int, list[str]] = {}
    for choice in choices[: MAX_FIGURES.get(material.query_type, 1)]:
        line = len(lines) - 1 if choice.line is None else _paragraph_end(lines, choice.line)
        placed.setdefault(line, []).extend(["", figure(choice.block.block_id)])
    return "\n".join(part for place, line in enumerate(lines) for part in (line, *placed.get(place, ())))


def _choices(cited: dict[tuple[str, str], int], material: Material) -> list[_Choice]:
    """The pictures of the cited documents, with the line that cites their page."""
    documents = {doc_id for doc_id, _ in cited}
    found = [
        (document, block)
        for document in material.pictures
        for block in document.blocks
        if document.doc_id in documents and block.block_id
    ]
    if not found:
        return []
    vectors = material.embedder.embed([material.question, *(block.text for _, block in found)])
    return [
        _Choice(block, float(likeness), cited.get((document.doc_id, block.page)))
        for (document, block), likeness in zip(found, vectors[1:] @ vectors[0], strict=True)
    ]


def _least(choice: _Choice, material: Material) -> float:
    if asks_for_picture(material.question):
        return LIKE_WHEN_ASKED_FOR
    return LIKE_ELSEWHERE if choice.line is None else LIKE_ON_CITED_PAGE


def _cited_pages(lines: list[str], material: Material) -> dict[tuple[str, str], int]:
    """(doc_id, page) of each quotation in the answer, and the first line that cites it."""
    documents = {document.doc_id: document for document in material.documents}
    pages: dict[tuple[str, str], int] = {}
    for place, line in enumerate(lines):
        for doc_id, quote in _CITE.findall(line):
            page = _page_of(documents.get(unescape(doc_id)), unescape(quote))
            if page is not None:
                pages.setdefault((unescape(doc_id), page), place)
    return pages


def _page_of(document: Document | None, quote: str) -> str | None:
    blocks = document.blocks if document else ()
    return next((block.page for block in blocks if quote in " ".join(block.text.split())), None)


def _paragraph_end(lines: list[str], place: int) -> int:
    """The last line of the paragraph, list or table that `place` lies in."""
    end = place
    while end + 1 < len(lines) and lines[end + 1].strip():
        end += 1
    return end
