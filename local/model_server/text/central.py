"""Picks the sentences that say most of what a text says, in their own order.

First by shared words, then by closeness to the mean meaning, leaving out what repeats a picked one.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from local.model_server.text.ranking import TextEmbedder
from local.model_server.text.words import content_words, stem

MAX_EMBEDDED = 24  # about 0.1 s on two cores
REPETITION_WEIGHT = 0.5  # unmeasured
EARLY_BONUS = 0.15  # unmeasured: documents say early what they are about
BEST_LENGTH = range(6, 45)  # words; shorter is no sentence, longer is a list run together


def central_indices(sentences: Sequence[str], count: int, embedder: TextEmbedder) -> list[int]:
    """Indices of at most `count` sentences, ascending."""
    if len(sentences) <= count:
        return list(range(len(sentences)))
    scores = _word_scores(sentences)
    likely = sorted(sorted(range(len(sentences)), key=lambda index: -scores[index])[:MAX_EMBEDDED])
    vectors = embedder.embed([sentences[index] for index in likely])
    closeness = vectors @ _mean_direction(vectors)
    closeness += EARLY_BONUS * (1 - np.asarray(likely, dtype=np.float32) / len(sentences))
    return sorted(likely[place] for place in _pick_apart(vectors, closeness, count))


def _word_scores(sentences: Sequence[str]) -> list[float]:
    """How much of the whole text's vocabulary a sentence carries, per word."""
    stems = [[stem(word) for word in content_words(sentence)] for sentence in sentences]
    frequency = Counter(term for row in stems for term in row)
    scores = []
    for sentence, row in zip(sentences, stems, strict=True):
        fits = 1.0 if len(sentence.split()) in BEST_LENGTH else 0.4
        scores.append(fits * sum(frequency[term] for term in row) / (len(row) + 3))
    return scores


def _mean_direction(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    mean = vectors.mean(axis=0)
    direction: NDArray[np.float32] = mean / max(float(np.linalg.norm(mean)), 1e-9)
    return direction


def _pick_apart(vectors: NDArray[np.float32], closeness: NDArray[np.float32], count: int) -> list[int]:
    """Maximal marginal relevance: close to the mean, far from what is picked already."""
    picked: list[int] = []
    repetition = np.zeros(len(vectors), dtype=np.float32)
    for _ in range(min(count, len(vectors))):
        value = closeness - REPETITION_WEIGHT * repetition
        value[picked] = -np.inf
        best = int(np.argmax(value))
        picked.append(best)
        repetition = np.maximum(repetition, vectors @ vectors[best])
    return picked
