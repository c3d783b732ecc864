"""Acting: performs one decided step and says what it saw. Both drivers run their steps through here."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from shared.answering.run_end import keep_cancelled
from shared.answering.services import AnsweringServices
from shared.answering.step_run import StepRun
from shared.answering.steps import (
    AskUser,
    CommitAnswer,
    FindDocuments,
    MakePlan,
    Observation,
    RefineEvidence,
    ReportFailure,
    ResolveDocuments,
    RetrieveBlocks,
    RunClosed,
    StepAction,
    StepFailed,
    StepInput,
    StepResult,
    TakeAnswer,
    WriteAnswer,
    step_failed,
)
from shared.platform.errors import (
    BudgetExceededError,
    CallTimeoutError,
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
from shared.platform.telemetry import get_logger, usage_told_to
from shared.platform.tokens import CHARS_PER_TOKEN
from shared.runs.event_log import RunClosedError, StaleAttemptError

LEAST_OUTPUT = 200  # tokens: a plan, or one paragraph; with fewer left there is no call
_MOST_CHARS_PER_TOKEN = 8  # as in `synthesis`, of what is left: a model that writes more ignores its limit


@dataclass
class TokenMeter:
    """Tokens of one run: `left` when the step began, `used` by it since, `promised` to calls at work."""

    left: int
    used: int = 0
    promised: int = 0


def with_meter(services: AnsweringServices, meter: TokenMeter) -> AnsweringServices:
    """The services with a chat model that keeps to the meter."""
    return services.using(chat_model=MeteredChatModel(services.chat_model, meter))


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


_LATER_ATTEMPT_POLL_S = 0.5
_LATER_ATTEMPT_TRIES = 240  # two minutes: longer than an answer may take


async def perform_metered(step_input: StepInput, services: AnsweringServices) -> StepResult:
    """The same, with the tokens that it took; no call is made that the run has no tokens left for."""
    meter = TokenMeter(services.settings.budgets.max_total_tokens_per_request - step_input.tokens)
    observation = await perform(step_input, with_meter(services, meter))
    return StepResult(observation=observation, tokens=meter.used)


async def perform(step_input: StepInput, services: AnsweringServices) -> Observation:
    """Perform one step of a run. Expected failures come back as `StepFailed`; defects are raised.

    May run twice for the same step after a crash: what the first attempt finished is not done again, what it
    left half done is marked in the run log and done anew.
    """
    run = StepRun(services, step_input)
    action = step_input.action
    try:
        return await run.known_result(action) or await _performers(run)[type(action)](action)
    except RunClosedError:
        # Somebody ended the run meanwhile; what this step wrote about it elsewhere must not say otherwise.
        with suppress(GroundworkError):
            await keep_cancelled(step_input.run_id, services.run_log, services.runs)
        return RunClosed()
    except StaleAttemptError:
        return await _result_of_later_attempt(run, action)
    except GroundworkError as failed:
        get_logger().warning(
            "step.failed", run_id=step_input.run_id, error_type=failed.code, step=action.step
        )
        await run.discard(failed.code)
        return step_failed(failed, run.remaining_s)


def _performers(run: StepRun) -> Mapping[type, Callable[[Any], Awaitable[Observation]]]:
    return {
        MakePlan: run.make_plan,
        ResolveDocuments: run.resolve_documents,
        AskUser: run.ask_user,
        TakeAnswer: run.take_answer,
        FindDocuments: run.find_documents,
        RetrieveBlocks: run.retrieve_blocks,
        RefineEvidence: run.refine_evidence,
        WriteAnswer: run.write_answer,
        CommitAnswer: run.commit_answer,
        ReportFailure: run.report_failure,
    }


async def _result_of_later_attempt(run: StepRun, action: StepAction) -> Observation:
    """Wait for the attempt that took over: the first to answer ends the step, and this has nothing."""
    for _ in range(_LATER_ATTEMPT_TRIES):
        await asyncio.sleep(_LATER_ATTEMPT_POLL_S)
        try:
            known = await run.known_result(action)
        except RunClosedError:
            return RunClosed()
        if known is not None:
            return known
    message = "Another attempt at this step began and did not end."
    return StepFailed(error_type=StaleAttemptError.code, message=message, retryable=True)
