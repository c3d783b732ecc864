"""Passages for a model to judge, and what its judgement does to a ranking. Pure.

A model names passages by number and never by id, so that it cannot invent one: a number that was not given
stands for nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from shared.models.relevance import PassageGrade, PassageScore
from shared.models.search import Hit

MAX_SCORE = 10
MAX_PASSAGE_CHARS = 2000  # a block of 500 tokens, the largest that chunking makes


def numbered_passages(hits: Sequence[Hit], first: int = 1) -> str:
    """`<passages>` holding each hit's text, escaped, under its number; `first` is the first one's."""
    passages = "\n".join(_passage(number, hit) for number, hit in enumerate(hits, start=first))
    return f"<passages>\n{passages}\n</passages>"


def scores_by_block(hits: Sequence[Hit], scores: Iterable[PassageScore]) -> dict[str, int]:
    """Block id -> score on 0-10. The first score of a passage counts; unscored ones are left out."""
    numbered = {number: hit.block_id for number, hit in enumerate(hits, start=1)}
    known: dict[str, int] = {}
    for item in scores:
        if item.number in numbered:
            known.setdefault(numbered[item.number], min(max(item.score, 0), MAX_SCORE))
    return known


def irrelevant_blocks(hits: Sequence[Hit], grades: Iterable[PassageGrade]) -> frozenset[str]:
    """Ids of the blocks that were called irrelevant. An ungraded one is not among them."""
    numbered = {number: hit.block_id for number, hit in enumerate(hits, start=1)}
    first: dict[int, bool] = {}
    for item in grades:
        first.setdefault(item.number, item.relevant)
    return frozenset(numbered[number] for number, kept in first.items() if not kept and number in numbered)


def best_first(hits: Sequence[Hit], scores: Mapping[str, int]) -> list[Hit]:
    """The hits by score; those without one count as 0, and equals keep their order."""
    return sorted(hits, key=lambda hit: -scores.get(hit.block_id, 0))


def _passage(number: int, hit: Hit) -> str:
    text = (hit.image_caption if hit.block_type == "image" else hit.content) or ""
    where = f'document="{escape(hit.filename)}"' + (
        f' heading="{escape(hit.heading_path)}"' if hit.heading_path else ""
    )
    return f'<passage number="{number}" {where}>{escape(text[:MAX_PASSAGE_CHARS], quote=False)}</passage>'
