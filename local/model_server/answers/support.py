"""Decides whether the documents hold the answer: how close they come, and how much of the question they name.

support = 0.6 * best cosine + 0.4 * coverage - 0.1 if a name or number of the question occurs nowhere.
Coverage is the share of the question's words, rare ones counting more, that the best passages' blocks hold.
Below the threshold the answer is an abstention. Measured figures: docs/model-server.md.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from local.model_server.text.languages import detect_language
from local.model_server.text.passages import Passage
from local.model_server.text.ranking import Ranked
from local.model_server.text.words import is_content_word, stem, stems_of, topic_words, words_of

COSINE_WEIGHT = 0.6
COVERAGE_WEIGHT = 0.4
MISSING_NAME_PENALTY = 0.1
CODE_THRESHOLD = 0.3  # a German question to an English text: only names and numbers can match; unmeasured
THRESHOLD = 0.58  # the most that loses at most 10 % of answerable questions on two sets
HASHING_THRESHOLD = 0.5  # hashing has no useful cosine: coverage alone; unmeasured
BLOCKS_LOOKED_AT = 3
_FIRST_WORD_RANK = 1_996  # where whole words begin in the vocabulary, most frequent first
_LAST_WORD_RANK = 30_522
_LEAST_WEIGHT = 0.1
_STEM_PREFIX = 6  # "reimburse" meets "reimbursement"
_CODE = re.compile(r"(?=.*\d)(?=.*[^\W\d_]).+")
# Capitalised inside a sentence, or with a digit: names and numbers.
NAME = re.compile(r"(?<!^)(?<![.?!] )\b[A-ZÄÖÜ][\w-]*|\b\w*\d[\w.,-]*")


class Vocabulary(Protocol):
    """What the judgement needs of the embedding service."""

    understands_meaning: bool

    def word_ranks(self, words: Sequence[str]) -> list[int | None]: ...


@dataclass(frozen=True)
class Support:
    """How well the passages support an answer, 0 to 1, and the question's words that no passage holds."""

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
    missing = tuple(word for word in words if not _occurs(stem(word), everything))
    weights = [_weight(word, rank) for word, rank in zip(words, vocabulary.word_ranks(words), strict=True)]
    coverage = max(
        _coverage(words, weights, item.passage) for item in _first_of_each_block(ranked)[:BLOCKS_LOOKED_AT]
    )
    if not vocabulary.understands_meaning:
        return Support(coverage, coverage >= HASHING_THRESHOLD, missing)
    cosine = max(item.cosine for item in ranked)
    penalty = MISSING_NAME_PENALTY if _misses_name(question, everything) else 0.0
    score = COSINE_WEIGHT * cosine + COVERAGE_WEIGHT * coverage - penalty
    threshold = CODE_THRESHOLD if _only_code_can_match(question, passages, missing) else THRESHOLD
    return Support(score, score >= threshold, missing)


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
    covered = sum(weight for word, weight in zip(words, weights, strict=True) if _occurs(stem(word), around))
    return covered / sum(weights)


def _stems_around(passage: Passage) -> set[str]:
    document = passage.document
    return set(stems_of(f"{passage.block.text} {passage.block.heading} {document.title} {document.filename}"))


def _occurs(word_stem: str, stems: set[str]) -> bool:
    if word_stem in stems:
        return True
    if len(word_stem) < _STEM_PREFIX or any(letter.isdigit() for letter in word_stem):
        return False
    return any(
        other.startswith(word_stem[:_STEM_PREFIX])
        or (len(other) >= _STEM_PREFIX and word_stem.startswith(other))
        for other in stems
    )


def _weight(word: str, rank: int | None) -> float:
    """1 for rare words, numbers and words outside the vocabulary, down to 0.1 for the commonest."""
    if rank is None or any(letter.isdigit() for letter in word):
        return 1.0
    rarity = math.log(max(rank, _FIRST_WORD_RANK + 1) / _FIRST_WORD_RANK)
    return max(_LEAST_WEIGHT, rarity / math.log(_LAST_WORD_RANK / _FIRST_WORD_RANK))


def _misses_name(question: str, everything: set[str]) -> bool:
    names = [word for found in NAME.findall(question) for word in words_of(found) if is_content_word(word)]
    return any(not _occurs(stem(name), everything) for name in names)
