"""Models for sub-agents: one that reports its usage, and one that fails in the middle of a report."""

from collections.abc import AsyncGenerator
from typing import Any

from pydantic import BaseModel

from shared.platform.errors import GroundworkError
from shared.platform.language_models.models import CallLimits, ModelTurn, ModelUsage, Prompt
from tests.fakes.models import Reply, ScriptedChatModel


class CountedModel(ScriptedChatModel):
    """A model that reports token usage for every turn, and records the limits of its calls."""

    def __init__(self, *replies: Reply) -> None:
        super().__init__(*replies)
        self.limits: list[CallLimits] = []

    async def subagent_turn(self, messages: Any, tools: Any, limits: CallLimits, **more: Any) -> ModelTurn:
        self.limits.append(limits)
        turn = await super().subagent_turn(messages, tools, limits, **more)
        return turn.model_copy(update={"usage": ModelUsage(input_tokens=1000, output_tokens=50)})

    async def stream_output(
        self, prompt: Prompt, output: type[BaseModel], limits: CallLimits
    ) -> AsyncGenerator[str | ModelUsage, None]:
        self.limits.append(limits)
        async for piece in super().stream_output(prompt, output, limits):
            yield ModelUsage(input_tokens=1500, output_tokens=100) if not isinstance(piece, str) else piece


class BreakingModel(CountedModel):
    """A model that writes the beginning of a report and then fails."""

    def __init__(self, *replies: Reply, error: GroundworkError, share: float) -> None:
        super().__init__(*replies)
        self._error = error
        self._share = share

    async def stream_output(
        self, prompt: Prompt, output: type[BaseModel], limits: CallLimits
    ) -> AsyncGenerator[str | ModelUsage, None]:
        reply = self._next(prompt)
        assert isinstance(reply, BaseModel)
        text = reply.model_dump_json()
        yield text[: int(len(text) * self._share)]
        raise self._error
