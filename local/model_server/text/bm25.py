"""BM25 over the few texts of one prompt. Pure: stems in, scores out."""

import math
from collections import Counter
from collections.abc import Sequence

K1 = 1.2  # the usual value; unmeasured here
B = 0.5  # texts are single sentences: full length normalisation (0.75) favours fragments


def bm25_scores(query: Sequence[str], texts: Sequence[Sequence[str]]) -> list[float]:
    """One score per text, at least 0. `query` and `texts` are stems.

    The inverse document frequency counts the given texts only, with +1 inside so that it is never negative.
    Source: Robertson and Zaragoza, 2009; the idf as in Lucene.
    """
    if not texts:
        return []
    counts = [Counter(text) for text in texts]
    average = sum(len(text) for text in texts) / len(texts) or 1.0
    frequency = {term: sum(term in count for count in counts) for term in dict.fromkeys(query)}
    idf = {term: math.log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for term, n in frequency.items() if n}
    return [
        sum(weight * _saturation(count[term], len(text) / average) for term, weight in idf.items())
        for count, text in zip(counts, texts, strict=True)
    ]


def _saturation(occurrences: int, relative_length: float) -> float:
    return occurrences * (K1 + 1) / (occurrences + K1 * (1 - B + B * relative_length))
