"""A chat model with scripted replies, and an embedder that hashes words."""

import hashlib
import math
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from pydantic import BaseModel

from shared.answering.plan_reply import PlanReply
from shared.platform.errors import GroundworkError, ModelFixableError, OutputCutError
from shared.platform.language_models.models import (
    CallLimits,
    ChatModel,
    Embedder,
    Message,
    ModelTurn,
    ModelUsage,
    Prompt,
    StructuredOutput,
    ToolDefinition,
)
from shared.runs.plan import QuestionPlan
from tests.fakes.plans import plan_reply

Reply = BaseModel | str | GroundworkError
"""A value for parse(), a text for stream(), a ModelTurn for a turn, or an error for each."""


class ScriptedChatModel(ChatModel):
    """A chat model that returns the next scripted reply for each call. A reply may be a function of the
    prompt.
    """

    def __init__(self, *replies: Reply, answer: Callable[[Prompt], Reply] | None = None) -> None:
        self.prompts: list[Prompt] = []
        self.conversations: list[tuple[Message, ...]] = []
        self.tools: list[tuple[ToolDefinition, ...]] = []
        self._replies = list(replies)
        self._answer = answer
        self._turn: ModelTurn | None = None

    async def parse(
        self, prompt: Prompt, output: type[StructuredOutput], limits: CallLimits
    ) -> StructuredOutput:
        reply = self._next(prompt)
        if isinstance(reply, QuestionPlan) and output is PlanReply:
            return output.model_validate(plan_reply(reply).model_dump())
        if not isinstance(reply, output):
            raise ModelFixableError(f"The model's answer does not fit the schema {output.__name__}.")
        return reply

    async def stream(self, prompt: Prompt, limits: CallLimits) -> AsyncGenerator[str, None]:
        reply = self._next(prompt)
        self._turn = reply if isinstance(reply, ModelTurn) else None
        text = self._turn.text if self._turn else str(reply)
        for start in range(0, len(text), 7):  # pieces of this length split words and tags anywhere
            yield text[start : start + 7]

    async def stream_output(
        self, prompt: Prompt, output: type[BaseModel], limits: CallLimits
    ) -> AsyncGenerator[str | ModelUsage, None]:
        reply = self._next(prompt)
        text = reply.model_dump_json() if isinstance(reply, BaseModel) else str(reply)
        for start in range(0, len(text), 7):
            yield text[start : start + 7]
        yield ModelUsage(input_tokens=len(prompt.user) // 4, output_tokens=len(text) // 4)

    async def stream_turn(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        limits: CallLimits,
        *,
        may_call: bool = True,
    ) -> AsyncGenerator[str | ModelTurn, None]:
        """Yield the reply to the prompt `answer` in pieces. A reply that is text becomes a turn without tool
        calls.

        Turns of sub-agents are returned by `subagent_turn`.
        """
        if any("<task>" in message.text for message in messages[:2]):
            turn = await self.subagent_turn(messages, tools, limits)
            yield turn.text
            yield turn
            return
        self.conversations.append(tuple(messages))
        self.tools.append(tuple(tools))
        system, *material = (message.text for message in messages)
        prompt = Prompt(name="answer", system=system, user="\n".join(material))
        texts: list[str] = []
        is_cut = False
        try:
            async with aclosing(self.stream(prompt, limits)) as pieces:
                async for piece in pieces:
                    texts.append(piece)
                    yield piece
        except OutputCutError:
            is_cut = True
        yield self._turn or ModelTurn(text="".join(texts), cut=is_cut)

    async def subagent_turn(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], limits: CallLimits
    ) -> ModelTurn:
        """Return the next reply as a sub-agent's turn."""
        self.conversations.append(tuple(messages))
        self.tools.append(tuple(tools))
        turn = self._raised(self._replies.pop(0))
        assert isinstance(turn, ModelTurn)
        return turn

    def _next(self, prompt: Prompt) -> BaseModel | str:
        self.prompts.append(prompt)
        return self._raised(self._answer(prompt) if self._answer else self._replies.pop(0))

    def _raised(self, reply: Reply) -> BaseModel | str:
        if isinstance(reply, GroundworkError):
            raise reply
        return reply


def scripted(model: ChatModel) -> ScriptedChatModel:
    """Return a model of `fake_services` with its concrete type, so that tests can inspect its prompts."""
    assert isinstance(model, ScriptedChatModel)
    return model


class NoConversations(ChatModel):
    """A base class for fake models that support neither conversations nor reports."""

    def stream_output(
        self, prompt: Prompt, output: type[BaseModel], limits: CallLimits
    ) -> AsyncGenerator[str | ModelUsage, None]:
        raise AssertionError("this fake model writes no reports")

    def stream_turn(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        limits: CallLimits,
        *,
        may_call: bool = True,
    ) -> AsyncGenerator[str | ModelTurn, None]:
        raise AssertionError("this fake model holds no conversations")


class HashingEmbedder(Embedder):
    """An embedder whose vectors are similar for texts that share words. It is deterministic, and vectors have
    length 1.
    """

    def __init__(self, dimensions: int = 64) -> None:
        self.texts: list[str] = []
        self._dimensions = dimensions

    @property
    def dimensions(self) -> int:
        return self._dimensions

    async def embed(self, texts: Sequence[str], limits: CallLimits) -> list[tuple[float, ...]]:
        self.texts.extend(texts)
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> tuple[float, ...]:
        counts = [0.0] * self._dimensions
        for word in text.lower().split() or [""]:
            digest = hashlib.blake2b(word.encode(), digest_size=4).digest()
            counts[int.from_bytes(digest, "big") % self._dimensions] += 1.0
        length = math.hypot(*counts)
        return tuple(count / length for count in counts)
