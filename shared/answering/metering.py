"""A chat model that keeps to the tokens of one run, and its turns within their limits.

Tokens are reserved before each call and settled afterwards, so that concurrent calls can't spend them twice.
The reservation is stored: a worker that dies in a call takes the result of the step with it, and the next
attempt counts what was reserved as spent.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from pydantic import BaseModel

from shared.platform.errors import (
    BudgetExceededError,
    CallTimeoutError,
    DefectError,
    GroundworkError,
    ModelFixableError,
    OutputCutError,
)
from shared.platform.language_models.models import (
    CallLimits,
    ChatModel,
    Message,
    ModelTurn,
    ModelUsage,
    Prompt,
    StructuredOutput,
    ToolDefinition,
)
from shared.platform.models import Model
from shared.platform.telemetry import usage_told_to
from shared.platform.tokens import CHARS_PER_TOKEN
from shared.runs.working_memory import WorkingMemory

PICTURE_TOKENS = 1000  # of 768 pixels a side, as shared/documents/figures.py makes them
LEAST_OUTPUT = 200  # tokens: a plan, or one paragraph; with fewer left there is no call
_MOST_CHARS_PER_TOKEN = 8  # of German compounds some 6; a model that writes more ignores its limit


@dataclass
class TokenMeter:
    """Tokens of one run: `left` when the step began, `used` by it since, `promised` to calls at work."""

    left: int
    used: int = 0
    promised: int = 0


class ReservedTokens(Model):
    """Tokens that the model calls of a step may have cost, as they are stored for another attempt at it."""

    tokens: int


@dataclass
class _Call:
    """One call: what it reads, and may write."""

    prompt_tokens: int
    limits: CallLimits
    reported: int = 0
    chars: int = 0
    is_paid: bool = True

    @property
    def tokens(self) -> int:
        if self.reported or not self.is_paid:
            return self.reported
        return self.prompt_tokens + int(self.chars / CHARS_PER_TOKEN)

    def report(self, tokens: int) -> None:
        """Add what the endpoint told."""
        self.reported += tokens

    def hear(self, text: str) -> None:
        """Add what was written; OutputCutError when it continues beyond its limit."""
        self.chars += len(text)
        if self.chars > self.limits.max_output_tokens * _MOST_CHARS_PER_TOKEN:
            raise OutputCutError("The model wrote more than allowed.", "Ask for less at once.")


class MeteredChatModel(ChatModel):
    """A chat model within the tokens of a run.

    Each method raises BudgetExceededError when too few are left for a useful call.
    """

    def __init__(
        self, model: ChatModel, meter: TokenMeter, memory: WorkingMemory | None = None, step: int = 0
    ) -> None:
        """`memory`: None = what a crash loses isn't counted."""
        self._model = model
        self._meter = meter
        self._memory = memory
        self._step = step

    async def count_lost(self) -> None:
        """Count what earlier attempts at the step may have cost."""
        if self._memory is not None:
            lost = await self._memory.find(self._step, ReservedTokens, "reserved")
            self._meter.used += lost.tokens if lost else 0

    async def parse(
        self, prompt: Prompt, output: type[StructuredOutput], limits: CallLimits
    ) -> StructuredOutput:
        """Structured output; errors as those of the model."""
        async with self._call(prompt, limits) as call:
            value = await self._model.parse(prompt, output, call.limits)
            call.chars = len(value.model_dump_json())
            return value

    async def stream(self, prompt: Prompt, limits: CallLimits) -> AsyncGenerator[str, None]:
        """Text as it is written, and no further than its limit."""
        async with (
            self._call(prompt, limits) as call,
            aclosing(self._model.stream(prompt, call.limits)) as pieces,
        ):
            async for piece in pieces:
                yield piece
                call.hear(piece)

    async def stream_output(
        self, prompt: Prompt, output: type[BaseModel], limits: CallLimits
    ) -> AsyncGenerator[str | ModelUsage, None]:
        """Pieces of structured output, then their usage."""
        async with (
            self._call(prompt, limits) as call,
            aclosing(self._model.stream_output(prompt, output, call.limits)) as pieces,
        ):
            async for piece in pieces:
                yield piece
                if isinstance(piece, str):
                    call.hear(piece)

    async def converse(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], limits: CallLimits
    ) -> ModelTurn:
        """The model's next turn."""
        async with self._call(messages, limits) as call:
            turn = await self._model.converse(messages, tools, call.limits)
            call.chars = len(turn.text)
            return turn

    async def stream_turn(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        limits: CallLimits,
        *,
        may_call: bool = True,
    ) -> AsyncGenerator[str | ModelTurn, None]:
        """The model's next turn as it is written, and no further than its limit."""
        async with self._call(messages, limits) as call:
            pieces = self._model.stream_turn(messages, tools, call.limits, may_call=may_call)
            async with aclosing(pieces):
                async for piece in pieces:
                    yield piece
                    if isinstance(piece, str):
                        call.hear(piece)

    @asynccontextmanager
    async def _call(self, read: Prompt | Sequence[Message], limits: CallLimits) -> AsyncIterator[_Call]:
        if isinstance(read, Prompt):
            chars, pictures = len(read.system) + len(read.user), 0
        else:
            chars = sum(len(message.text) for message in read)
            pictures = sum(len(message.pictures) for message in read)
        prompt_tokens = int(chars / CHARS_PER_TOKEN) + pictures * PICTURE_TOKENS
        room = self._meter.left - self._meter.used - self._meter.promised - prompt_tokens
        if room < LEAST_OUTPUT:
            raise BudgetExceededError(
                "This question has used up its tokens.", "Ask for less at once.", "Ask again."
            )
        most = min(limits.max_output_tokens, room)
        call = _Call(prompt_tokens, limits.model_copy(update={"max_output_tokens": most}))
        # Others may be made before this one has ended: passages are put in order by several calls at once.
        self._meter.promised += prompt_tokens + most
        try:
            if self._memory is not None:
                reserved = ReservedTokens(tokens=self._meter.used + self._meter.promised)
                await self._memory.write(self._step, reserved, "reserved")
            with usage_told_to(call.report):
                yield call
        except (CallTimeoutError, ModelFixableError):
            if not call.chars:  # nobody saw what it wrote, but it may have, and it is paid for
                call.chars = int(most * CHARS_PER_TOKEN)
            raise
        except GeneratorExit:
            raise
        except Exception:
            call.is_paid = call.chars > 0
            raise
        finally:
            self._meter.promised -= prompt_tokens + most
            self._meter.used += call.tokens


class ModelFailedError(Exception):
    """It is the model that failed, not the storage that the answer is written to."""

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
    """Pieces of text, then the whole turn; one that is too long or late is cut.

    Raises:
        ModelFailedError: the model failed, or was late.
    """
    until = asyncio.get_running_loop().time() + limits.timeout_s
    chars_left = limits.max_output_tokens * _MOST_CHARS_PER_TOKEN
    said: list[str] = []
    async with aclosing(chat_model.stream_turn(messages, tools, limits, may_call=may_call)) as pieces:
        while (piece := await _next(pieces, until)) is not None:
            yield piece
            if isinstance(piece, str):
                said.append(piece)
                chars_left -= len(piece)
                if chars_left < 0:
                    yield ModelTurn(text="".join(said), cut=True)
                    return


async def _next(pieces: AsyncGenerator[str | ModelTurn, None], until: float) -> str | ModelTurn | None:
    late = CallTimeoutError("The model did not finish its answer in time.", "Ask again, or ask for less.")
    try:
        # A model that never lets us wait would never be late for `asyncio.timeout_at` alone.
        if asyncio.get_running_loop().time() >= until:
            raise ModelFailedError(late)
        async with asyncio.timeout_at(until):
            return await anext(pieces, None)
    except TimeoutError as passed:
        raise ModelFailedError(late) from passed
    except DefectError:
        raise
    except GroundworkError as failed:
        raise ModelFailedError(failed) from failed
