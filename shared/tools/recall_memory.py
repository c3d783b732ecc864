"""The tool `recall_memory`, which searches the user's earlier questions and answers."""

from dataclasses import dataclass, field
from typing import Self

from pydantic import Field

from shared.conversations.memory import MemorySearch
from shared.tools.base import Parameters, Tool, ToolEvidence, ToolResult
from shared.tools.binding import Binding


class RecallMemoryParameters(Parameters):
    """Arguments of `recall_memory`."""

    query: str = Field(description="Subject of the earlier question.", min_length=1)


@dataclass(frozen=True)
class RecallMemory(Tool):
    """Searches earlier questions of the same user and the answers to them."""

    memories: MemorySearch
    evidence: ToolEvidence = field(default_factory=ToolEvidence)

    name = "recall_memory"
    description = (
        "Find what this user asked in earlier conversations and what was answered. Only for questions that "
        "refer to them, such as 'what did I ask last week about travel?'. It proves nothing: facts come from "
        "the documents."
    )
    parameters = RecallMemoryParameters
    documentation = "The user's earlier questions: `memories`, `result_count`."
    example = '{"query": "pump"}'
    reports_documents = True

    @classmethod
    def bind(cls, binding: Binding) -> Self:
        return cls(MemorySearch(binding.services, binding.user), binding.evidence)

    async def _run(self, arguments: RecallMemoryParameters) -> ToolResult:
        memories = await self.memories.recall(arguments.query)
        self.evidence.run_ids.extend(memory.memory_id for memory in memories if memory.answer_summary)
        return {
            "memories": [memory.model_dump(mode="json") for memory in memories],
            "result_count": len(memories),
        }
