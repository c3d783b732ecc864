"""The pieces of a model's turn, cut off if the turn is too long and ended if it is late."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from shared.platform.errors import CallTimeoutError, DefectError, GroundworkError
from shared.platform.language_models.models import CallLimits, ChatModel, Message, ModelTurn, ToolDefinition
from shared.runs.event_log import RunClosedError, StaleAttemptError
from shared.runs.metering import MOST_CHARS_PER_TOKEN


class ModelFailedError(Exception):
    """Failure of the model, as opposed to the storage that the answer is written to."""

    def __init__(self, failed: GroundworkError) -> None:
        super().__init__(failed.detail)
        self.failed = failed


async def turn_pieces(
    chat_model: ChatModel,
    messages: Sequence[Message],
    tools: Sequence[ToolDefinition],
    limits: CallLimits,
    *,
    may_call: bool,
) -> AsyncGenerator[str | ModelTurn]:
    """Yield pieces of text, then the whole turn. A turn that is too long is cut.

    Raises:
        ModelFailedError: the model failed, or was late.
    """
    until = asyncio.get_running_loop().time() + limits.timeout_s
    chars_left = limits.max_output_tokens * MOST_CHARS_PER_TOKEN
    texts: list[str] = []
    async with aclosing(chat_model.stream_turn(messages, tools, limits, may_call=may_call)) as pieces:
        while (piece := await _next(pieces, until)) is not None:
            yield piece
            if isinstance(piece, str):
                texts.append(piece)
                chars_left -= len(piece)
                if chars_left < 0:
                    yield ModelTurn(text="".join(texts), cut=True)
                    return


async def _next(pieces: AsyncGenerator[str | ModelTurn, None], until: float) -> str | ModelTurn | None:
    late = CallTimeoutError("The model did not finish its answer in time.", "Ask again, or ask for less.")
    try:
        # `asyncio.timeout_at` alone never fires for a model that never suspends.
        if asyncio.get_running_loop().time() >= until:
            raise ModelFailedError(late)
        async with asyncio.timeout_at(until):
            return await anext(pieces, None)
    except TimeoutError as passed:
        raise ModelFailedError(late) from passed
    except (DefectError, RunClosedError, StaleAttemptError):  # the last two come from the token reservation
        raise
    except GroundworkError as failed:
        raise ModelFailedError(failed) from failed
