"""The tool `view_figure`, which shows a picture from a document to a vision model."""

from dataclasses import dataclass, field
from typing import Self

from pydantic import Field

from shared.platform.errors import InvalidQueryError
from shared.retrieval.block_reading import BlockLookup
from shared.tools.base import Parameters, Tool, ToolEvidence, ToolResult, identify_block
from shared.tools.binding import Binding


class ViewFigureParameters(Parameters):
    """Arguments of `view_figure`."""

    block_id: str = Field(description="block_id of an image block.", min_length=1, max_length=200)


@dataclass(frozen=True)
class ViewFigure(Tool):
    """Shows the model a picture from a document that the user may read."""

    blocks: BlockLookup
    evidence: ToolEvidence = field(default_factory=ToolEvidence)

    name = "view_figure"
    description = (
        "Look at the picture of a block of type image, when its caption doesn't tell what is asked, such as "
        "a value to be read off a curve. The picture follows the result."
    )
    parameters = ViewFigureParameters
    documentation = "The picture of an image block, for models that see (`PROMPT_FIGURES`)."
    example = '{"block_id": "manual-1"}'
    reports_documents = True

    @classmethod
    def bind(cls, binding: Binding) -> Self:
        return cls(BlockLookup(binding.blocks), binding.evidence)

    async def _run(self, arguments: ViewFigureParameters) -> ToolResult:
        hit = next(iter(await self.blocks.get_many([arguments.block_id])), None)
        if hit is None or hit.block_type != "image":
            raise InvalidQueryError(
                "There is no picture with this block_id.",
                "Use the block_id of an image block that you were shown.",
            )
        self.evidence.figures.append(hit)
        return {**identify_block(hit), "image_caption": hit.image_caption or ""}
