"""Builds the messages and tools of a turn of the main agent: the question with its evidence, then each
earlier turn with its results.
"""

from collections.abc import Sequence

from shared.answering.prompt import first_messages
from shared.answering.services import AnsweringServices
from shared.answering.turn_question import TurnQuestion
from shared.documents.figures import pictures_for_model
from shared.platform.language_models.models import Message, Picture, ToolDefinition
from shared.retrieval.models import Hit
from shared.tools.registry import tool_definition


async def turn_messages(question: TurnQuestion, services: AnsweringServices, advice: str) -> list[Message]:
    """Return the messages of a turn. They begin with the messages of the previous turn, so the endpoint can
    cache that prefix.

    Args:
        advice: advice of the delegation policy; empty = none.
    """
    settings = services.settings.answering
    evidence = question.collected.evidence
    rules, question_message = first_messages(
        question.request,
        question.stored.plan,
        evidence,
        settings.organisation,
        question.collected.findings,
        advice=advice,
        files=[file.filename for file in question.stored.files],
    )
    pictures = await _pictures(evidence.best_figures(settings.prompt_figures), services)
    messages: list[Message] = [rules, question_message.model_copy(update={"pictures": pictures})]
    for turn, results in zip(question.before.turns, question.before.results, strict=True):
        calls = tuple(item.call for item in turn.calls)
        messages += [Message(role="assistant", text=turn.said, tool_calls=calls), *results.messages]
        if requested := await _pictures(results.figures, services):
            # Tool results can't contain pictures, so the pictures follow in a user message.
            messages.append(Message(role="user", text="The pictures asked for:", pictures=requested))
    return messages


def turn_tools(question: TurnQuestion, services: AnsweringServices) -> list[ToolDefinition]:
    """Return the definitions of the tools that the model may call for this question."""
    own = services.own_tools
    return [own[name].definition if name in own else tool_definition(name) for name in question.tools]


async def _pictures(figures: Sequence[Hit], services: AnsweringServices) -> tuple[Picture, ...]:
    if not services.settings.answering.prompt_figures:
        return ()
    return await pictures_for_model(figures, services)
