"""The tool `query_rewrite`, which makes a question self-contained and rephrases it for search."""

from dataclasses import dataclass
from html import escape
from typing import Literal, Self

from pydantic import Field

from shared.platform.language_models.models import CallLimits, ChatModel, Prompt
from shared.platform.models import Model
from shared.platform.prompts import element, load
from shared.tools.base import Parameters, Query, Tool, ToolResult
from shared.tools.binding import Binding

_MAX_PHRASINGS = 4  # each phrasing costs five searches
_MAX_PHRASING_CHARS = 400
_MAX_TURN_CHARS = 1000  # enough to resolve a pronoun, whose referent usually comes early


class EarlierMessage(Parameters):
    """A message of the conversation before the question."""

    role: Literal["user", "assistant"]
    content: str = Field(max_length=20_000)


class QueryRewriteParameters(Parameters):
    """Arguments of `query_rewrite`."""

    question: Query
    history: tuple[EarlierMessage, ...] = Field(
        default=(), description="The conversation before the question, oldest first.", max_length=50
    )


class QueryRewrite(Model):
    """Structured output of rewriting a question."""

    standalone_question: str = Field(description="The question with pronouns and ellipsis resolved.")
    search_queries: tuple[str, ...] = Field(description="2-4 different phrasings to search for.")


@dataclass(frozen=True)
class RewriteQuery(Tool):
    """Has the model rewrite a question as search queries. It reads no documents."""

    chat_model: ChatModel
    limits: CallLimits

    name = "query_rewrite"
    description = (
        "Rewrite a question so that it stands alone, with two to four phrasings to search for. "
        "Search each of them when the first search found little."
    )
    parameters = QueryRewriteParameters
    documentation = "The model's `standalone_question` and 1-4 `search_queries`."
    example = '{"question": "And its weight?"}'
    reads_documents = False
    reports_documents = True

    @classmethod
    def bind(cls, binding: Binding) -> Self:
        timeout_s = binding.services.settings.answering.plan_timeout_s
        return cls(binding.services.chat_model, CallLimits(timeout_s=timeout_s))

    async def _run(self, arguments: QueryRewriteParameters) -> ToolResult:
        earlier = [_conversation(arguments.history)] if arguments.history else []
        user = "\n".join([*earlier, element("question", arguments.question)])
        prompt = Prompt(name="rewrite", system=load("tools", "query_rewrite"), user=user)
        rewrite = await self.chat_model.parse(prompt, QueryRewrite, self.limits)
        standalone = rewrite.standalone_question.strip() or arguments.question
        phrasings = (text.strip()[:_MAX_PHRASING_CHARS] for text in (standalone, *rewrite.search_queries))
        different: dict[str, str] = {}
        for text in filter(None, phrasings):
            different.setdefault(text.casefold(), text)
        return {
            "standalone_question": standalone,
            "search_queries": list(different.values())[:_MAX_PHRASINGS],
        }


def _conversation(history: tuple[EarlierMessage, ...]) -> str:
    turns = "\n".join(
        f'<turn role="{message.role}">{escape(message.content[:_MAX_TURN_CHARS], quote=False)}</turn>'
        for message in history
    )
    return f"<conversation>\n{turns}\n</conversation>"
