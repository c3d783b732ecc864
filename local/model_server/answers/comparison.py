"""Compares documents in a table: a column per document, a row per aspect, a citation in each cell.

Sentences that say the same with other numbers come first, and are named as different values.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from local.model_server.answers.content import abstain_from, answer_content
from local.model_server.answers.markup import cite, plain, statement, table_cell
from local.model_server.answers.material import Material
from local.model_server.answers.phrases import Phrases, phrases_for
from local.model_server.prompt_reader import Document
from local.model_server.text.central import is_byline
from local.model_server.text.passages import Passage, passages_of
from local.model_server.text.ranking import Ranked, rank_passages
from local.model_server.text.words import content_words, stem, stems_of

MAX_ROWS = 6
MAX_CHANGES = 4
SAME_PATTERN = 0.6  # shared words of all words, numbers left out; unmeasured
SAME_ASPECT = 0.3
FIT_FOR_ROW = 0.6  # share of the document's best score; unmeasured
MIN_SCORE = 0.25  # below that a passage has nothing to do with the question
_COMPARING = frozenset(
    stem(word)
    for word in """change changed changes differ difference differences different between version
    versions versus two both new old unterschied unterschiede unterscheiden geändert änderung neu
    alt""".split()
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True)
class Row:
    """One aspect: the passage of each document that has one, by doc_id."""

    cells: dict[str, Passage]
    differs: bool


def answer_comparison(material: Material) -> str:
    """A Markdown table and the differing values; with one document an ordinary answer."""
    documents = [document for document in material.documents if document.blocks]
    if len(documents) < 2:
        return answer_content(material)
    ranked = {
        document.doc_id: rank_passages(material.question, passages_of([document]), material.embedder)
        for document in documents
    }
    rows = _rows(documents, ranked)
    if not rows or _is_beside_the_point(material, ranked):
        return abstain_from(material.question)
    phrases = phrases_for(material.question)
    names = ", ".join(f"**{plain(name)}**" for name in _names(documents))
    parts = [phrases.differences.format(names), _table(documents, rows, phrases)]
    if changes := [_change(row, documents) for row in rows if row.differs]:
        parts.append("\n".join([phrases.changed, "", *changes]))
    return "\n\n".join(parts)


def _is_beside_the_point(material: Material, ranked: dict[str, list[Ranked]]) -> bool:
    """Whether the question names an aspect that nothing is close to; "what changed?" names none."""
    names = stems_of(" ".join(f"{document.title} {document.filename}" for document in material.documents))
    aspects = material.question_stems - set(names) - _COMPARING
    best = max((items[0].score for items in ranked.values() if items), default=0.0)
    return bool(aspects) and best < MIN_SCORE


def _rows(documents: Sequence[Document], ranked: dict[str, list[Ranked]]) -> list[Row]:
    everything = {document.doc_id: passages_of([document]) for document in documents}
    relevant = {doc_id: _relevant(items) for doc_id, items in ranked.items()}
    rows: list[Row] = []
    used: set[tuple[str, str]] = set()
    changed = _changed_pairs(documents, everything)
    # What the question asks about first; other changed values fill up.
    places = {item.passage.quote: place for items in ranked.values() for place, item in enumerate(items)}
    changed.sort(
        key=lambda row: min(places.get(passage.quote, len(places)) for passage in row.cells.values())
    )
    for row in [*changed[:MAX_CHANGES], *_matched_rows(documents, relevant)]:
        keys = {(doc_id, passage.quote) for doc_id, passage in row.cells.items()}
        if not keys & used and len(rows) < MAX_ROWS:
            used |= keys
            rows.append(row)
    return rows


def _relevant(items: Sequence[Ranked]) -> list[Passage]:
    best = items[0].score if items else 0.0
    fitting = [item.passage for item in items if item.score >= FIT_FOR_ROW * best]
    return [passage for passage in fitting if not is_byline(passage.reading)][:MAX_ROWS]


def _changed_pairs(documents: Sequence[Document], everything: dict[str, list[Passage]]) -> list[Row]:
    """Passages of the first document whose twin in another one has other numbers."""
    first, *others = documents
    rows = []
    for passage in everything[first.doc_id]:
        if not _NUMBER.search(passage.reading) or is_byline(passage.reading):
            continue
        twins = {other.doc_id: _twin(passage, everything[other.doc_id], SAME_PATTERN) for other in others}
        cells = {doc_id: twin for doc_id, twin in twins.items() if twin}
        if any(_numbers(twin) != _numbers(passage) for twin in cells.values()):
            rows.append(Row({first.doc_id: passage, **cells}, differs=True))
    return rows


def _matched_rows(documents: Sequence[Document], relevant: dict[str, list[Passage]]) -> list[Row]:
    """Relevant passages of each document, with the passages of the others on the same aspect."""
    rows = []
    for document in documents:
        others = [other for other in documents if other is not document]
        for passage in relevant[document.doc_id]:
            twins = {other.doc_id: _twin(passage, relevant[other.doc_id], SAME_ASPECT) for other in others}
            cells = {document.doc_id: passage, **{doc_id: twin for doc_id, twin in twins.items() if twin}}
            rows.append(Row(cells, differs=False))
    return sorted(rows, key=lambda row: -len(row.cells))


def _twin(passage: Passage, candidates: Sequence[Passage], least: float) -> Passage | None:
    """The candidate that shares most words; rows of tables only meet rows, with the same first cell."""
    fitting = [
        other for other in candidates if other.is_row == passage.is_row and _same_first_cell(passage, other)
    ]
    best = max(fitting, key=lambda other: _likeness(passage, other), default=None)
    return best if best and _likeness(passage, best) >= least else None


def _same_first_cell(one: Passage, other: Passage) -> bool:
    return one.cells[:1] == other.cells[:1]


def _likeness(one: Passage, other: Passage) -> float:
    first, second = _pattern(one), _pattern(other)
    return len(first & second) / max(1, len(first | second))


def _pattern(passage: Passage) -> set[str]:
    return {stem(word) for word in content_words(_NUMBER.sub(" ", passage.reading))}


def _numbers(passage: Passage) -> list[str]:
    return _NUMBER.findall(passage.reading)


def _table(documents: Sequence[Document], rows: Sequence[Row], phrases: Phrases) -> str:
    head = [phrases.aspect, *(table_cell(name) for name in _names(documents))]
    lines = [_line(head), _line(["---"] * len(head))]
    for row in rows:
        cells = [_cell(row.cells.get(document.doc_id), phrases) for document in documents]
        lines.append(_line([table_cell(_aspect(row)), *cells]))
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


def _aspect(row: Row) -> str:
    """A name for the row: the table row's first cell, the last heading, or the words that its cells share."""
    first = next(iter(row.cells.values()))
    if first.is_row:
        return first.cells[0]
    if first.block.heading:
        return first.block.heading.rsplit(">", 1)[-1].strip()
    shared = set.intersection(*(_pattern(passage) for passage in row.cells.values()))
    words = [word for word in content_words(first.reading) if stem(word) in shared]
    return " ".join(words[:3]).capitalize() or "–"


def _change(row: Row, documents: Sequence[Document]) -> str:
    named = zip(_names(documents), documents, strict=True)
    held = [(name, row.cells[document.doc_id]) for name, document in named if document.doc_id in row.cells]
    values = [f"{plain(name)}: {', '.join(_numbers(passage))} {cite(passage)}" for name, passage in held]
    return f"- {plain(_aspect(row))}: {'; '.join(values)}"
