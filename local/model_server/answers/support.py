"""Decides whether the documents hold the answer, by a weighted sum of five signals (a logistic regression).

How close the best passage comes; how close all come on average (texts of one matter all are); how
much of the question its best blocks name; whether a name of it is nowhere; and how long it is (short ones are
close to much by chance). Weights and measures: docs/model-server.md.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from local.model_server.text.languages import detect_language
from local.model_server.text.names import missing_names, names_of, occurs
from local.model_server.text.passages import Passage
from local.model_server.text.ranking import Ranked
from local.model_server.text.words import stem, stems_of, topic_words, words_of

# Fitted to three sets, each with equal weight, and so its answerable and its other questions.
BEST_COSINE_WEIGHT = 5.2
MEAN_COSINE_WEIGHT = -3.9
COVERAGE_WEIGHT = 3.6
MISSING_NAME_WEIGHT = -1.9
LENGTH_WEIGHT = 1.6
INTERCEPT = -5.1
FEWEST_FOR_MEAN = 8  # of fewer passages the mean says nothing that the best one does not say
USUAL_MEAN = 0.35  # of 24 passages, over three sets
LONG_QUESTION = 10  # topic words; more say no more
THRESHOLD = 0.35  # declines more than the rule before on two sets of prose, without losing more answers
CODE_THRESHOLD = 0.05  # a German question to an English text: only names and numbers can match; unmeasured
HASHING_THRESHOLD = 0.5  # hashing has no useful cosine: coverage alone; unmeasured
BLOCKS_LOOKED_AT = 3
FEWEST_DOCUMENTS = 3  # of fewer, nothing can be said of what all hold
_FIRST_WORD_RANK = 1_996  # where whole words begin in the vocabulary, most frequent first
_LAST_WORD_RANK = 30_522
_LEAST_WEIGHT = 0.1
_CODE = re.compile(r"(?=.*\d)(?=.*[^\W\d_]).+")


class Vocabulary(Protocol):
    """What the judgement needs of the embedding service."""

    understands_meaning: bool

    def word_ranks(self, words: Sequence[str]) -> list[int | None]: ...


@dataclass(frozen=True)
class Support:
    """How likely it is that the passages hold an answer, 0 to 1, and the question's words that none holds."""

    score: float
    is_enough: bool
    missing: tuple[str, ...]


def judge_support(
    question: str, ranked: Sequence[Ranked], passages: Sequence[Passage], vocabulary: Vocabulary
) -> Support:
    """Judge the ranked passages (best first) of all `passages` at hand."""
    words = topic_words(question)
    if not ranked or not words:
        return Support(0.0, bool(ranked), tuple(words))
    one_of_each_block = {passage.block_index: passage for passage in passages}.values()
    everything = set().union(*(_stems_around(passage) for passage in one_of_each_block))
    missing = tuple(word for word in words if not occurs(stem(word), everything))
    common = _common_names(question, passages)
    weights = [
        _LEAST_WEIGHT if word in common else _weight(word, rank)
        for word, rank in zip(words, vocabulary.word_ranks(words), strict=True)
    ]
    coverage = max(
        _coverage(words, weights, item.passage) for item in _first_of_each_block(ranked)[:BLOCKS_LOOKED_AT]
    )
    if not vocabulary.understands_meaning:
        return Support(coverage, coverage >= HASHING_THRESHOLD, missing)
    score = _likelihood(question, ranked, coverage, everything)
    threshold = CODE_THRESHOLD if _only_code_can_match(question, passages, missing) else THRESHOLD
    return Support(score, score >= threshold, missing)


def _likelihood(question: str, ranked: Sequence[Ranked], coverage: float, everything: set[str]) -> float:
    cosines = [item.cosine for item in ranked]
    mean = sum(cosines) / len(cosines) if len(cosines) >= FEWEST_FOR_MEAN else USUAL_MEAN
    length = min(len(topic_words(question)), LONG_QUESTION) / LONG_QUESTION
    evidence = (
        INTERCEPT
        + BEST_COSINE_WEIGHT * max(cosines)
        + MEAN_COSINE_WEIGHT * mean
        + COVERAGE_WEIGHT * coverage
        + (MISSING_NAME_WEIGHT if missing_names(question, everything) else 0.0)
        + LENGTH_WEIGHT * length
    )
    return 1 / (1 + math.exp(-evidence))


def _only_code_can_match(question: str, passages: Sequence[Passage], missing: Sequence[str]) -> bool:
    """Whether the texts are in another language than the question, and hold its product code ("X200")."""
    codes = {word for word in words_of(question) if _CODE.fullmatch(word)}
    if not codes or codes & set(missing):
        return False
    texts = " ".join(passage.reading for passage in passages)
    return detect_language(question) != detect_language(texts)


def _first_of_each_block(ranked: Sequence[Ranked]) -> list[Ranked]:
    """The three best passages' blocks, each once."""
    return list({item.passage.block_index: item for item in reversed(ranked[:BLOCKS_LOOKED_AT])}.values())


def _coverage(words: Sequence[str], weights: Sequence[float], passage: Passage) -> float:
    """Weighted share of the words that occur in the passage's block, its heading or its document's name."""
    around = _stems_around(passage)
    covered = sum(weight for word, weight in zip(words, weights, strict=True) if occurs(stem(word), around))
    return covered / sum(weights)


def _common_names(question: str, passages: Sequence[Passage]) -> set[str]:
    """Names that every document at hand holds, as that of the organisation: they tell none apart.

    Other words that all hold are what the question is about, and years stand everywhere: both still count.
    """
    names = [name for name in names_of(question) if name.isalpha()]
    stems: dict[str, set[str]] = {}
    for passage in passages:
        stems.setdefault(passage.document.doc_id, set()).update(_stems_around(passage))
    if len(stems) < FEWEST_DOCUMENTS:
        return set()
    return {name for name in names if all(occurs(stem(name), held) for held in stems.values())}


def _stems_around(passage: Passage) -> set[str]:
    document = passage.document
    return set(stems_of(f"{passage.block.text} {passage.block.heading} {document.title} {document.filename}"))


def _weight(word: str, rank: int | None) -> float:
    """1 for rare words, numbers and words outside the vocabulary, down to 0.1 for the commonest."""
    if rank is None or any(letter.isdigit() for letter in word):
        return 1.0
    rarity = math.log(max(rank, _FIRST_WORD_RANK + 1) / _FIRST_WORD_RANK)
    return max(_LEAST_WEIGHT, rarity / math.log(_LAST_WORD_RANK / _FIRST_WORD_RANK))
