"""Lists documents, or reads a field of one (who wrote it, when, what kind), from their attributes alone."""

import re
from collections.abc import Sequence

from local.model_server.answers.markup import abstain, plain
from local.model_server.answers.material import Material
from local.model_server.answers.phrases import Phrases, phrases_for
from local.model_server.prompt_reader import Document
from local.model_server.text.words import stems_of

_FIELD_QUESTIONS = {
    "author": re.compile(
        r"\b(who (wrote|is the author|authored)|author of|wer hat|verfasser|autor)\b", re.IGNORECASE
    ),
    "department": re.compile(r"\b(which|what|welche) (department|abteilung)\b", re.IGNORECASE),
    "upload_date": re.compile(r"\b(when (was|were|is|did)|what date|wann|welches datum)\b", re.IGNORECASE),
    "document_type": re.compile(r"\b(what (type|kind) of document|welche art von dokument)\b", re.IGNORECASE),
}


def answer_listing(material: Material) -> str:
    """A Markdown list of all documents given; the application has chosen them."""
    phrases = phrases_for(material.question)
    if not material.documents:
        return abstain(phrases.no_documents.format(material.question.strip().rstrip("?")), phrases.next_step)
    count = len(material.documents)
    head = phrases.one_document if count == 1 else phrases.documents.format(count)
    return "\n".join([head, "", *(_list_item(document) for document in material.documents)])


def answer_metadata(material: Material) -> str:
    """The field asked for of the document that the question names; a list when it asks for none."""
    wanted = next((name for name, asks in _FIELD_QUESTIONS.items() if asks.search(material.question)), None)
    if wanted is None or not material.documents:
        return answer_listing(material)
    phrases = phrases_for(material.question)
    document = _most_named(material.documents, material.question_stems)
    value = document.attributes.get(wanted, "")
    label = _labels(phrases)[wanted]
    if not value:
        return abstain(phrases.attribute_missing.format(label, document.title), phrases.next_step)
    shown = value[:10] if wanted == "upload_date" else value
    return f"**{plain(document.title)}** ({plain(document.filename)}), {label}: {plain(shown)}."


def _most_named(documents: Sequence[Document], question_stems: frozenset[str]) -> Document:
    """The document whose names share most words with the question; the first of equals."""
    return max(
        documents,
        key=lambda document: len(question_stems & set(stems_of(f"{document.title} {document.filename}"))),
    )


def _labels(phrases: Phrases) -> dict[str, str]:
    return {
        "author": phrases.author,
        "department": phrases.department,
        "upload_date": phrases.date,
        "document_type": phrases.document_type,
    }


def _list_item(document: Document) -> str:
    """- **Title** (file.pdf), manual, 2024-05-01: brief summary"""
    details = [document.attributes.get("document_type", ""), document.attributes.get("upload_date", "")[:10]]
    shown = "".join(f", {plain(detail)}" for detail in details if detail)
    summary = " ".join(document.summary.split())
    return f"- **{plain(document.title)}** ({plain(document.filename)}){shown}" + (
        f": {plain(summary)}" if summary else ""
    )
