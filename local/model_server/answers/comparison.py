"""Compares documents in a table: a column per document, a row per aspect, a citation in each cell.

Sentences that say the same with other numbers are named as different values below it.
"""

from collections import Counter
from collections.abc import Sequence

from local.model_server.answers.content import abstain_from, answer_content
from local.model_server.answers.markup import cite, plain, statement, table_cell
from local.model_server.answers.material import Material
from local.model_server.answers.notes import compared_rows
from local.model_server.answers.phrases import Phrases, phrases_for
from local.model_server.answers.rows import (
    MIN_SCORE,
    Row,
    Rows,
    compare,
    names_of_documents,
    numbers_of,
    pattern_of,
)
from local.model_server.answers.subjects import meant_documents
from local.model_server.prompt_reader import Document
from local.model_server.text.asked import asked_of
from local.model_server.text.aspects import topic_stems
from local.model_server.text.passages import Passage
from local.model_server.text.words import content_words, stem


def answer_comparison(material: Material) -> str:
    """A Markdown table and the differing values; with one document an ordinary answer."""
    documents = [document for document in material.documents if document.blocks]
    if len(documents) < 2:
        return answer_content(material)
    asked = asked_of(material.question)
    documents = meant_documents(asked, documents)
    known = compared_rows(material.findings, documents)
    compared = compare(asked, documents, material.embedder, known)
    if not compared.rows or _is_beside_the_point(material, compared):
        return abstain_from(material.question)
    rows = compared.rows
    phrases = phrases_for(material.question)
    names = ", ".join(f"**{plain(name)}**" for name in _names(documents))
    parts = [phrases.differences.format(names), _table(documents, rows, phrases)]
    if changes := [_change(row, documents) for row in rows if row.differs]:
        parts.append("\n".join([phrases.changed, "", *changes]))
    return "\n\n".join(parts)


def _is_beside_the_point(material: Material, compared: Rows) -> bool:
    """Whether the question names an aspect that nothing is close to; "what changed?" names none."""
    aspects = topic_stems(material.question, names_of_documents(material.documents))
    return bool(aspects) and compared.best_score < MIN_SCORE


def _table(documents: Sequence[Document], rows: Sequence[Row], phrases: Phrases) -> str:
    head = [phrases.aspect, *(table_cell(name) for name in _names(documents))]
    lines = [_line(head), _line(["---"] * len(head))]
    for row in rows:
        cells = [_cell(row.cells.get(document.doc_id), phrases) for document in documents]
        lines.append(_line([table_cell(aspect_of(row)), *cells]))
    return "\n".join(lines)


def _names(documents: Sequence[Document]) -> list[str]:
    """Titles, with the file's name where two documents share one: two editions of a report."""
    titles = [document.title for document in documents]
    return [
        f"{document.title} ({document.filename})" if titles.count(document.title) > 1 else document.title
        for document in documents
    ]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(passage: Passage | None, phrases: Phrases) -> str:
    if passage is None:
        return phrases.not_mentioned
    return f"{statement(passage).replace('|', chr(92) + '|')} {cite(passage)}"


def aspect_of(row: Row) -> str:
    """A name for the row: its own, the table row's first cell, the last heading, or what its cells share."""
    first = next(iter(row.cells.values()))
    if row.aspect:
        return row.aspect[:1].upper() + row.aspect[1:]
    if first.is_row:
        return first.cells[0]
    if first.block.heading:
        return first.block.heading.rsplit(">", 1)[-1].strip()
    patterns = [pattern_of(passage) for passage in row.cells.values()]
    shared = Counter(word for pattern in patterns for word in pattern)
    words = [word for word in content_words(first.reading) if 2 * shared[stem(word)] >= len(patterns)]
    return " ".join(words[:3]).capitalize() or "–"


def _change(row: Row, documents: Sequence[Document]) -> str:
    named = zip(_names(documents), documents, strict=True)
    held = [(name, row.cells[document.doc_id]) for name, document in named if document.doc_id in row.cells]
    values = [f"{plain(name)}: {', '.join(numbers_of(passage))} {cite(passage)}" for name, passage in held]
    return f"- {plain(aspect_of(row))}: {'; '.join(values)}"
