"""Lists documents, or reads a field of one (who wrote it, when, what kind), from their attributes alone."""

import re
from collections.abc import Sequence

from local.model_server.answers.markup import abstain, plain
from local.model_server.answers.material import Material
from local.model_server.answers.phrases import Phrases, phrases_for
from local.model_server.prompt_reader import Document
from local.model_server.text.names import NAME, names_of, occurs
from local.model_server.text.words import is_content_word, stem, stems_of, words_of

_NO_FIELDS = frozenset({"page_count", "language"})
_FIELD_QUESTIONS = {
    "author": re.compile(
        r"\b(who (wrote|is the author|authored)|author of|wer hat|verfasser|autor)\b", re.IGNORECASE
    ),
    "department": re.compile(r"\b(which|what|welche) (department|abteilung)\b", re.IGNORECASE),
    "upload_date": re.compile(r"\b(when (was|were|is|did)|what date|wann|welches datum)\b", re.IGNORECASE),
    "document_type": re.compile(r"\b(what (type|kind) of document|welche art von dokument)\b", re.IGNORECASE),
}


def answer_listing(material: Material) -> str:
    """A Markdown list of the documents given, or of those that fit what the question asks for."""
    return _list(material, _fitting(material))


def answer_metadata(material: Material) -> str:
    """The field asked for of the document that the question names; else the documents that fit."""
    wanted = next((name for name, asks in _FIELD_QUESTIONS.items() if asks.search(material.question)), None)
    if wanted is None or not material.documents:
        return _list(material, () if _names_somebody_unknown(material) else _fitting(material))
    phrases = phrases_for(material.question)
    if _names_another_work(material):
        return _list(material, ())
    document = _most_named(material.documents, material.question_stems)
    value = document.attributes.get(wanted, "")
    label = _labels(phrases)[wanted]
    if not value:
        return abstain(phrases.attribute_missing.format(label, document.title), phrases.next_step)
    shown = value[:10] if wanted == "upload_date" else value
    return f"**{plain(document.title)}** ({plain(document.filename)}), {label}: {plain(shown)}."


def _list(material: Material, documents: Sequence[Document]) -> str:
    phrases = phrases_for(material.question)
    if not documents:
        return abstain(phrases.no_documents.format(material.question.strip().rstrip("?")), phrases.next_step)
    head = phrases.one_document if len(documents) == 1 else phrases.documents.format(len(documents))
    if material.total > len(documents) == len(material.documents):
        head = phrases.some_documents.format(len(documents), material.total)
    return "\n".join([head, "", *(_list_item(document) for document in documents)])


def _fitting(material: Material) -> list[Document]:
    """The documents with most of the question's words in their fields; all when no field holds any."""
    matches = [material.question_stems & _field_stems(document) for document in material.documents]
    most = max((len(match) for match in matches), default=0)
    return [found for found, match in zip(material.documents, matches, strict=True) if len(match) == most]


def _names_somebody_unknown(material: Material) -> bool:
    """Whether the question names a person, department or year that no document has in its fields."""
    held = set().union(*(_field_stems(document) for document in material.documents))
    names = [word for found in NAME.findall(material.question) for word in words_of(found)]
    return any(is_content_word(name) and stem(name) not in held for name in names)


def _names_another_work(material: Material) -> bool:
    """Whether the question holds names, and no document any of them: it asks for something not at hand."""
    held = set().union(*(_field_stems(document) for document in material.documents))
    names = [name for name in names_of(material.question) if name.isalpha()]
    return bool(names) and all(not occurs(stem(name), held) for name in names)


def _field_stems(document: Document) -> set[str]:
    values = [value for name, value in document.attributes.items() if name not in _NO_FIELDS]
    return set(stems_of(" ".join([*values, document.summary])))


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
