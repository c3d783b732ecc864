"""Tools that have the model judge blocks found by a search: `grade` filters them, `rerank` orders them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Self

from pydantic import Field

from shared.platform.language_models.models import CallLimits, ChatModel
from shared.retrieval.block_reading import BlockLookup
from shared.retrieval.models import Hit
from shared.retrieval.reranking import MAX_SCORE, best_first, grade_passages, score_passages
from shared.runs.provenance import UsedDocument
from shared.tools.base import Parameters, Query, Tool, ToolEvidence, ToolResult, identify_block
from shared.tools.binding import Binding

# Scores of 20 passages take about 300 tokens, which a model writes in a few seconds. Not measured with real
# models.
_MAX_TOKENS = 1000


@dataclass(frozen=True)
class BlockJudge(Tool):
    """Base class of tools that have the model judge blocks. The blocks are read again with the user's
    permissions.
    """

    blocks: BlockLookup
    chat_model: ChatModel
    limits: CallLimits
    evidence: ToolEvidence = field(default_factory=ToolEvidence)

    reports_documents = True

    @classmethod
    def bind(cls, binding: Binding) -> Self:
        services = binding.services
        timeout_s = services.settings.answering.judge_timeout_s
        limits = CallLimits(timeout_s=timeout_s, max_output_tokens=_MAX_TOKENS)
        return cls(BlockLookup(binding.blocks), services.chat_model, limits, binding.evidence)

    async def _read(self, block_ids: Sequence[str]) -> list[Hit]:
        hits = await self.blocks.get_many(block_ids)
        self.evidence.documents.extend(UsedDocument(doc_id=hit.doc_id, version=hit.version) for hit in hits)
        return hits


BlockIds = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=200)], ...],
    Field(description="block_ids returned by a search; at most 50.", min_length=1, max_length=50),
]


class GradeParameters(Parameters):
    """Arguments of `grade`."""

    query: Query
    block_ids: BlockIds


class Grade(BlockJudge):
    """Filters blocks with the model. Only blocks that help to answer the question remain."""

    name = "grade"
    description = "Sort out found blocks that do not help to answer a question; returns those that do."
    parameters = GradeParameters
    documentation = "Has the model keep the blocks that help: `results`, `graded_count`."
    example = '{"query": "pump", "block_ids": ["manual-1"]}'

    async def _run(self, arguments: GradeParameters) -> ToolResult:
        hits = await self._read(arguments.block_ids)
        passages = await grade_passages(arguments.query, hits, self.chat_model, self.limits)
        return {
            "results": [identify_block(hit) for hit in passages],
            "result_count": len(passages),
            "graded_count": len(hits),
        }


class RerankParameters(Parameters):
    """Arguments of `rerank`."""

    query: Query
    block_ids: BlockIds
    top_k: int = Field(default=10, description="Number of results, 1-50.")


class Rerank(BlockJudge):
    """Orders blocks by the model's relevance score for a question, best first."""

    name = "rerank"
    description = (
        "Order found blocks by how well each answers a question, with a relevance from 0 to 1. "
        "Worth it when a search found many blocks of about the same score."
    )
    parameters = RerankParameters
    documentation = "Has the model order blocks: `results` with `relevance` (0-1, or null)."
    example = '{"query": "pump", "block_ids": ["manual-1"]}'

    async def _run(self, arguments: RerankParameters) -> ToolResult:
        hits = await self._read(arguments.block_ids)
        scores = await score_passages(arguments.query, hits, self.chat_model, self.limits)
        best = best_first(hits, scores)[: max(arguments.top_k, 1)]
        # Blocks that the model did not score have no relevance.
        relevance = {block_id: score / MAX_SCORE for block_id, score in scores.items()}
        results = [{**identify_block(hit), "relevance": relevance.get(hit.block_id)} for hit in best]
        return {"results": results, "result_count": len(results)}
