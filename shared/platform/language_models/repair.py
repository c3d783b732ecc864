"""Structured output with one repair: if the model's reply is invalid, it is asked again with the error."""

from collections.abc import Callable

from shared.platform.errors import ModelFixableError
from shared.platform.language_models.models import CallLimits, ChatModel, Prompt, StructuredOutput
from shared.platform.prompts import element


async def parse_or_repair(
    chat_model: ChatModel, prompt: Prompt, output: type[StructuredOutput], limits: Callable[[], CallLimits]
) -> tuple[StructuredOutput, int]:
    """Return the model's structured output, and the number of replies that it took: 1 or 2. After an invalid
    reply, the prompt is sent once more with a description of the error.

    Args:
        limits: returns the limits of a call that begins now.

    Raises:
        ModelFixableError: the second reply is invalid too.
    """
    try:
        return await chat_model.parse(prompt, output, limits()), 1
    except ModelFixableError as invalid:
        error = element("previous_error", invalid.detail)
    repaired = prompt.model_copy(update={"user": f"{prompt.user}\n{error}"})
    return await chat_model.parse(repaired, output, limits()), 2
