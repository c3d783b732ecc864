"""A chat model that enforces a token budget and charges each call to the user's daily quota.

Tokens are reserved before each call and settled afterwards, so that concurrent calls can't spend them twice.
The reservation is charged to the user's daily quota when the call begins, and unused tokens are refunded when
it ends. A run that is cancelled, fails or is killed has therefore been charged for its calls, and neither a
commit nor another attempt at a step charges them again.

Each reservation is also a line of the run's journal. If a worker dies during a call, the next attempt counts
the reserved tokens as spent from the run's budget.
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
from shared.answering.budget import Budget
from shared.platform.concurrency import run_in_background
from shared.platform.errors import (
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
from shared.platform.telemetry import listen_for_usage
from shared.platform.tokens import CHARS_PER_TOKEN

# Estimated tokens of a picture of 768 pixels per side, the size that shared/documents/figures.py creates.
PICTURE_TOKENS = 1000
# Minimum output tokens for a useful call: a plan or one paragraph. With fewer left, no call is made.
LEAST_OUTPUT = 200
# German compound words have about 6. If a reply has more, the model ignored its output limit.
MOST_CHARS_PER_TOKEN = 8


Charge = Callable[[int], Coroutine[Any, Any, None]]
"""Adds tokens to a user's daily usage; a negative number is a refund. Never raises."""


def charge_to(user_id: str, user_limits: UserLimitStore) -> Charge:
    """Return a function that charges tokens of the chat model to a user's daily quota."""

    async def charge_tokens(tokens: int) -> None:
        await charge(user_id, Usage(chat_tokens=tokens), user_limits)

    return charge_tokens


@dataclass
class _Call:
    """Usage and limits of one model call in progress."""

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
        """Add tokens that the endpoint reports during the call."""
        self.reported += tokens

    def report_usage(self, usage: ModelUsage | None) -> None:
        """Add the usage stated at the end of the reply, unless the endpoint has already reported it while
        streaming.
        """
        if usage is not None and not self.reported:
            self.report(usage.input_tokens + usage.output_tokens)

    def add_output(self, text: str) -> None:
        """Count streamed output characters. Raise OutputCutError if the model exceeds its output limit."""
        self.chars += len(text)
        if self.chars > self.limits.max_output_tokens * MOST_CHARS_PER_TOKEN:
            raise OutputCutError("The model exceeded its output limit.", "Ask for less at once.")


class MeteredChatModel(ChatModel):
    """A chat model that keeps its calls within a token budget and charges them to a user.

    Each method raises `BudgetSpentError` if too few tokens are left for a useful call.
    """

    def __init__(
        self,
        model: ChatModel,
        budget: Budget,
        *,
        reserve: Charge | None = None,
        charge: Charge | None = None,
    ) -> None:
        """Wrap `model`, and count the tokens of its calls in `budget`.

        Args:
            reserve: records, before each call, the tokens that the attempt may have used after it. None:
                tokens lost in a crash don't count towards the budget.
            charge: charges the user for whom the model works. None: no user is charged.
        """
        self._model = model
        self._budget = budget
        self._reserve = reserve
        self._charge = charge

    async def parse(
        self, prompt: Prompt, output: type[StructuredOutput], limits: CallLimits
    ) -> StructuredOutput:
        """Return the model's structured output for a prompt. Errors of the model are raised unchanged."""
        async with self._call(prompt, limits) as call:
            value = await self._model.parse(prompt, output, call.limits)
            call.chars = len(value.model_dump_json())
            return value

    async def stream_output(
        self, prompt: Prompt, output: type[BaseModel], limits: CallLimits
    ) -> AsyncGenerator[str | ModelUsage, None]:
        """Yield the structured output in pieces, followed by its usage. Raise OutputCutError if it exceeds
        the output limit.
        """
        async with (
            self._call(prompt, limits) as call,
            aclosing(self._model.stream_output(prompt, output, call.limits)) as pieces,
        ):
            async for piece in pieces:
                yield piece
                if isinstance(piece, str):
                    call.add_output(piece)
                else:
                    call.report_usage(piece)

    async def stream_turn(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        limits: CallLimits,
        *,
        may_call: bool = True,
    ) -> AsyncGenerator[str | ModelTurn, None]:
        """Yield the text of the model's next turn in pieces, followed by the whole turn. Raise OutputCutError
        if it exceeds the output limit.
        """
        async with self._call(messages, limits) as call:
            pieces = self._model.stream_turn(messages, tools, call.limits, may_call=may_call)
            async with aclosing(pieces):
                async for piece in pieces:
                    yield piece
                    if isinstance(piece, str):
                        call.add_output(piece)
                    else:
                        call.chars += sum(len(requested.arguments) for requested in piece.tool_calls)
                        call.report_usage(piece.usage)

    @asynccontextmanager
    async def _call(self, read: Prompt | Sequence[Message], limits: CallLimits) -> AsyncIterator[_Call]:
        prompt_tokens = _prompt_tokens(read)
        reply_tokens = self._budget.reply_tokens(
            prompt_tokens, wanted=limits.max_output_tokens, least=LEAST_OUTPUT
        )
        call = _Call(prompt_tokens, limits.model_copy(update={"max_output_tokens": reply_tokens}))
        reserved = prompt_tokens + reply_tokens
        # Reserve the tokens first, because concurrent calls, such as the ranking of passages, may begin
        # before this call ends.
        self._budget.reserve(reserved)
        try:
            async with self._charge_user(reserved, call):
                if self._reserve is not None:
                    await self._reserve(self._budget.committed_tokens)
                with listen_for_usage(call.report):
                    yield call
        finally:
            self._budget.settle(reserved, call.tokens)

    @asynccontextmanager
    async def _charge_user(self, reserved: int, call: _Call) -> AsyncIterator[None]:
        """Charge the reserved tokens when the call begins, and refund the unused ones when it ends."""
        # Run in the background, so that the charge doesn't delay the first token.
        charging = run_in_background(self._charge(reserved)) if self._charge else None
        try:
            yield
        except (CallTimeoutError, ModelFixableError):
            if not call.chars:  # Output is billed even if it never arrived, so assume the maximum.
                call.chars = int(call.limits.max_output_tokens * CHARS_PER_TOKEN)
            raise
        except Exception:
            call.is_paid = call.chars > 0
            raise
        finally:
            if self._charge and charging:
                # Shielded, so that the refund is made even if the run is cancelled a second time.
                await asyncio.shield(
                    run_in_background(_refund(self._charge, charging, call.tokens - reserved))
                )


async def _refund(charge: Charge, charging: "asyncio.Task[None]", tokens: int) -> None:
    await charging
    if tokens:
        await charge(tokens)


def _prompt_tokens(read: Prompt | Sequence[Message]) -> int:
    """Estimate the number of input tokens of a prompt or a conversation, including pictures."""
    if isinstance(read, Prompt):
        return int((len(read.system) + len(read.user)) / CHARS_PER_TOKEN)
    chars = sum(len(message.text) for message in read)
    return int(chars / CHARS_PER_TOKEN) + sum(len(message.pictures) for message in read) * PICTURE_TOKENS
