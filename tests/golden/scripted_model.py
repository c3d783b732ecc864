"""A chat model that follows a separate script for each role, for all of its methods."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, TypeAlias

from pydantic import BaseModel

from shared.platform.errors import GroundworkError
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
from shared.platform.telemetry import report_usage

PIECE_CHARS = 7  # small, so that words and tags are split anywhere
# Every call reports the same usage, so that prompts can change without changing the tokens of an answer.
USAGE = ModelUsage(input_tokens=900, output_tokens=100)
TOKENS = USAGE.input_tokens + USAGE.output_tokens


class Hang:
    """A reply for which the model hangs forever."""


Fixed: TypeAlias = str | dict[str, Any] | ModelTurn | GroundworkError | Hang
Reply: TypeAlias = Fixed | Callable[[str], Fixed]
"""A text, the fields of a structured output, a turn with tool calls, an error to raise, or a function that
makes one of them from the text of the prompt."""


class RoleModel(ChatModel):
    """A chat model with a list of replies for each role, returned in order.

    Roles are the names of prompts (`plan`, `repair`, `summarise_turns`, ...) and, for conversations with
    tools, `answer` for the main agent and `sub_agent` for a sub-agent. A sub-agent's structured output has
    the role `report`.

    Attributes:
        prompts: role and text of each previous call.
        hanging: set while a call waits for a reply that never arrives.
    """

    def __init__(self) -> None:
        self.prompts: list[tuple[str, str]] = []
        self.hanging = asyncio.Event()
        self._script: defaultdict[str, list[Reply]] = defaultdict(list)

    def script(self, **replies: Sequence[Reply]) -> None:
        """Append replies to the scripts of roles."""
        for role, further in replies.items():
            self._script[role] += further

    def require_end(self) -> None:
        """Fail if any reply was not used, because the scenario then differs from its description."""
        left = {role: len(replies) for role, replies in self._script.items() if replies}
        assert not left, f"replies that nobody asked for: {left}"

    async def parse(
        self, prompt: Prompt, output: type[StructuredOutput], limits: CallLimits
    ) -> StructuredOutput:
        """Return the next reply of the role as `output`."""
        reply = output.model_validate(await self._next(prompt.name, prompt.user))
        report_usage(TOKENS)
        return reply

    async def stream(self, prompt: Prompt, limits: CallLimits) -> AsyncGenerator[str, None]:
        """Yield the next reply of the role in pieces."""
        for piece in _pieces(str(await self._next(prompt.name, prompt.user))):
            yield piece

    async def stream_output(
        self, prompt: Prompt, output: type[BaseModel], limits: CallLimits
    ) -> AsyncGenerator[str | ModelUsage, None]:
        """Yield the next report as JSON in pieces, then its usage."""
        reply = await self._next("report" if prompt.name == "sub_agent" else prompt.name, prompt.user)
        text = output.model_validate(reply).model_dump_json() if isinstance(reply, dict) else str(reply)
        for piece in _pieces(text):
            yield piece
        report_usage(TOKENS)
        yield USAGE

    async def stream_turn(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        limits: CallLimits,
        *,
        may_call: bool = True,
    ) -> AsyncGenerator[str | ModelTurn, None]:
        """Yield the text of the agent's next turn in pieces, then the turn."""
        turn = _turn(await self._next(*_role_of(messages)))
        for piece in _pieces(turn.text):
            yield piece
        report_usage(TOKENS)
        yield turn

    async def _next(self, role: str, text: str) -> str | dict[str, Any] | ModelTurn:
        self.prompts.append((role, text))
        replies = self._script.get(role)
        assert replies, f"the script has no more replies for the role {role!r}"
        reply = replies.pop(0)
        if callable(reply):
            reply = reply(text)
        if isinstance(reply, Hang):
            self.hanging.set()
            await asyncio.Event().wait()
        if isinstance(reply, GroundworkError):
            raise reply
        assert not isinstance(reply, Hang)
        return reply


def _role_of(messages: Sequence[Message]) -> tuple[str, str]:
    is_child = any("<task>" in message.text for message in messages[:2])
    return ("sub_agent" if is_child else "answer"), "\n".join(message.text for message in messages)


def _turn(reply: str | dict[str, Any] | ModelTurn) -> ModelTurn:
    turn = reply if isinstance(reply, ModelTurn) else ModelTurn(text=str(reply))
    return turn.model_copy(update={"usage": USAGE, "tokens": TOKENS})


def _pieces(text: str) -> list[str]:
    return [text[start : start + PIECE_CHARS] for start in range(0, len(text), PIECE_CHARS)]
