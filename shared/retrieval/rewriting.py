"""Rewriting a question (R4, R5): made to stand alone, and phrased anew, to be searched and fused."""

from collections.abc import Sequence
from html import escape

from shared.platform.errors import DependencyError, ModelFixableError
from shared.platform.language_models.models import CallLimits, ChatModel, Message, Prompt
from shared.platform.prompts import element, load
from shared.platform.telemetry import get_logger
from shared.retrieval.models import QueryRewrite

MAX_PHRASINGS = 4  # each is five searches
_MAX_PHRASING_CHARS = 400
_MAX_TURN_CHARS = 1000  # what a pronoun stands for is said early in a turn


async def rewrite(
    question: str, history: Sequence[Message], chat_model: ChatModel, limits: CallLimits
) -> QueryRewrite:
    """The question standing alone, and phrasings to search for; the question itself when the model fails."""
    try:
        return await rewrite_question(question, history, chat_model, limits)
    except (DependencyError, ModelFixableError) as failed:
        get_logger().warning("rewrite.failed", error_type=failed.code)
        return QueryRewrite(standalone_question=question, search_queries=(question,))


async def rewrite_question(
    question: str, history: Sequence[Message], chat_model: ChatModel, limits: CallLimits
) -> QueryRewrite:
    """1-4 different phrasings, the standalone question first.

    Args:
        history: earlier messages of user and assistant, oldest first.

    Raises:
        DependencyError, ModelFixableError: the model failed.
    """
    parts = [_conversation(history)] if history else []
    user = "\n".join([*parts, element("question", question)])
    written = await chat_model.parse(
        Prompt(name="rewrite", system=load("retrieval", "rewrite"), user=user), QueryRewrite, limits
    )
    standalone = written.standalone_question.strip() or question
    phrasings = (text.strip()[:_MAX_PHRASING_CHARS] for text in (standalone, *written.search_queries))
    different: dict[str, str] = {}
    for text in phrasings:
        if text:
            different.setdefault(text.casefold(), text)
    return QueryRewrite(
        standalone_question=standalone, search_queries=tuple(different.values())[:MAX_PHRASINGS]
    )


def _conversation(history: Sequence[Message]) -> str:
    turns = "\n".join(
        f'<turn role="{message.role}">{escape(message.text[:_MAX_TURN_CHARS], quote=False)}</turn>'
        for message in history
    )
    return f"<conversation>\n{turns}\n</conversation>"
