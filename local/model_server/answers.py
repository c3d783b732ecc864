"""Writes extractive answers: sentences quoted from the documents in the prompt, with citations, or a gap tag.

No tool is needed. Documents found by a search for a gap are taken into account; if a part was already
answered, only the gap remains to be written.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import zip_longest

from local.model_server.embedding.service import EmbeddingService
from local.model_server.next_questions import next_questions
from local.model_server.prompt_reader import (
    Document,
    element_attribute,
    element_text,
    has_element,
    merge_documents,
    read_documents,
    read_proofs,
)
from local.model_server.protocol.requests import ChatRequest, Message
from local.model_server.text.passages import Passage, attribute, in_page_order, passages_of, plain, spread
from local.model_server.text.ranking import (
    best_of,
    is_supported,
    names_of,
    occurs,
    rank_passages,
    subject_of,
)
from local.model_server.text.words import detect_language, stem, stems_of, topic_stems

BEGIN = "<answer>"
MAX_STATEMENTS = 4
CLOSE_TO_BEST = 0.95  # further sentences must reach this share of the best score
MAX_ROWS = 3
NEAR_THE_QUESTION = 0.25  # unmeasured; passages with a lower score count as unrelated to the question
SUMMARY_SENTENCES = 7
SENTENCES_PER_PARAGRAPH = 3
PICTURE_LIKENESS = 0.25  # minimum cosine between question and caption for showing a picture; unmeasured
_SHOWN = re.compile(r"<documents[^>]*>(.*?)</documents>", re.DOTALL)
_GAP = re.compile(r"<gap\b[^>]*/>")
_HIDDEN = frozenset({"title", "filename", "page_count", "language", "version", "tags"})
_MISSING = {
    True: "Die Dokumente beantworten das nicht: {}.",
    False: "The documents don't answer this: {}.",
}
_NEXT_STEP = {
    True: "Nennen Sie das Dokument oder das Thema genauer, oder ergänzen Sie ein Dokument dazu.",
    False: "Name the document or the topic more exactly, or add a document that covers it.",
}


@dataclass(frozen=True)
class Material:
    """The question, documents and embedder from which an answer is written. `documents` contains picture
    captions only for documents without text.

    `message` is the user's message, whose other elements say how to answer.
    """

    question: str
    documents: list[Document]
    embedder: EmbeddingService
    message: str = ""


def find_question_message(request: ChatRequest) -> Message | None:
    """Return the user message that contains both <question> and <documents>, or None."""
    return next(
        (
            one
            for one in request.messages
            if one.role == "user" and has_element(one.text, "documents") and has_element(one.text, "question")
        ),
        None,
    )


def answer_turn(request: ChatRequest, embedder: EmbeddingService) -> str:
    """Return the answer to a turn, starting with <answer> if the request offers tools. If the conversation
    already contains an answer, return only the gap tags of that answer.
    """
    question = find_question_message(request) or request.last_user_message
    previous_text = "".join([text for text in request.texts_of("assistant") if text][-1:])
    begin = BEGIN if request.tools else ""
    if _GAP.sub("", previous_text.replace(BEGIN, "")).strip():
        return begin + "\n".join(_GAP.findall(previous_text))
    others = (one for one in request.messages if one is not question and one.role in ("user", "tool"))
    later = "".join(inside for message in others for inside in _SHOWN.findall(message.text))
    head, end, tail = question.text.partition("</documents>")
    return begin + answer_from_message(f"{head}{later}{end}{tail}", embedder)


def answer_from_message(message: str, embedder: EmbeddingService) -> str:
    """Answer a user message that contains <documents>. Return Markdown with citation tags, or only a
    gap tag.
    """
    prompt_documents = merge_documents([*read_documents(message), *read_proofs(message)])
    question = element_text(message, "question") or ""
    documents = [without_captions(document) for document in prompt_documents]
    material = Material(question, documents, embedder, message)
    write = _ANSWERS.get((element_text(message, "query_type") or "").upper(), quote_answer)
    if documents and not any(document.blocks for document in documents):
        write = _list
    answer = write(material)
    further = next_questions(question, answer, documents)
    return answer + _figure(answer, material, prompt_documents) + further


def without_captions(document: Document) -> Document:
    """Return the document without its picture captions, which a model wrote. A document that has only
    captions is returned unchanged.
    """
    text = tuple(block for block in document.blocks if block.kind != "image")
    return replace(document, blocks=text) if text else document


def quote_answer(material: Material) -> str:
    """Answer with at most four quoted sentences and table rows, or with a gap if nothing supports an
    answer.
    """
    passages = passages_of(material.documents)
    ranked = rank_passages(material.question, passages, material.embedder)
    if not is_supported(material.question, ranked, passages):
        return _gap(material.question)
    return "\n\n".join(passage.cited for passage in best_of(ranked, CLOSE_TO_BEST, MAX_STATEMENTS))


def rank_each(material: Material) -> list[list[Passage]]:
    """Return the best passages of each document, best first and at most three per document. Words of the
    question that only name a document don't affect the ranking.
    """
    subject = subject_of(material.question, material.documents)
    least = -1.0 if subject == material.question else NEAR_THE_QUESTION
    rankings = [rank_passages(subject, passages_of([one]), material.embedder) for one in material.documents]
    return [[item.passage for item in ranked if item.score >= least][:MAX_ROWS] for ranked in rankings]


def _compare(material: Material) -> str:
    """Return a Markdown table with one column per document, filled with the passages closest to the
    question.
    """
    columns = [passages for passages in rank_each(material) if passages]
    if len(columns) < 2:
        return quote_answer(material)
    documents = [passages[0].document for passages in columns]
    rows = [[f"{plain(one.title)} ({plain(one.filename)})" for one in documents], ["---"] * len(columns)]
    rows += [[_cell(one) if one else "–" for one in passages] for passages in zip_longest(*columns)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cell(passage: Passage) -> str:
    """Return a passage as a table cell. Only the text before the citation is escaped, so the quotation stays
    verbatim.
    """
    statement, tag, rest = passage.cited.partition(" <cite ")
    return statement.replace("|", "\\|") + tag + rest


def _summarise(material: Material) -> str:
    """Return a summary: for each document its title and sentences sampled evenly from the text, in page
    order.
    """
    each = max(2, SUMMARY_SENTENCES // max(len(material.documents), 1))
    parts = []
    for document in material.documents:
        passages = passages_of([in_page_order(document)])
        chosen = spread([one for one in passages if one.is_prose] or passages, each)
        sentences = [passage.cited for passage in chosen]
        starts = range(0, len(sentences), SENTENCES_PER_PARAGRAPH)
        paragraphs = [" ".join(sentences[start : start + SENTENCES_PER_PARAGRAPH]) for start in starts]
        parts += [f"**{plain(document.title)}**", *paragraphs] if sentences else []
    return "\n\n".join(parts) or _gap(material.question)


def _list(material: Material) -> str:
    """Return a Markdown list of the documents that share most words with the question, with their
    metadata.
    """
    documents = material.documents
    if not element_attribute(material.message, "documents", "filters"):
        names = [stem(name) for name in names_of(material.question)]
        terms = names or topic_stems(material.question)
        document_stems = [
            set(stems_of(" ".join([*one.attributes.values(), one.summary]))) for one in documents
        ]
        matches = [sum(occurs(one, stems) for one in terms) for stems in document_stems]
        most = max([*matches, 1 if names else 0])
        documents = [one for one, match in zip(documents, matches, strict=True) if match == most]
    if not documents:
        return _gap(material.question)
    total = int(element_attribute(material.message, "documents", "total") or 0)
    of_all = f"/{total}" if total > len(documents) == len(material.documents) else ""
    noun = "Dokumente" if detect_language(material.question) == "de" else "Documents"
    return "\n".join([f"{noun} ({len(documents)}{of_all}):", "", *(_list_item(one) for one in documents)])


def _list_item(document: Document) -> str:
    """Return one list item: `- **Title** (file.pdf), manual, 2024-05-01: brief summary`."""
    attributes = (
        (name, value) for name, value in document.attributes.items() if name not in _HIDDEN and value
    )
    details = "".join(f", {plain(value[:10] if 'date' in name else value)}" for name, value in attributes)
    summary = " ".join(document.summary.split())
    item = f"- **{plain(document.title)}** ({plain(document.filename)}){details}"
    return f"{item}: {plain(summary)}" if summary else item


_ANSWERS: dict[str, Callable[[Material], str]] = {
    "DOCUMENT_SUMMARY": _summarise,
    "COMPARISON": _compare,
    "LISTING": _list,
    "METADATA_SEARCH": _list,
}


def _figure(answer: str, material: Material, documents: list[Document]) -> str:
    """Return a figure tag for the picture most similar to the question, or "". Only pictures of cited
    documents are considered.
    """
    pictures = [
        block
        for document in documents
        if f'<cite doc_id="{attribute(document.doc_id)}"' in answer
        for block in document.blocks
        if block.kind == "image" and block.block_id
    ]
    if not pictures:
        return ""
    vectors = material.embedder.embed([material.question, *(block.text for block in pictures)])
    likeness = vectors[1:] @ vectors[0]
    best = pictures[int(likeness.argmax())]
    is_like = likeness.max() >= PICTURE_LIKENESS
    return f'\n\n<figure block_id="{attribute(best.block_id)}"/>' if is_like else ""


def _gap(question: str) -> str:
    """Return a gap tag, which says that the documents don't answer the question and suggests what to do
    next.
    """
    next_step = _NEXT_STEP[detect_language(question) == "de"]
    missing = _MISSING[detect_language(question) == "de"].format(question.strip().rstrip("?"))
    return f'<gap missing="{attribute(missing)}" next_step="{attribute(next_step)}"/>'
