"""The turn loop of all agents: execute the tool calls of the previous turn, call the model, then plan further
calls or finish.

Agents differ in their evidence and in their output: an answer that is streamed and proved, or a report of
findings.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol, TypeVar

from shared.answering.metering import MOST_CHARS_PER_TOKEN
from shared.platform.errors import CallTimeoutError, DefectError, GroundworkError
from shared.platform.language_models.models import CallLimits, ChatModel, Message, ModelTurn, ToolDefinition
from shared.runs.event_log import RunClosedError, StaleAttemptError

Outcome = TypeVar("Outcome")
OutcomeT_co = TypeVar("OutcomeT_co", covariant=True)


@dataclass(frozen=True)
class ModelCall:
    """Input of a single model call in a turn.

    Attributes:
        may_call: whether it may call tools. False = it must answer.
    """

    messages: Sequence[Message]
    tools: Sequence[ToolDefinition]
    limits: CallLimits
    may_call: bool = True


class AgentTurn(Protocol[OutcomeT_co]):
    """Callbacks that an agent implements for one turn. `take_turn` calls them."""

    @property
    def chat_model(self) -> ChatModel:
        """The model that the agent uses."""

    async def begin(self) -> None:
        """Execute the tool calls that the previous turn requested, and collect the evidence for this turn."""

    async def model_call(self) -> ModelCall | None:
        """Return the input of the next model call, or None if the output can be completed without the model.

        Raises:
            ModelFailedError: too little time is left.
        """

    async def receive_text(self, text: str) -> None:
        """Process the next piece of text streamed by the model."""

    async def plan_calls(self, turn: ModelTurn) -> OutcomeT_co | None:
        """Plan the tool calls that the model requested, and return the outcome of the turn. Return None if
        there are none, so that `finish` is called next.
        """

    async def finish(self, turn: ModelTurn | None) -> OutcomeT_co:
        """Complete and return the agent's output.

        Args:
            turn: the model's last turn; None if it was not called.

        Raises:
            ModelFailedError: the model wrote nothing.
        """

    async def recover(self, error: GroundworkError) -> OutcomeT_co:
        """Return the best possible output after a model failure, or raise `error`."""


async def take_turn(agent: AgentTurn[Outcome]) -> Outcome:
    """Execute one turn of an agent and return its outcome. A failure of the model is passed to `recover`; a
    failure of the storage is raised.
    """
    await agent.begin()
    turn: ModelTurn | None = None
    try:
        if (call := await agent.model_call()) is not None:
            turn = await _model_turn(agent, call)
            if (outcome := await agent.plan_calls(turn)) is not None:
                return outcome
        return await agent.finish(turn)
    except ModelFailedError as failed:
        return await agent.recover(failed.error)


async def _model_turn(agent: AgentTurn[Outcome], call: ModelCall) -> ModelTurn:
    turn = ModelTurn()
    async with aclosing(_turn_pieces(agent.chat_model, call)) as pieces:
        async for piece in pieces:
            if isinstance(piece, ModelTurn):
                turn = piece
            else:
                await agent.receive_text(piece)
    return turn


class ModelFailedError(Exception):
    """Raised when the model call of a turn fails, with the cause in `error`. Storage failures are raised
    unwrapped.
    """

    def __init__(self, error: GroundworkError) -> None:
        super().__init__(error.detail)
        self.error = error


async def _turn_pieces(chat_model: ChatModel, call: ModelCall) -> AsyncGenerator[str | ModelTurn]:
    """Yield the model's text piece by piece, then the complete turn. If the text exceeds the output limit,
    the turn ends there.

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
        # Check the time as well, because `asyncio.timeout_at` never fires if the model never suspends.
        if asyncio.get_running_loop().time() >= until:
            raise ModelFailedError(late)
        async with asyncio.timeout_at(until):
            return await anext(pieces, None)
    except TimeoutError as passed:
        raise ModelFailedError(late) from passed
    # RunClosedError and StaleAttemptError come from the token reservation, not from the model.
    except (DefectError, RunClosedError, StaleAttemptError):
        raise
    except GroundworkError as failed:
        raise ModelFailedError(failed) from failed
