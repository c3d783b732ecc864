"""What an answer is written from: the question and the documents of one prompt, and the embedding service."""

import re
from dataclasses import dataclass, replace

from local.model_server.embedding.service import EmbeddingService
from local.model_server.prompt_reader import (
    Document,
    Finding,
    element_text,
    read_documents,
    read_findings,
    read_total,
)
from local.model_server.text.words import stem, topic_words

_PICTURE = re.compile(
    r"\b(figure|picture|image|diagram|drawing|chart|graph|photo|plot|abbildung|bild|grafik|diagramm|zeichnung)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Material:
    """One prompt, read.

    Attributes:
        query_type: as the application classified the question; empty when it did not.
        pictures: the documents with their pictures alone, which `documents` may lack.
        findings: notes of sub-agents.
        total: how many documents there are in all, when the prompt shows only some; else 0.
    """

    question: str
    query_type: str
    documents: tuple[Document, ...]
    embedder: EmbeddingService
    total: int = 0
    pictures: tuple[Document, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def has_blocks(self) -> bool:
        return any(document.blocks for document in self.documents)

    @property
    def question_stems(self) -> frozenset[str]:
        return frozenset(stem(word) for word in topic_words(self.question))


def read_material(message: str, embedder: EmbeddingService) -> Material:
    """Read a user message that holds <documents>."""
    question = element_text(message, "question") or ""
    documents = read_documents(message)
    pictures = [
        replace(document, blocks=tuple(block for block in document.blocks if block.kind == "image"))
        for document in documents
    ]
    if not asks_for_picture(question):
        documents = [without_captions(document) for document in documents]
    return Material(
        question=question,
        query_type=(element_text(message, "query_type") or "").upper(),
        documents=tuple(documents),
        embedder=embedder,
        total=read_total(message),
        pictures=tuple(pictures),
        findings=tuple(read_findings(message)),
    )


def asks_for_picture(question: str) -> bool:
    """Whether the question speaks of a figure, a diagram or the like."""
    return _PICTURE.search(question) is not None


def without_captions(document: Document) -> Document:
    """Captions describe pictures in words of a model: nobody asked for those when text is there to quote."""
    text = tuple(block for block in document.blocks if block.kind != "image")
    return replace(document, blocks=text) if text else document
