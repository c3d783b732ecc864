"""Whether passages hold the answer, by a weighted sum of five signals (a logistic regression).

How close the best passage comes; how close all come on average (texts of one matter all are); how much of
the question its best blocks name; whether a name of it is nowhere; and how long it is (short ones are close
to much by chance). Weights: docs/internals/model-server.md.
"""

import math
import re
from collections.abc import Collection, Sequence

from local.model_server.embedding.service import EmbeddingService
from local.model_server.text.languages import detect_language
from local.model_server.text.passages import Passage
from local.model_server.text.ranking import Ranked
from local.model_server.text.words import is_content_word, stem, stems_of, topic_words, words_of

FEWEST_FOR_MEAN = 8  # of fewer passages the mean says nothing that the best one does not say
USUAL_MEAN = 0.35  # of 24 passages, over three sets
LONG_QUESTION = 10  # topic words; more say no more
THRESHOLD = 0.35
BLOCKS_LOOKED_AT = 3
FEWEST_DOCUMENTS = 3  # of fewer, nothing can be said of what all hold
STEM_PREFIX = 6  # "reimburse" meets "reimbursement"
_FIRST_WORD_RANK = 1_996  # where whole words begin in the vocabulary, most frequent first
_LAST_WORD_RANK = 30_522
_LEAST_WEIGHT = 0.1
# Capitalised inside a sentence, or with a digit. German capitalises every noun: there only all in capitals.
NAME = re.compile(r"(?<!^)(?<![.?!:] )\b[A-ZÀ-ÖØ-Þ][\w-]*|\b\w*\d[\w-]*(?:[.,]\d+)*")
_NAME_IN_GERMAN = re.compile(r"\b[A-ZÀ-ÖØ-Þ]{3,}\b|\b\w*\d[\w-]*(?:[.,]\d+)*")


def likelihood(
    question: str, ranked: Sequence[Ranked], passages: Sequence[Passage], embedder: EmbeddingService
) -> float:
    """How likely it is that the ranked passages (best first) of all `passages` hold an answer, 0 to 1."""
    words = topic_words(question)
    if not ranked or not words:
        return float(bool(ranked))
    around = _stems_of_blocks(passages)
    weights = _weights(question, passages, around, embedder)
    best = {item.passage.block_index for item in ranked[:BLOCKS_LOOKED_AT]}
    covered = [sum(weights[one] for one in weights if occurs(one, around[block])) for block in best]
    cosines = [item.cosine for item in ranked]
    everything = set().union(*around.values())
    # Fitted to three sets, each with equal weight, and so its answerable and its other questions.
    evidence = (
        5.2 * max(cosines)
        - 3.9 * (sum(cosines) / len(cosines) if len(cosines) >= FEWEST_FOR_MEAN else USUAL_MEAN)
        + 3.6 * max(covered) / sum(weights.values())
        - 1.9 * (not all(occurs(stem(name), everything) for name in names_of(question)))
        + 1.6 * min(len(words), LONG_QUESTION) / LONG_QUESTION
        - 5.1
    )
    return 1 / (1 + math.exp(-evidence))


def is_supported(
    question: str, ranked: Sequence[Ranked], passages: Sequence[Passage], embedder: EmbeddingService
) -> bool:
    """Whether that is likely enough to answer."""
    return likelihood(question, ranked, passages, embedder) >= THRESHOLD


def names_of(question: str) -> list[str]:
    """Lower-case words that are names or numbers, in order; of two letters ("Q2", "5 %") none."""
    pattern = _NAME_IN_GERMAN if detect_language(question) == "de" else NAME
    words = (word for found in pattern.findall(question) for word in words_of(found))
    return [word for word in dict.fromkeys(words) if len(word) > 2 and is_content_word(word)]


def occurs(word_stem: str, stems: Collection[str]) -> bool:
    """Whether a stem is among the stems: itself, or a form of it."""
    if word_stem in stems or any(letter.isdigit() for letter in word_stem):
        return word_stem in stems
    beginning = word_stem[:STEM_PREFIX]
    return len(beginning) == STEM_PREFIX and any(other.startswith(beginning) for other in stems)


def _weights(
    question: str, passages: Sequence[Passage], around: dict[int, set[str]], embedder: EmbeddingService
) -> dict[str, float]:
    """What each topic word's stem counts: rare words and numbers 1, common ones down to 0.1.

    A name that every document holds, as that of the organisation, tells none apart.
    """
    held: dict[str, set[str]] = {}
    for passage in passages:
        held.setdefault(passage.document.doc_id, set()).update(around[passage.block_index])
    names = [name for name in names_of(question) if name.isalpha()] if len(held) >= FEWEST_DOCUMENTS else []
    common = {name for name in names if all(occurs(stem(name), stems) for stems in held.values())}
    words = topic_words(question)
    ranks = zip(words, embedder.word_ranks(words), strict=True)
    return {stem(word): _LEAST_WEIGHT if word in common else _rarity(word, rank) for word, rank in ranks}


def _stems_of_blocks(passages: Sequence[Passage]) -> dict[int, set[str]]:
    """Stems of each block, its heading and its document's name, by the block's index."""
    return {
        index: set(
            stems_of(f"{one.block.text} {one.block.heading} {one.document.title} {one.document.filename}")
        )
        for index, one in {passage.block_index: passage for passage in passages}.items()
    }


def _rarity(word: str, rank: int | None) -> float:
    if rank is None or any(letter.isdigit() for letter in word):
        return 1.0
    rarity = math.log(max(rank, _FIRST_WORD_RANK + 1) / _FIRST_WORD_RANK)
    return max(_LEAST_WEIGHT, rarity / math.log(_LAST_WORD_RANK / _FIRST_WORD_RANK))
