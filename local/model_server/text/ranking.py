"""Ranks passages for a question, and decides whether they support an answer.

The score, 0.25 * BM25 / best BM25 + 0.75 * cosine, picked the sentence of the right paragraph more often
(84.7 %) than BM25 (84.0 %) or MiniLM (80.8 %) alone. Embedding is slow, so only the likely passages are
embedded.

docs/internals/model-server.md explains when passages count as an answer.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from local.model_server.embedding.service import EmbeddingService
from local.model_server.prompt_reader import Document
from local.model_server.text.passages import Passage
from local.model_server.text.words import (
    content_words,
    detect_language,
    is_content_word,
    stem,
    stems_of,
    topic_stems,
    words_of,
)

KEYWORD_WEIGHT = 0.25
MEANING_WEIGHT = 0.75
MAX_EMBEDDED = 24  # maximum number of passages per question; embedding them takes about 0.1 s on two cores
K1 = 1.2  # the usual value of this BM25 parameter; unmeasured
B = 0.5  # lower than the usual 0.75, which favours fragments if texts are single sentences
BLOCK_ORDER_WEIGHT = (
    # Weight of a block's position (unmeasured). It lets early passages be embedded even if they share no word
    # with the question.
    0.5
)
# Two passages count as the same statement if they share at least this fraction of their words.
SAME_STATEMENT = 0.7


@dataclass(frozen=True)
class Ranked:
    """A passage with its scores. `score` combines BM25 and cosine; `cosine` lies between -1 and 1."""

    passage: Passage
    score: float
    cosine: float


def rank_passages(question: str, passages: Sequence[Passage], embedder: EmbeddingService) -> list[Ranked]:
    """Return at most 24 passages, best first. Equal scores keep the reading order."""
    if not passages:
        return []
    texts = [stems_of(f"{passage.block.heading} {passage.reading}") for passage in passages]
    scores = _bm25(topic_stems(question), texts)
    best = max(scores) or 1.0
    promise = [
        score / best + BLOCK_ORDER_WEIGHT / (1 + passage.block_index)
        for score, passage in zip(scores, passages, strict=True)
    ]
    likely = sorted(sorted(range(len(passages)), key=lambda place: -promise[place])[:MAX_EMBEDDED])
    vectors = embedder.embed([question, *(passages[place].reading for place in likely)])
    ranked = [
        Ranked(passages[place], KEYWORD_WEIGHT * scores[place] / best + MEANING_WEIGHT * cosine, cosine)
        for place, cosine in zip(likely, (vectors[1:] @ vectors[0]).tolist(), strict=True)
    ]
    return sorted(ranked, key=lambda item: -item.score)


def best_of(ranked: Sequence[Ranked], share: float, most: int) -> list[Passage]:
    """Return at most `most` passages whose score reaches `share` of the best score. Near-duplicates are
    dropped.
    """
    chosen: list[Passage] = []
    for item in ranked:
        if item.score < share * ranked[0].score or len(chosen) == most:
            break
        if not any(_is_near_duplicate(item.passage, other) for other in chosen):
            chosen.append(item.passage)
    return chosen


def _is_near_duplicate(one: Passage, other: Passage) -> bool:
    """Return whether two passages make the same statement: equal numbers, and most words of the shorter one
    in the longer one.
    """
    first, second = ({stem(word) for word in content_words(passage.reading)} for passage in (one, other))
    if any(word[0].isdigit() for word in first ^ second):
        return False
    return len(first & second) >= SAME_STATEMENT * max(1, min(len(first), len(second)))


def _bm25(query: Sequence[str], texts: Sequence[Sequence[str]]) -> list[float]:
    """Return the BM25 score of each text, at least 0. Document frequencies are those within `texts`.

    Source: Robertson and Zaragoza, 2009; the idf as in Lucene.
    """
    counts = [Counter(text) for text in texts]
    average = sum(map(len, texts)) / len(texts) or 1.0
    holding = {term: sum(term in count for count in counts) for term in dict.fromkeys(query)}
    idf = {term: math.log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for term, n in holding.items()}
    norms = [K1 * (1 - B + B * len(text) / average) for text in texts]
    return [
        sum(weight * count[term] * (K1 + 1) / (count[term] + norm) for term, weight in idf.items())
        for count, norm in zip(counts, norms, strict=True)
    ]


THRESHOLD = 1.0
BLOCKS_LOOKED_AT = 3
FEWEST_DOCUMENTS = 3  # if there are fewer documents, a name that occurs in all of them may still be the topic
STEM_PREFIX = 6  # long enough for "reimburse" to match "reimbursement"
# Words capitalised inside a sentence or containing a digit. German capitalises every noun, so there only
# words in capitals count.
NAME = re.compile(r"(?<!^)(?<![.?!:] )\b[A-ZÀ-ÖØ-Þ][\w-]*|\b\w*\d[\w-]*(?:[.,]\d+)*")
_NAME_IN_GERMAN = re.compile(r"\b[A-ZÀ-ÖØ-Þ]{3,}\b|\b\w*\d[\w-]*(?:[.,]\d+)*")


def is_supported(question: str, ranked: Sequence[Ranked], passages: Sequence[Passage]) -> bool:
    """Return whether `passages` contain an answer to the question. `ranked` contains the best passages, best
    first.

    Requires that every name occurs, and that the best cosine plus the best block's share of topic words
    reaches `THRESHOLD`. A name that occurs in every document, such as the organisation's, is ignored.
    """
    topic = {*topic_stems(question)}
    if not ranked or not topic:
        return bool(ranked)
    around = {one.block_index: _stems_around(one) for one in passages}
    stems_by_document: dict[str, set[str]] = {}
    for passage in passages:
        stems_by_document.setdefault(passage.document.doc_id, set()).update(around[passage.block_index])
    names = [stem(name) for name in names_of(question)]
    if not all(any(occurs(name, stems) for stems in stems_by_document.values()) for name in names):
        return False
    if len(stems_by_document) >= FEWEST_DOCUMENTS:
        common = {
            name
            for name in names
            if name.isalpha() and all(occurs(name, stems) for stems in stems_by_document.values())
        }
        topic = topic - common or topic
    best = {item.passage.block_index for item in ranked[:BLOCKS_LOOKED_AT]}
    covered = max(sum(occurs(one, around[block]) for one in topic) for block in best) / len(topic)
    return max(item.cosine for item in ranked) + covered >= THRESHOLD


def names_of(question: str) -> list[str]:
    """Return the names and numbers in a question that have at least three characters, in lower case and in
    order.
    """
    pattern = _NAME_IN_GERMAN if detect_language(question) == "de" else NAME
    words = (word for name in pattern.findall(question) for word in words_of(name))
    return [word for word in dict.fromkeys(words) if len(word) > 2 and is_content_word(word)]


def subject_of(question: str, documents: Iterable[Document]) -> str:
    """Return the question's topic words that occur in no document name, or the whole question if none
    remain.
    """
    names = stems_of(" ".join(f"{document.title} {document.filename}" for document in documents))
    telling = {*topic_stems(question)} - {*names}
    words = [word for word in question.split() if telling.intersection(stems_of(word))]
    return " ".join(words).strip(" ,;:?!.") or question


def occurs(word_stem: str, stems: Collection[str]) -> bool:
    """Return whether `stems` contain this stem, or another word with the same first six letters."""
    if word_stem in stems or any(letter.isdigit() for letter in word_stem):
        return word_stem in stems
    beginning = word_stem[:STEM_PREFIX]
    return len(beginning) == STEM_PREFIX and any(other.startswith(beginning) for other in stems)


def _stems_around(one: Passage) -> set[str]:
    """Return the stems of the passage's block, its heading and the name of its document."""
    return set(stems_of(f"{one.block.text} {one.block.heading} {one.document.title} {one.document.filename}"))
