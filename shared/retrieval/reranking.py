"""Reranking and grading of passages by a language model.

Passages are judged in concurrent batches. `Hit.score` is unchanged, because confidence is judged on the scale
of retrieval.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Literal

from pydantic import Field

from shared.platform.concurrency import run_together
from shared.platform.language_models.models import CallLimits, ChatModel, Prompt, StructuredOutput
from shared.platform.models import Model
from shared.platform.prompts import element, load
from shared.retrieval.models import Hit

# Number of passages per call, at most 10,000 tokens; scores are absolute, so batches can be merged.
BATCH = 20
MAX_SCORE = 10
_MAX_PASSAGE_CHARS = 2000  # equals 500 tokens, the size limit of chunks


class PassageScore(Model):
    """The relevance of one passage."""

    number: int = Field(description="The passage's number, as given.")
    score: int = Field(description="0 (unrelated) to 10 (answers it completely).")


class PassageScores(Model):
    """Structured output of reranking."""

    scores: tuple[PassageScore, ...] = Field(description="One for each passage.")


class PassageGrade(Model):
    """Whether one passage helps at all."""

    number: int = Field(description="The passage's number, as given.")
    relevant: bool = Field(description="Whether anything in it helps to answer.")


class PassageGrades(Model):
    """Structured output of grading."""

    grades: tuple[PassageGrade, ...] = Field(description="One for each passage.")


async def score_passages(
    query: str, hits: Sequence[Hit], chat_model: ChatModel, limits: CallLimits
) -> dict[str, int]:
    """Return scores of 0-10 by block id. Blocks that the model did not score are omitted; the first score of
    a passage counts.

    Raises:
        DependencyError, ModelFixableError: the model failed for a batch.
    """
    answers = await _judged("rerank", PassageScores, query, hits, chat_model=chat_model, limits=limits)
    numbered = {number: hit.block_id for number, hit in enumerate(hits, start=1)}
    scores: dict[str, int] = {}
    for item in (item for answer in answers for item in answer.scores):
        if item.number in numbered:
            scores.setdefault(numbered[item.number], min(max(item.score, 0), MAX_SCORE))
    return scores


async def grade_passages(
    query: str, hits: Sequence[Hit], chat_model: ChatModel, limits: CallLimits
) -> list[Hit]:
    """Return the hits that the model grades as relevant, in their order. Ungraded hits are kept; the first
    grade of a passage counts.

    Raises:
        DependencyError, ModelFixableError: the model failed for a batch.
    """
    answers = await _judged("grade", PassageGrades, query, hits, chat_model=chat_model, limits=limits)
    relevant: dict[int, bool] = {}
    for item in (item for answer in answers for item in answer.grades):
        relevant.setdefault(item.number, item.relevant)
    return [hit for number, hit in enumerate(hits, start=1) if relevant.get(number, True)]


def best_first(hits: Sequence[Hit], scores: Mapping[str, int]) -> list[Hit]:
    """Sort hits by score; missing scores count as 0, and ties keep their order."""
    return sorted(hits, key=lambda hit: -scores.get(hit.block_id, 0))


async def _judged(
    name: Literal["rerank", "grade"],
    output: type[StructuredOutput],
    query: str,
    hits: Sequence[Hit],
    *,
    chat_model: ChatModel,
    limits: CallLimits,
) -> tuple[StructuredOutput, ...]:
    """Call the model for batches of 20 passages and return one output per batch. Passages are numbered from 1
    across batches.
    """
    prompts = (
        Prompt(
            name=name,
            system=load("retrieval", name),
            user=f"{element('question', query)}\n{_numbered(hits[start : start + BATCH], start + 1)}",
        )
        for start in range(0, len(hits), BATCH)
    )
    return await run_together(*(chat_model.parse(prompt, output, limits) for prompt in prompts))


def _numbered(hits: Sequence[Hit], first: int) -> str:
    passages = "\n".join(_passage(number, hit) for number, hit in enumerate(hits, start=first))
    return f"<passages>\n{passages}\n</passages>"


def _passage(number: int, hit: Hit) -> str:
    text = (hit.image_caption if hit.block_type == "image" else hit.content) or ""
    where = f'document="{escape(hit.filename)}"' + (
        f' heading="{escape(hit.heading_path)}"' if hit.heading_path else ""
    )
    return f'<passage number="{number}" {where}>{escape(text[:_MAX_PASSAGE_CHARS], quote=False)}</passage>'
