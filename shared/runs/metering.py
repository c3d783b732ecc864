"""A chat model that keeps to a token budget and charges every call to the person it works for.

Tokens are reserved before each call and settled afterwards, so that concurrent calls can't spend them twice.
The reservation is charged to the person's daily quota when the call begins, and what the call didn't use is
refunded when it ends. So a run that is cancelled, fails or is killed has been charged for the calls it made,
and neither a commit nor a further attempt at a step charges anything again.

A reservation is also a line of the run's journal: a worker that dies in a call loses the step's result, and
the next attempt counts what was reserved as spent from the run's budget.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from shared.access.daily_use import Usage
from shared.access.limits import charge
from shared.access.user_limit_store import UserLimitStore
from shared.platform.concurrency import run_in_background
from shared.platform.errors import (
    BudgetExceededError,
    CallTimeoutError,
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
from shared.platform.telemetry import usage_told_to
from shared.platform.tokens import CHARS_PER_TOKEN

PICTURE_TOKENS = 1000  # of 768 pixels a side, as shared/documents/figures.py makes them
LEAST_OUTPUT = 200  # tokens: a plan, or one paragraph; with fewer left there is no call
MOST_CHARS_PER_TOKEN = 8  # of German compounds some 6; a model that writes more ignores its limit


Charge = Callable[[int], Coroutine[Any, Any, None]]
"""Adds tokens to what a person has used today; a negative number is a refund. Never raises."""


def charge_to(user_id: str, user_limits: UserLimitStore) -> Charge:
    """Return a function that charges chat tokens to a person's daily quota."""

    async def charge_tokens(tokens: int) -> None:
        await charge(user_id, Usage(chat_tokens=tokens), user_limits)

    return charge_tokens


@dataclass
class TokenMeter:
    """Tokens of one step.

    Attributes:
        left: tokens left when the step began; None if the caller keeps to a budget of its own.
        used: tokens used by the step since.
        promised: tokens reserved for calls that have not ended.
    """

    left: int | None = None
    used: int = 0
    promised: int = 0

    @property
    def room(self) -> int | None:
        """Tokens that a further call may use; None if this meter sets no limit."""
        return None if self.left is None else self.left - self.used - self.promised


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

    def report_usage(self, usage: ModelUsage | None) -> None:
        """Use the usage that came with the reply, unless the endpoint's own report came before it."""
        if usage is not None and not self.reported:
            self.report(usage.input_tokens + usage.output_tokens)

    def hear(self, text: str) -> None:
        """Add what was written; OutputCutError when it continues beyond its limit."""
        self.chars += len(text)
        if self.chars > self.limits.max_output_tokens * MOST_CHARS_PER_TOKEN:
            raise OutputCutError("The model wrote more than allowed.", "Ask for less at once.")


class MeteredChatModel(ChatModel):
    """A chat model that keeps to a token budget.

    Each method raises `BudgetExceededError` if too few tokens are left for a useful call.
    """

    def __init__(
        self,
        model: ChatModel,
        meter: TokenMeter,
        *,
        reserve: Charge | None = None,
        charge: Charge | None = None,
    ) -> None:
        """Meter the calls of `model`.

        Args:
            reserve: records, before each call, the tokens that the attempt may have used after it. None:
                tokens lost in a crash don't count towards the budget.
            charge: charges the person for whom the model works. None: nobody is charged.
        """
        self._model = model
        self._meter = meter
        self._reserve = reserve
        self._charge = charge

    async def parse(
        self, prompt: Prompt, output: type[StructuredOutput], limits: CallLimits
    ) -> StructuredOutput:
        """Structured output; errors as those of the model."""
        async with self._call(prompt, limits) as call:
            value = await self._model.parse(prompt, output, call.limits)
            call.chars = len(value.model_dump_json())
            return value

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
                else:
                    call.report_usage(piece)

    async def converse(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], limits: CallLimits
    ) -> ModelTurn:
        """The model's next turn."""
        async with self._call(messages, limits) as call:
            turn = await self._model.converse(messages, tools, call.limits)
            call.chars = len(turn.text) + sum(len(one.arguments) for one in turn.tool_calls)
            call.report_usage(turn.usage)
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
        call = self._admitted(_tokens_read(read), limits)
        reserved = call.prompt_tokens + call.limits.max_output_tokens
        # Other calls may begin before this one ends: several calls rank passages concurrently.
        self._meter.promised += reserved
        try:
            async with self._charged(reserved, call):
                if self._reserve is not None:
                    await self._reserve(self._meter.used + self._meter.promised)
                with usage_told_to(call.report):
                    yield call
        finally:
            self._meter.promised -= reserved
            self._meter.used += call.tokens

    def _admitted(self, prompt_tokens: int, limits: CallLimits) -> _Call:
        """Return the call with its output limited to what the budget leaves."""
        left = self._meter.room
        if left is None:
            return _Call(prompt_tokens, limits)
        room = left - prompt_tokens
        if room < LEAST_OUTPUT:
            raise BudgetExceededError(
                "This request has used up its tokens.", "Ask for less at once.", "Ask again."
            )
        most = min(limits.max_output_tokens, room)
        return _Call(prompt_tokens, limits.model_copy(update={"max_output_tokens": most}))

    @asynccontextmanager
    async def _charged(self, reserved: int, call: _Call) -> AsyncIterator[None]:
        """Charge the reservation while the call is made; refund what it didn't use."""
        # In the background: the model needs longer than the charge, and the first word doesn't wait for it.
        charging = run_in_background(self._charge(reserved)) if self._charge else None
        try:
            yield
        except (CallTimeoutError, ModelFixableError):
            if not call.chars:  # nobody saw what it wrote, but it may have, and it is paid for
                call.chars = int(call.limits.max_output_tokens * CHARS_PER_TOKEN)
            raise
        except Exception:
            call.is_paid = call.chars > 0
            raise
        finally:
            if self._charge and charging:
                # Shielded: a reader who cancels again while this is written doesn't lose the refund.
                await asyncio.shield(
                    run_in_background(_refund(self._charge, charging, call.tokens - reserved))
                )


async def _refund(charge: Charge, charging: "asyncio.Task[None]", tokens: int) -> None:
    await charging
    if tokens:
        await charge(tokens)


def _tokens_read(read: Prompt | Sequence[Message]) -> int:
    """Estimate the tokens of a prompt, pictures included."""
    if isinstance(read, Prompt):
        return int((len(read.system) + len(read.user)) / CHARS_PER_TOKEN)
    chars = sum(len(message.text) for message in read)
    return int(chars / CHARS_PER_TOKEN) + sum(len(message.pictures) for message in read) * PICTURE_TOKENS
