"""Answers from documents: what the prompt shows is quoted with a citation each, or a gap is all there is.

This model needs no tool to answer. What was searched for because of a gap it takes into account; where it
had answered a part, only the gap is left to say.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from local.model_server.embedding.service import EmbeddingService
from local.model_server.prompt_reader import (
    Document,
    element_text,
    has_element,
    is_narrowed,
    merged,
    read_documents,
    read_proofs,
    read_total,
)
from local.model_server.protocol.requests import ChatRequest, Message
from local.model_server.text.central import central_indices
from local.model_server.text.languages import detect_language
from local.model_server.text.passages import Passage, attribute, in_page_order, passages_of, plain
from local.model_server.text.ranking import Ranked, rank_passages
from local.model_server.text.support import is_supported, likelihood, names_of, occurs
from local.model_server.text.words import content_words, stem, stems_of, subject_of, topic_words

BEGIN = "<answer>"
MAX_STATEMENTS = 4
CLOSE_TO_BEST = 0.95  # share of the best score of a further sentence: docs/internals/model-server.md
SAME_STATEMENT = 0.7  # share of common words from which two sentences say the same
MAX_ROWS = 3
NEAR_THE_QUESTION = 0.25  # score below which a passage has nothing to do with it; unmeasured
SUMMARY_SENTENCES = 7
SENTENCES_PER_PARAGRAPH = 3
LIKE_ON_CITED_PAGE = 0.25  # cosine of question and caption; unmeasured
LIKE_ELSEWHERE = 0.5  # unmeasured
_SHOWN = re.compile(r"<documents[^>]*>(.*?)</documents>", re.DOTALL)
_GAP = re.compile(r"<gap\b[^>]*/>")
_HIDDEN = frozenset({"title", "filename", "page_count", "language", "version", "tags"})
_NEXT_STEP = {
    True: "Nennen Sie das Dokument oder das Thema genauer, oder ergänzen Sie ein Dokument dazu.",
    False: "Name the document or the topic more exactly, or add a document that covers it.",
}


@dataclass(frozen=True)
class Material:
    """What an answer is written from: the question and the documents of one conversation.

    Attributes:
        pictures: the documents with their pictures alone; `documents` are without, unless they hold no text.
        narrowed: the documents are those asked for, by their records.
        total: how many documents there are in all, when the prompt shows only some; else 0.
    """

    question: str
    query_type: str
    documents: list[Document]
    pictures: list[Document]
    embedder: EmbeddingService
    narrowed: bool = False
    total: int = 0


def is_answer_turn(request: ChatRequest) -> bool:
    """Whether a message of the user holds a question with its documents."""
    return _asked(request) is not None


def answer_turn(request: ChatRequest, embedder: EmbeddingService) -> str:
    """The answer, its tag before it if tools could have been called; or what is left to say of it."""
    asked = _asked(request)
    if asked is None:
        return ""
    said = [message.text for message in request.messages if message.role == "assistant" and message.text]
    begin = BEGIN if request.tools else ""
    if said and _GAP.sub("", said[-1].replace(BEGIN, "")).strip():
        return begin + "\n".join(_GAP.findall(said[-1]))
    later = "".join(
        inside
        for message in request.messages
        if message is not asked and message.role in ("user", "tool")
        for inside in _SHOWN.findall(message.text)
    )
    head, end, tail = asked.text.partition("</documents>")
    return begin + answer_from_message(f"{head}{later}{end}{tail}", embedder)


def answer_from_message(message: str, embedder: EmbeddingService) -> str:
    """The answer to a message of the user that holds <documents>: Markdown with tags, or the gap alone."""
    documents = merged([*read_documents(message), *read_proofs(message)])
    return _answer(
        Material(
            element_text(message, "question") or "",
            (element_text(message, "query_type") or "").upper(),
            [without_captions(document) for document in documents],
            [_captions(document) for document in documents],
            embedder,
            narrowed=is_narrowed(message),
            total=read_total(message),
        )
    )


def quote_answer(question: str, documents: Sequence[Document], embedder: EmbeddingService) -> str:
    """The answer to a question from documents at hand."""
    return _answer(Material(question, "", list(documents), [], embedder))


def without_captions(document: Document) -> Document:
    """Captions describe pictures in words of a model: they are quoted only where no text is."""
    text = tuple(block for block in document.blocks if block.kind != "image")
    return replace(document, blocks=text) if text else document


def best_of(ranked: Sequence[Ranked], share: float, most: int) -> list[Ranked]:
    """The best passage and more that reach this share of its score and say something else; `most` in all."""
    chosen: list[Ranked] = []
    for item in ranked:
        if item.score < share * ranked[0].score or len(chosen) == most:
            break
        if not any(_says_the_same(item.passage, other.passage) for other in chosen):
            chosen.append(item)
    return chosen


def rank_each(question: str, documents: Sequence[Document], embedder: EmbeddingService) -> list[list[Ranked]]:
    """The passages of each document that are near what is asked of them all.

    Best first; of further documents what is most like the first one's, so that rows say the same of each.
    """
    names = stems_of(" ".join(f"{document.title} {document.filename}" for document in documents))
    subject = subject_of(question, names)
    is_about_names = subject == question
    found: list[list[Ranked]] = []
    for document in documents:
        ranked = rank_passages(subject, passages_of([document]), embedder)
        near = [item for item in ranked if is_about_names or item.score >= NEAR_THE_QUESTION][:MAX_ROWS]
        found.append(_in_step(found[0], near) if found else near)
    return found


def _in_step(first: Sequence[Ranked], items: Sequence[Ranked]) -> list[Ranked]:
    left, ordered = list(items), []
    for anchor in first:
        stems = _stems(anchor.passage)
        if left:
            ordered.append(max(left, key=lambda item: len(stems & _stems(item.passage))))
            left.remove(ordered[-1])
    return ordered + left


def _asked(request: ChatRequest) -> Message | None:
    for message in request.messages:
        is_question = message.role == "user" and has_element(message.text, "documents")
        if is_question and has_element(message.text, "question"):
            return message
    return None


def _captions(document: Document) -> Document:
    return replace(document, blocks=tuple(block for block in document.blocks if block.kind == "image"))


def _answer(material: Material) -> str:
    has_blocks = any(document.blocks for document in material.documents)
    write = _ANSWERS.get(material.query_type, _quote)
    if material.documents and not has_blocks:
        write = _list
    answer = write(material)
    return answer + _figure(answer, material)


def _quote(material: Material) -> str:
    """The few sentences and table rows that say it."""
    passages = passages_of(material.documents)
    ranked = rank_passages(material.question, passages, material.embedder)
    score = likelihood(material.question, ranked, passages, material.embedder)
    if not is_supported(score, material.embedder):
        return _gap(material.question)
    chosen = best_of(ranked, CLOSE_TO_BEST, MAX_STATEMENTS)
    return "\n\n".join(_said(item.passage) for item in chosen) or _gap(material.question)


def _compare(material: Material) -> str:
    """A table with a column for each document, its nearest passages below each other."""
    documents = [document for document in material.documents if document.blocks]
    ranked = rank_each(material.question, documents, material.embedder)
    columns = [(document, items) for document, items in zip(documents, ranked, strict=True) if items]
    if len(columns) < 2:
        return _quote(material)
    rows: list[list[str]] = [[f"{plain(one.title)} ({plain(one.filename)})" for one, _ in columns]]
    rows.append(["---"] * len(columns))
    for place in range(max(len(items) for _, items in columns)):
        cells = (items[place : place + 1] for _, items in columns)
        rows.append([_cell(found[0].passage) if found else "–" for found in cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _summarise(material: Material) -> str:
    """The central sentences of each document, in their order, headed by its title."""
    each = max(2, SUMMARY_SENTENCES // max(len(material.documents), 1))
    parts = []
    for document in material.documents:
        passages = passages_of([in_page_order(document)])
        prose = [one for one in passages if one.quote.endswith((".", "!", "?"))] or passages
        indices = central_indices([one.reading for one in prose], each, material.embedder)
        said = [_said(prose[index]) for index in indices]
        starts = range(0, len(said), SENTENCES_PER_PARAGRAPH)
        paragraphs = [" ".join(said[start : start + SENTENCES_PER_PARAGRAPH]) for start in starts]
        parts += [f"**{plain(document.title)}**", *paragraphs] if said else []
    return "\n\n".join(parts) or _gap(material.question)


def _list(material: Material) -> str:
    """The documents that share most words with the question, each with all that is known of it."""
    documents = material.documents
    if not material.narrowed:
        asked = [stem(word) for word in topic_words(material.question)]
        held = [_stems_of_fields(document) for document in documents]
        matches = [sum(occurs(one, stems) for one in asked) for stems in held]
        documents = [one for one, match in zip(documents, matches, strict=True) if match == max(matches)]
        names = [stem(name) for name in names_of(material.question)]
        if names and not any(occurs(name, stems) for name in names for stems in held):
            documents = []
    if not documents:
        return _gap(material.question)
    of_all = f"/{material.total}" if material.total > len(documents) == len(material.documents) else ""
    noun = "Dokumente" if detect_language(material.question) == "de" else "Documents"
    return "\n".join([f"{noun} ({len(documents)}{of_all}):", "", *(_list_item(one) for one in documents)])


def _list_item(document: Document) -> str:
    """- **Title** (file.pdf), manual, 2024-05-01: brief summary"""
    shown = [
        value[:10] if "date" in name else value
        for name, value in document.attributes.items()
        if name not in _HIDDEN and value
    ]
    summary = " ".join(document.summary.split())
    details = "".join(f", {plain(value)}" for value in shown)
    return f"- **{plain(document.title)}** ({plain(document.filename)}){details}" + (
        f": {plain(summary)}" if summary else ""
    )


def _stems_of_fields(document: Document) -> set[str]:
    return set(stems_of(" ".join([*document.attributes.values(), document.summary])))


_ANSWERS: dict[str, Callable[[Material], str]] = {
    "DOCUMENT_SUMMARY": _summarise,
    "COMPARISON": _compare,
    "LISTING": _list,
    "METADATA_SEARCH": _list,
}


def _figure(answer: str, material: Material) -> str:
    """The tag of the picture that is most like the question, if it is in a document that the answer cites."""
    cited = [passage for passage in passages_of(material.documents) if passage.cite in answer]
    documents = {passage.document.doc_id for passage in cited}
    pages = {(passage.document.doc_id, passage.block.page) for passage in cited}
    found = [
        (document.doc_id, block)
        for document in material.pictures
        for block in document.blocks
        if block.block_id and document.doc_id in documents
    ]
    if not found:
        return ""
    vectors = material.embedder.embed([material.question, *(block.text for _, block in found)])
    likeness = vectors[1:] @ vectors[0]
    place = int(likeness.argmax())
    doc_id, block = found[place]
    least = LIKE_ON_CITED_PAGE if (doc_id, block.page) in pages else LIKE_ELSEWHERE
    return f'\n\n<figure block_id="{attribute(block.block_id)}"/>' if likeness[place] >= least else ""


def _gap(question: str) -> str:
    """The tag that says that the documents do not hold the answer."""
    next_step = _NEXT_STEP[detect_language(question) == "de"]
    return f'<gap missing="{attribute(question.strip().rstrip("?"))}" next_step="{attribute(next_step)}"/>'


def _said(passage: Passage) -> str:
    return f"{passage.statement} {passage.cite}"


def _cell(passage: Passage) -> str:
    return f"{passage.statement.replace('|', chr(92) + '|')} {passage.cite}"


def _says_the_same(one: Passage, other: Passage) -> bool:
    """Whether most words of the shorter one are in the other, and no number tells them apart."""
    first, second = _stems(one), _stems(other)
    if any(word[0].isdigit() for word in first ^ second):
        return False
    return len(first & second) >= SAME_STATEMENT * max(1, min(len(first), len(second)))


def _stems(passage: Passage) -> set[str]:
    return {stem(word) for word in content_words(passage.reading)}
