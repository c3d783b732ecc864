"""One turn, the same for every agent: make the calls of the turn before, ask the model, then go on or end.

Agents differ in their evidence and in their output: an answer that is streamed and proved, or a report of
findings.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol, TypeVar

from shared.platform.errors import CallTimeoutError, DefectError, GroundworkError
from shared.platform.language_models.models import CallLimits, ChatModel, Message, ModelTurn, ToolDefinition
from shared.runs.event_log import RunClosedError, StaleAttemptError
from shared.runs.metering import MOST_CHARS_PER_TOKEN

Outcome = TypeVar("Outcome")
OutcomeT_co = TypeVar("OutcomeT_co", covariant=True)


@dataclass(frozen=True)
class ModelCall:
    """The call of a model in a turn.

    Attributes:
        may_call: whether it may call tools. False = it must answer.
    """

    messages: Sequence[Message]
    tools: Sequence[ToolDefinition]
    limits: CallLimits
    may_call: bool = True


class Agent(Protocol[OutcomeT_co]):
    """An agent during one turn."""

    @property
    def chat_model(self) -> ChatModel:
        """Its model."""

    async def begin(self) -> None:
        """Gather the agent's first evidence, and make the calls of the turn before."""

    async def model_call(self) -> ModelCall | None:
        """Return the call of the model; None if the output needs no further call.

        Raises:
            ModelFailedError: too little time is left.
        """

    async def hear(self, text: str) -> None:
        """Receive the next piece of the model's text."""

    async def go_on(self, turn: ModelTurn) -> OutcomeT_co | None:
        """Plan the calls of the model; return None if it made none, so that the output follows."""

    async def finish(self, turn: ModelTurn | None) -> OutcomeT_co:
        """Complete the output.

        Args:
            turn: the model's last turn; None if it was not called.

        Raises:
            ModelFailedError: the model wrote nothing.
        """

    async def recover(self, failed: GroundworkError) -> OutcomeT_co:
        """Return the output despite the failure of the model, or raise the failure."""


async def take_turn(agent: Agent[Outcome]) -> Outcome:
    """Take a turn of an agent. Failures of the storage are raised."""
    await agent.begin()
    turn: ModelTurn | None = None
    try:
        if (call := await agent.model_call()) is not None:
            turn = await _model_turn(agent, call)
            if (outcome := await agent.go_on(turn)) is not None:
                return outcome
        return await agent.finish(turn)
    except ModelFailedError as broken:
        return await agent.recover(broken.failed)


async def _model_turn(agent: Agent[Outcome], call: ModelCall) -> ModelTurn:
    turn = ModelTurn()
    async with aclosing(_turn_pieces(agent.chat_model, call)) as pieces:
        async for piece in pieces:
            if isinstance(piece, ModelTurn):
                turn = piece
            else:
                await agent.hear(piece)
    return turn


class ModelFailedError(Exception):
    """Failure of the model, as opposed to the storage that the answer is written to."""

    def __init__(self, failed: GroundworkError) -> None:
        super().__init__(failed.detail)
        self.failed = failed


async def _turn_pieces(chat_model: ChatModel, call: ModelCall) -> AsyncGenerator[str | ModelTurn]:
    """Yield pieces of text, then the whole turn. A turn that is too long is cut.

    Raises:
        ModelFailedError: the model failed, or was late.
    """
    limits = call.limits
    until = asyncio.get_running_loop().time() + limits.timeout_s
    chars_left = limits.max_output_tokens * MOST_CHARS_PER_TOKEN
    texts: list[str] = []
    stream = chat_model.stream_turn(call.messages, call.tools, limits, may_call=call.may_call)
    async with aclosing(stream) as pieces:
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
