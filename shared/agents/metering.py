"""The main agent's tokens: counted over a whole run, and no call is made that they are not left for.

What a run has used so far comes with each step (`StepInput.tokens`) and goes back with its result, so it is
kept where the loop's state is, and costs no request. A call is counted as the endpoint reports it; one that
reports nothing by its text. A call that was refused (429, 5xx) costs nothing.
"""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace

from pydantic import BaseModel

from shared.core.summary_windows import CHARS_PER_TOKEN
from shared.errors import BudgetExceededError, CallTimeoutError, ModelFixableError, OutputCutError
from shared.models.conversing import Message, ModelTurn, ModelUsage, ToolDefinition
from shared.models.prompts import CallLimits, Prompt
from shared.ports import ChatModel, StructuredOutput
from shared.services import Services
from shared.telemetry import usage_told_to

LEAST_OUTPUT = 200  # tokens: a plan, or one paragraph; with fewer left there is no call
_MOST_CHARS_PER_TOKEN = 8  # as in `synthesis`, of what is left: a model that writes more ignores its limit


@dataclass
class TokenMeter:
    """Tokens of one run: `left` when the step began, `used` by it since, `promised` to calls at work."""

    left: int
    used: int = 0
    promised: int = 0


def with_meter(services: Services, meter: TokenMeter) -> Services:
    """The services with a chat model that keeps to the meter."""
    return replace(services, chat_model=MeteredChatModel(services.chat_model, meter))


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
        return self.prompt_tokens + _tokens(self.chars)

    def report(self, tokens: int) -> None:
        """Add what the endpoint told."""
        self.reported += tokens

    def hear(self, text: str) -> None:
        """Add what was written; OutputCutError when it goes on beyond its limit."""
        self.chars += len(text)
        if self.chars > self.limits.max_output_tokens * _MOST_CHARS_PER_TOKEN:
            raise OutputCutError("The model wrote more than it was allowed to.", "Ask for less at once.")


class MeteredChatModel(ChatModel):
    """A chat model within the tokens of a run.

    Each method raises BudgetExceededError when too few are left for a useful call.
    """

    def __init__(self, model: ChatModel, meter: TokenMeter) -> None:
        self._model = model
        self._meter = meter

    async def parse(
        self, prompt: Prompt, output: type[StructuredOutput], limits: CallLimits
    ) -> StructuredOutput:
        """Structured output; errors as those of the model."""
        with self._call((prompt.system, prompt.user), limits) as call:
            value = await self._model.parse(prompt, output, call.limits)
            call.chars = len(value.model_dump_json())
            return value

    async def stream(self, prompt: Prompt, limits: CallLimits) -> AsyncGenerator[str, None]:
        """Text as it is written, and no further than its limit."""
        with self._call((prompt.system, prompt.user), limits) as call:
            async with aclosing(self._model.stream(prompt, call.limits)) as pieces:
                async for piece in pieces:
                    yield piece
                    call.hear(piece)

    async def stream_output(
        self, prompt: Prompt, output: type[BaseModel], limits: CallLimits
    ) -> AsyncGenerator[str | ModelUsage, None]:
        """Pieces of structured output, then their usage."""
        with self._call((prompt.system, prompt.user), limits) as call:
            async with aclosing(self._model.stream_output(prompt, output, call.limits)) as pieces:
                async for piece in pieces:
                    yield piece
                    if isinstance(piece, str):
                        call.hear(piece)

    async def converse(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        limits: CallLimits,
        *,
        may_call: bool = True,
    ) -> ModelTurn:
        """The model's next turn."""
        with self._call([message.text for message in messages], limits) as call:
            turn = await self._model.converse(messages, tools, call.limits, may_call=may_call)
            call.chars = len(turn.text)
            return turn

    @contextmanager
    def _call(self, texts: Sequence[str], limits: CallLimits) -> Iterator[_Call]:
        prompt_tokens = _tokens(sum(len(text) for text in texts))
        room = self._meter.left - self._meter.used - self._meter.promised - prompt_tokens
        if room < LEAST_OUTPUT:
            raise BudgetExceededError(
                "The tokens of this question are used up.", "Ask for less at once.", "Ask again."
            )
        most = min(limits.max_output_tokens, room)
        call = _Call(prompt_tokens, limits.model_copy(update={"max_output_tokens": most}))
        # Others may be made before this one has ended: passages are put in order by several calls at once.
        self._meter.promised += prompt_tokens + most
        try:
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


def _tokens(chars: int) -> int:
    return int(chars / CHARS_PER_TOKEN)
