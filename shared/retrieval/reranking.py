"""Grading (R6): a model says which passages help at all. A failing model costs nothing but the sorting."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from shared.platform.concurrency import run_together
from shared.platform.errors import DependencyError, ModelFixableError
from shared.platform.language_models.models import CallLimits, ChatModel, Prompt
from shared.platform.prompts import element, load
from shared.platform.telemetry import get_logger
from shared.retrieval.models import Hit, PassageGrade, PassageGrades, PassageScore, PassageScores

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


BATCH = 20  # passages of one call: 10,000 tokens at most; scores are absolute, so batches can be merged


async def rerank(query: str, hits: Sequence[Hit], chat_model: ChatModel, limits: CallLimits) -> list[Hit]:
    """The same hits, best first by the model's scores; in their own order when the model fails.

    `Hit.score` stays what retrieval measured: confidence is judged on that scale.
    """
    try:
        return best_first(hits, await score_passages(query, hits, chat_model, limits))
    except (DependencyError, ModelFixableError) as failed:
        get_logger().warning("rerank.failed", error_type=failed.code, result_count=len(hits))
        return list(hits)


async def score_passages(
    query: str, hits: Sequence[Hit], chat_model: ChatModel, limits: CallLimits
) -> dict[str, int]:
    """Block id -> 0-10; blocks that the model passed over are left out. Batches are asked together.

    Raises:
        DependencyError, ModelFixableError: the model failed for a batch.
    """

    async def ask(start: int) -> PassageScores:
        passages = numbered_passages(hits[start : start + BATCH], first=start + 1)
        user = f"{element('question', query)}\n{passages}"
        return await chat_model.parse(
            Prompt(name="rerank", system=load("retrieval", "rerank"), user=user), PassageScores, limits
        )

    answers = await run_together(*(ask(start) for start in range(0, len(hits), BATCH)))
    return scores_by_block(hits, (item for answer in answers for item in answer.scores))


async def grade(query: str, hits: Sequence[Hit], chat_model: ChatModel, limits: CallLimits) -> list[Hit]:
    """The relevant hits, in their order; all of them when the model fails."""
    try:
        return await grade_passages(query, hits, chat_model, limits)
    except (DependencyError, ModelFixableError) as failed:
        get_logger().warning("grade.failed", error_type=failed.code, result_count=len(hits))
        return list(hits)


async def grade_passages(
    query: str, hits: Sequence[Hit], chat_model: ChatModel, limits: CallLimits
) -> list[Hit]:
    """The relevant hits, in their order; one that the model passed over is kept.

    Raises:
        DependencyError, ModelFixableError: the model failed for a batch.
    """

    async def ask(start: int) -> PassageGrades:
        passages = numbered_passages(hits[start : start + BATCH], first=start + 1)
        user = f"{element('question', query)}\n{passages}"
        return await chat_model.parse(
            Prompt(name="grade", system=load("retrieval", "grade"), user=user), PassageGrades, limits
        )

    answers = await run_together(*(ask(start) for start in range(0, len(hits), BATCH)))
    dropped = irrelevant_blocks(hits, (item for answer in answers for item in answer.grades))
    return [hit for hit in hits if hit.block_id not in dropped]
