"""Measures of a ranking against what is relevant. Pure.

A target is a page of a document, (filename, page), or a whole document, (filename, None).
"""

import math
from collections.abc import Iterable, Sequence

Target = tuple[str, int | None]


def recall_at(ranking: Sequence[Target], relevant: Iterable[Target], k: int) -> float:
    """Share of the relevant targets among the first `k`; 0 when nothing is relevant."""
    wanted = set(relevant)
    return len(wanted & set(ranking[:k])) / len(wanted) if wanted else 0.0


def hit_at(ranking: Sequence[Target], relevant: Iterable[Target], k: int) -> float:
    """1 when any relevant target is among the first `k`."""
    return float(not set(relevant).isdisjoint(ranking[:k]))


def ndcg_at(ranking: Sequence[Target], relevant: Iterable[Target], k: int) -> float:
    """Normalised discounted cumulative gain with grades 0 and 1."""
    wanted = set(relevant)
    gains = [1 / math.log2(rank + 1) for rank, found in enumerate(ranking[:k], start=1) if found in wanted]
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(wanted)) + 1))
    return sum(gains) / best if best else 0.0


def first_of_each(targets: Iterable[Target]) -> list[Target]:
    """The ranking without repeats: several blocks of a page count where the first of them stands."""
    return list(dict.fromkeys(targets))


def documents_of(targets: Iterable[Target]) -> list[Target]:
    """The ranking of whole documents that a ranking of pages implies."""
    return first_of_each((filename, None) for filename, _ in targets)


def mean(values: Sequence[float]) -> float | None:
    """None when there is nothing to average."""
    return round(sum(values) / len(values), 4) if values else None
