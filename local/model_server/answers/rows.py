"""Rows of a comparison: for each thing compared, the passage of every document that says something of it.

What is asked comes first: for each aspect of the question one row, in which each document has the passage
nearest to it, and of those nearly as near the one that is most like the passage of the others.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from local.model_server.prompt_reader import Document
from local.model_server.text.aspects import aspects_of, subject_of, topic_stems
from local.model_server.text.central import is_byline
from local.model_server.text.held import Understanding, is_held
from local.model_server.text.passages import Passage, passages_of
from local.model_server.text.ranking import MAX_EMBEDDED, Ranked, rank_passages
from local.model_server.text.words import content_words, stem, stems_of

MAX_ROWS = 6
MAX_CHANGES = 4
MAX_LEADING = 3
SAME_PATTERN = 0.6  # shared words of all words, numbers left out; unmeasured
SAME_ASPECT = 0.3
FIT_FOR_ROW = 0.6  # share of the document's best score; unmeasured
NEARLY_BEST = 0.8  # share of the document's best score; unmeasured
ALIKE_WEIGHT = 0.3  # of being like the other documents' passage; unmeasured
MIN_SCORE = 0.25  # below that a passage has nothing to do with the question
LONGEST_NAME = 5  # words of an aspect that can head a row
EMBEDDED_IN_ALL = 60  # passages of all documents together: about 0.4 s on two cores
FEWEST_EMBEDDED = 8
_CAPTION = re.compile(r"(?:figure|fig\.|table|chart|abbildung|abb\.|tabelle)\s*\d", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True)
class Row:
    """One aspect: the passage of each document that has one, by doc_id. `differs`: in numbers alone.

    `aspect` is its name, where what is compared came with one.
    """

    cells: dict[str, Passage]
    differs: bool
    aspect: str = ""


@dataclass(frozen=True)
class Rows:
    """All rows, and what they were chosen from: each document's likely passages, best first."""

    rows: tuple[Row, ...]
    ranked: dict[str, list[Ranked]]

    @property
    def best_score(self) -> float:
        return max((items[0].score for items in self.ranked.values() if items), default=0.0)


def compare(
    question: str, documents: Sequence[Document], embedder: Understanding, known: Sequence[Row] = ()
) -> Rows:
    """At most six rows; `known` ones ahead. A document with anything near the question is in one of them."""
    everything = {document.doc_id: passages_of([document]) for document in documents}
    # Titles and years of the documents would prefer sentences that name them to those that answer.
    ranked = rank_each(subject_of(question, names_of_documents(documents)), documents, embedder)
    leading = _leading_rows(question, documents, everything, ranked, embedder)
    changed = _changed_first(_changed_pairs(documents, everything), ranked)
    relevant = {doc_id: _relevant(items) for doc_id, items in ranked.items()}
    rows = _without_repetition([*known, *leading, *changed, *_matched_rows(documents, relevant)])
    return Rows(_with_every_document(rows, ranked), ranked)


def rank_each(
    question: str, documents: Sequence[Document], embedder: Understanding
) -> dict[str, list[Ranked]]:
    """The likely passages of each document, best first, by doc_id."""
    limit = max(FEWEST_EMBEDDED, min(MAX_EMBEDDED, EMBEDDED_IN_ALL // max(1, len(documents))))
    return {
        document.doc_id: rank_passages(question, passages_of([document]), embedder, limit)
        for document in documents
    }


def names_of_documents(documents: Sequence[Document]) -> set[str]:
    """Stems of the words of their titles and files."""
    return set(stems_of(" ".join(f"{document.title} {document.filename}" for document in documents)))


def numbers_of(passage: Passage) -> list[str]:
    return _NUMBER.findall(passage.reading)


def pattern_of(passage: Passage) -> frozenset[str]:
    """Stems of its words, numbers left out."""
    return _pattern(passage.reading)


# Each passage meets each one of the other documents.
@lru_cache(maxsize=20_000)
def _pattern(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in content_words(_NUMBER.sub(" ", text)))


def likeness(one: Passage, other: Passage) -> float:
    """Share of the words of both that both have, numbers left out."""
    first, second = pattern_of(one), pattern_of(other)
    return len(first & second) / max(1, len(first | second))


def _leading_rows(
    question: str,
    documents: Sequence[Document],
    everything: dict[str, list[Passage]],
    ranked: dict[str, list[Ranked]],
    embedder: Understanding,
) -> list[Row]:
    names = names_of_documents(documents)
    aspects = aspects_of(question, names)[:MAX_LEADING]
    if len(aspects) < 2:
        return [row] if topic_stems(question, names) and (row := _nearest(ranked, set(ranked))) else []
    rows = []
    for aspect in aspects:
        of_aspect = {
            doc_id: rank_passages(aspect, passages, embedder, FEWEST_EMBEDDED)
            for doc_id, passages in everything.items()
        }
        # What nobody speaks of has no row: the nearest sentence would be taken for an answer.
        said = [passage for passages in everything.values() for passage in passages]
        if is_held(aspect, said, names, embedder) and (row := _nearest(of_aspect, set(ranked))):
            rows.append(Row(row.cells, row.differs, aspect if len(aspect.split()) <= LONGEST_NAME else ""))
    return rows


def _nearest(ranked: dict[str, list[Ranked]], wanted: set[str]) -> Row | None:
    """The passage of each wanted document that is nearest, and among the nearest ones like the others'."""
    near = {doc_id: found for doc_id, items in ranked.items() if doc_id in wanted and (found := _near(items))}
    if not near:
        return None
    anchor = max(near.values(), key=lambda items: items[0].score)[0].passage
    cells = {doc_id: _most_alike(items, anchor) for doc_id, items in near.items()}
    return Row(cells, differ_in_numbers(list(cells.values())))


def _near(items: Sequence[Ranked]) -> list[Ranked]:
    telling = [item for item in items if not _says_little(item.passage)] or list(items)
    if not telling or telling[0].score < MIN_SCORE:
        return []
    return [item for item in telling if item.score >= NEARLY_BEST * telling[0].score]


def _most_alike(items: Sequence[Ranked], anchor: Passage) -> Passage:
    return max(items, key=lambda item: item.score + ALIKE_WEIGHT * likeness(item.passage, anchor)).passage


def differ_in_numbers(passages: Sequence[Passage]) -> bool:
    """Whether any says the same as the first, with other numbers."""
    first, *others = passages
    return any(
        likeness(first, other) >= SAME_PATTERN and numbers_of(first) != numbers_of(other) for other in others
    )


def _without_repetition(rows: Sequence[Row]) -> list[Row]:
    kept: list[Row] = []
    used: set[tuple[str, str]] = set()
    for row in rows:
        keys = {(doc_id, passage.quote) for doc_id, passage in row.cells.items()}
        # A named aspect stays, also where one sentence speaks of two.
        if len(kept) < MAX_ROWS and (not keys & used or (row.aspect and keys - used)):
            used |= keys
            kept.append(row)
    return kept


def _with_every_document(rows: list[Row], ranked: dict[str, list[Ranked]]) -> tuple[Row, ...]:
    """One row more, ahead, for the documents that none has a passage of."""
    missing = set(ranked) - {doc_id for row in rows for doc_id in row.cells}
    row = _nearest(ranked, missing) if rows and missing else None
    return tuple([row, *rows[: MAX_ROWS - 1]] if row else rows)


def _changed_first(changed: list[Row], ranked: dict[str, list[Ranked]]) -> list[Row]:
    """What the question asks about first; other changed values fill up."""
    places = {item.passage.quote: place for items in ranked.values() for place, item in enumerate(items)}

    def place_of(row: Row) -> int:
        return min(places.get(passage.quote, len(places)) for passage in row.cells.values())

    return sorted(changed, key=place_of)[:MAX_CHANGES]


def _relevant(items: Sequence[Ranked]) -> list[Passage]:
    best = items[0].score if items else 0.0
    fitting = [item.passage for item in items if item.score >= FIT_FOR_ROW * best]
    return [passage for passage in fitting if not _says_little(passage)][:MAX_ROWS]


def _says_little(passage: Passage) -> bool:
    """Whether it is a byline, a figure's or table's title, or the document's own title."""
    if is_byline(passage.reading) or _CAPTION.match(passage.reading):
        return True
    title = stems_of(f"{passage.document.title} {passage.document.filename}")
    return not passage.is_row and pattern_of(passage) <= set(title)


def _changed_pairs(documents: Sequence[Document], everything: dict[str, list[Passage]]) -> list[Row]:
    """Passages of the first document whose twin in another one has other numbers."""
    first, *others = documents
    rows = []
    for passage in everything[first.doc_id]:
        if not _NUMBER.search(passage.reading) or _says_little(passage):
            continue
        twins = {other.doc_id: _twin(passage, everything[other.doc_id], SAME_PATTERN) for other in others}
        cells = {doc_id: twin for doc_id, twin in twins.items() if twin}
        if any(numbers_of(twin) != numbers_of(passage) for twin in cells.values()):
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
    best = max(fitting, key=lambda other: likeness(passage, other), default=None)
    return best if best and likeness(passage, best) >= least else None


def _same_first_cell(one: Passage, other: Passage) -> bool:
    return one.cells[:1] == other.cells[:1]
