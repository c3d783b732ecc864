"""The tool `delegate`, which assigns part of a question to a sub-agent. The agent loop executes it."""

from pydantic import Field

from shared.platform.errors import ConfigurationError
from shared.runs.models import ProfileName
from shared.tools.base import Parameters, Tool, ToolResult


class DelegateParameters(Parameters):
    """Arguments of `delegate`."""

    task: str = Field(
        description="A self-contained question: the sub-agent does not see the conversation.",
        min_length=1,
        max_length=2000,
        pattern=r"\S",
    )
    profile: ProfileName = Field(
        description="doc_reader reads one document in depth, comparator sets several side by side, "
        "evidence_builder finds the proof of each statement, web_verifier searches the web."
    )
    doc_ids: tuple[str, ...] = Field(
        default=(), max_length=20, description="doc_ids of the documents to work on; empty = all."
    )


class Delegate(Tool):
    """Declares the tool to the model. Calling it directly fails, because only the agent loop may start
    sub-agents.
    """

    name = "delegate"
    description = (
        "Have a sub-agent work on a part of the question that needs much reading: a long document, several "
        "long documents, a statement whose proof is hard to find. It takes 10 to 30 seconds and returns "
        "findings with their proofs. Not for what one or two searches can answer. Name all documents in one "
        "call."
    )
    parameters = DelegateParameters
    reports_documents = True

    async def _run(self, arguments: DelegateParameters) -> ToolResult:
        raise ConfigurationError("No sub-agent can be started here.", "Answer from the existing evidence.")
