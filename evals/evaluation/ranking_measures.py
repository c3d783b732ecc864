"""Measures of a ranking against what is relevant, as docs/internals/measuring.md defines them. Pure."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from evals.evaluation.question_set import Target


def first_of_each(targets: Iterable[Target]) -> list[Target]:
    """The ranking without repeats: several blocks of a page count where the first of them stands."""
    return list(dict.fromkeys(targets))


def documents_of(targets: Iterable[Target]) -> list[Target]:
    """The ranking of whole documents that a ranking of pages implies."""
    return first_of_each((name, None) for name, _ in targets)


def hit_at(ranking: Sequence[Target], relevant: Collection[Target], k: int) -> float:
    """1 when any relevant target is among the first `k`, else 0."""
    return float(not set(relevant).isdisjoint(ranking[:k]))


def recall_at(
    ranking: Sequence[Target],
    relevant: Collection[Target],
    k: int,
    also_acceptable: Collection[Target] = (),
) -> float:
    """Share of the relevant targets among the first `k`, 0 to 1; 0 when nothing is relevant.

    An acceptable target stands for one relevant target that was not found; it never counts on top.
    """
    wanted = set(relevant)
    if not wanted:
        return 0.0
    found = len((wanted | set(also_acceptable)) & set(ranking[:k]))
    return min(found, len(wanted)) / len(wanted)


def ndcg_at(ranking: Sequence[Target], grades: Mapping[Target, float], k: int) -> float:
    """Normalised discounted cumulative gain; the gain is the grade itself, the discount log2(rank + 1).

    Source: Järvelin and Kekäläinen, TOIS 2002, in the form of trec_eval. 0 when nothing is relevant.
    """
    best = _discounted(sorted(grades.values(), reverse=True)[:k])
    return _discounted([grades.get(found, 0.0) for found in ranking[:k]]) / best if best else 0.0


def rank_of_first(ranking: Sequence[Target], relevant: Collection[Target]) -> int | None:
    """Rank of the first relevant target, from 1; None when there is none."""
    return next((rank for rank, found in enumerate(ranking, start=1) if found in relevant), None)


def _discounted(gains: Iterable[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))
