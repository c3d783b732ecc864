"""The tool `query_rewrite`: a question made to stand alone, and phrasings to search for."""

from typing import Literal

from pydantic import Field

from shared.platform.language_models.models import CallLimits, ChatModel, Message
from shared.retrieval.rewriting import rewrite_question
from shared.tools.base import Parameters, Query, Tool, ToolResult


class EarlierMessage(Parameters):
    """One message of the conversation before the question."""

    role: Literal["user", "assistant"]
    content: str = Field(max_length=20_000)


class QueryRewriteParameters(Parameters):
    """Arguments of `query_rewrite`."""

    question: Query
    history: tuple[EarlierMessage, ...] = Field(
        default=(), description="The conversation before the question, oldest first.", max_length=50
    )


class RewriteQuery(Tool):
    """Asks the model for better questions; reads no document."""

    name = "query_rewrite"
    description = (
        "Rewrite a question so that it stands alone, with two to four phrasings to search for. "
        "Search each of them when the first search found little."
    )
    parameters = QueryRewriteParameters

    def __init__(self, chat_model: ChatModel, limits: CallLimits) -> None:
        self._chat_model = chat_model
        self._limits = limits

    async def _run(self, arguments: QueryRewriteParameters) -> ToolResult:
        history = [Message(role=turn.role, text=turn.content) for turn in arguments.history]
        written = await rewrite_question(arguments.question, history, self._chat_model, self._limits)
        return {
            "standalone_question": written.standalone_question,
            "search_queries": list(written.search_queries),
        }
