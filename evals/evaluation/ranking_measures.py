"""Ranking measures, as defined in docs/internals/measuring.md. Pure."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from evals.evaluation.question_set import Target


def first_of_each(targets: Iterable[Target]) -> list[Target]:
    """Return the ranking without repeated targets, so that a page has the rank of its first block."""
    return list(dict.fromkeys(targets))


def documents_of(targets: Iterable[Target]) -> list[Target]:
    """Return the documents in a ranking of pages. A document has the rank of its first page."""
    return first_of_each((name, None) for name, _ in targets)


def hit_at(ranking: Sequence[Target], relevant: Collection[Target], k: int) -> float:
    """Return 1 if a relevant target is among the first `k` targets, otherwise 0."""
    return float(not set(relevant).isdisjoint(ranking[:k]))


def recall_at(
    ranking: Sequence[Target],
    relevant: Collection[Target],
    k: int,
    also_acceptable: Collection[Target] = (),
) -> float:
    """Return the share of relevant targets found among the first `k`, or 0 if no target is relevant.

    An acceptable target replaces one missing relevant target and never adds to the score.
    """
    targets = set(relevant)
    if not targets:
        return 0.0
    hit_count = len((targets | set(also_acceptable)) & set(ranking[:k]))
    return min(hit_count, len(targets)) / len(targets)


def ndcg_at(ranking: Sequence[Target], grades: Mapping[Target, float], k: int) -> float:
    """Return the normalised discounted cumulative gain at rank `k`. The gain is the grade, the discount
    log2(rank + 1).

    Source: Järvelin and Kekäläinen, TOIS 2002, as in trec_eval. 0 if nothing is relevant.
    """
    best = _discount(sorted(grades.values(), reverse=True)[:k])
    return _discount([grades.get(target, 0.0) for target in ranking[:k]]) / best if best else 0.0


def rank_of_first(ranking: Sequence[Target], relevant: Collection[Target]) -> int | None:
    """Return the rank of the first relevant target, counted from 1, or None."""
    return next((rank for rank, target in enumerate(ranking, start=1) if target in relevant), None)


def _discount(gains: Iterable[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))
