"""The tool `rerank`: found blocks, ordered anew by how well they answer."""

from pydantic import Field

from shared.platform.language_models.models import CallLimits, ChatModel
from shared.retrieval.blocks import BlockLookup
from shared.retrieval.reranking import MAX_SCORE, best_first, score_passages
from shared.tools.base import BlockIds, Parameters, Query, Tool, ToolResult, named_block


class RerankParameters(Parameters):
    """Arguments of `rerank`."""

    query: Query
    block_ids: BlockIds
    top_k: int = Field(default=10, description="How many of the best to return, 1-50.")


class Rerank(Tool):
    """Reads the blocks again as the user that the BlockLookup is bound to, and has the model score them."""

    name = "rerank"
    description = (
        "Order found blocks by how well each answers a question, with a relevance from 0 to 1. "
        "Worth it when a search found many blocks of about the same score."
    )
    parameters = RerankParameters

    def __init__(self, blocks: BlockLookup, chat_model: ChatModel, limits: CallLimits) -> None:
        self._blocks = blocks
        self._chat_model = chat_model
        self._limits = limits

    async def _run(self, arguments: RerankParameters) -> ToolResult:
        hits = await self._blocks.get_many(arguments.block_ids)
        scores = await score_passages(arguments.query, hits, self._chat_model, self._limits)
        best = best_first(hits, scores)[: max(arguments.top_k, 1)]
        results = [{**named_block(hit), "relevance": _relevance(scores.get(hit.block_id))} for hit in best]
        return {"results": results, "result_count": len(results)}


def _relevance(score: int | None) -> float | None:
    return None if score is None else score / MAX_SCORE
