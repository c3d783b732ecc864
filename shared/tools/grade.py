"""The tool `grade`: which of the found blocks help to answer at all."""

from shared.platform.language_models.models import CallLimits, ChatModel
from shared.retrieval.blocks import BlockLookup
from shared.retrieval.reranking import grade_passages
from shared.tools.base import BlockIds, Parameters, Query, Tool, ToolResult, named_block


class GradeParameters(Parameters):
    """Arguments of `grade`."""

    query: Query
    block_ids: BlockIds


class Grade(Tool):
    """Reads the blocks again as the user that the BlockLookup is bound to, and has the model sort them."""

    name = "grade"
    description = "Sort out found blocks that do not help to answer a question; returns those that do."
    parameters = GradeParameters

    def __init__(self, blocks: BlockLookup, chat_model: ChatModel, limits: CallLimits) -> None:
        self._blocks = blocks
        self._chat_model = chat_model
        self._limits = limits

    async def _run(self, arguments: GradeParameters) -> ToolResult:
        hits = await self._blocks.get_many(arguments.block_ids)
        kept = await grade_passages(arguments.query, hits, self._chat_model, self._limits)
        return {
            "results": [named_block(hit) for hit in kept],
            "result_count": len(kept),
            "graded_count": len(hits),
        }
