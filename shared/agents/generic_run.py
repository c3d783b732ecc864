"""Acting: one answer of a generic agent. What to do is decided in `core.tool_loop`; this does it, in time."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, assert_never

from shared.agents.generic_events import GenericEvents
from shared.agents.tools.base import Tool, ToolResult, failure
from shared.core.observations import observation
from shared.core.tool_loop import (
    ToolLoopState,
    next_step,
    observe_results,
    observe_silence,
    observe_turn,
)
from shared.errors import BudgetExceededError, CallTimeoutError, ModelFixableError
from shared.models.conversing import ToolDefinition
from shared.models.events import RunEvent
from shared.models.prompts import CallLimits
from shared.models.tool_steps import (
    AskModel,
    CallTools,
    GiveAnswer,
    GiveUp,
    LoopLimits,
    PlannedCall,
    ToolStep,
)
from shared.ports import ChatModel


class GenericRun:
    """One answer. `tools` by name, bound to their user already."""

    def __init__(
        self,
        state: ToolLoopState,
        events: GenericEvents,
        *,
        tools: Mapping[str, Tool],
        definitions: Sequence[ToolDefinition],
        chat_model: ChatModel,
        limits: LoopLimits,
    ) -> None:
        self._state = state
        self._events = events
        self._tools = tools
        self._definitions = definitions
        self._chat_model = chat_model
        self._limits = limits
        self._ended = False

    async def play(self) -> AsyncGenerator[RunEvent]:
        """Its events, COMPLETE last.

        Raises:
            BudgetExceededError: a limit was reached before there was an answer.
            DependencyError, ModelFixableError: the model failed.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + self._limits.deadline_s
        while not self._ended:
            remaining_s = end - loop.time()
            async for event in self._perform(next_step(self._state, self._limits, remaining_s), remaining_s):
                yield event

    async def _perform(self, step: ToolStep, remaining_s: float) -> AsyncGenerator[RunEvent]:
        match step:
            case AskModel():
                self._state = await self._ask(step, remaining_s)
                for event in self._events.of_turn(self._state):
                    yield event
            case CallTools():
                for event in self._events.started(step):
                    yield event
                for event in self._learn(step, await self._call_all(step, remaining_s)):
                    yield event
            case GiveAnswer():
                self._ended = True
                yield self._events.complete(step)
            case GiveUp():
                raise BudgetExceededError(
                    f"The limit of {step.limit} was reached before there was an answer.",
                    "Ask for less at once.",
                    "Whoever made the agent can raise its limits.",
                )
            case _:
                assert_never(step)

    async def _ask(self, step: AskModel, remaining_s: float) -> ToolLoopState:
        kept_s = self._limits.closing_s if step.may_call else 0.0
        timeout_s = max(min(self._limits.turn_timeout_s, remaining_s - kept_s), 0.001)
        limits = CallLimits(timeout_s=timeout_s, max_output_tokens=self._limits.max_output_tokens)
        try:
            turn = await self._chat_model.converse(
                step.messages, self._definitions, limits, may_call=step.may_call
            )
        except (ModelFixableError, CallTimeoutError):
            if not step.may_call:
                raise
            return observe_silence(self._state, step)
        return observe_turn(self._state, step, turn, self._limits)

    async def _call_all(self, step: CallTools, remaining_s: float) -> list[ToolResult]:
        # Time for the last turn is kept back: what tools bring is worth nothing unless it is told.
        kept_s = min(self._limits.closing_s, remaining_s / 2)
        limit_s = max(min(self._limits.tool_timeout_s, remaining_s - kept_s), 0.0)
        return list(await asyncio.gather(*(self._call(planned, limit_s) for planned in step.calls)))

    async def _call(self, planned: PlannedCall, limit_s: float) -> ToolResult:
        if planned.refused is not None:
            refused = planned.refused
            hints = list(refused.hints)
            return {"success": False, "error": refused.error, "type": refused.error_type, "hints": hints}
        try:
            async with asyncio.timeout(limit_s):
                return await self._tools[planned.call.name].execute(**(planned.arguments or {}))
        except TimeoutError:
            return failure(CallTimeoutError(f"{planned.call.name} took longer than its limit."))

    def _learn(self, step: CallTools, results: Sequence[ToolResult]) -> list[RunEvent]:
        most = self._limits.max_observation_chars
        self._state = observe_results(self._state, [observation(result, most) for result in results])
        told = list(self._events.ended(step, results))
        asked = self._question_to_user(step, results)
        if asked is None:
            return told
        self._ended = True
        return [*told, self._events.ask_user(asked), self._events.complete_with_question(asked)]

    def _question_to_user(self, step: CallTools, results: Sequence[ToolResult]) -> dict[str, Any] | None:
        for planned, result in zip(step.calls, results, strict=True):
            tool = self._tools.get(planned.call.name)
            if tool is not None and tool.waits_for_user and result["success"]:
                return {"question": result["question"], "options": result["options"]}
        return None
