"""Data models of prompts, messages and replies, and the interfaces of chat models and embedders."""

# Annotations remain strings, so that their types need not be imported at runtime.
from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Literal, Protocol, TypeVar

from pydantic import BaseModel

from shared.platform.models import Model


class Prompt(Model):
    """Rendered prompt. Documents are only quoted in `user` and must be treated as data, never as
    instructions.

    Attributes:
        picture_url: a data URI, for vision models.
    """

    name: Literal[
        "plan",
        "answer",
        "repair",
        "metadata",
        "caption",
        "rerank",
        "grade",
        "rewrite",
        "sql",
        "summarise_turns",
        "summarise_window",
        "summarise_choice",
        "summarise_merge",
        "sub_agent",
    ]
    system: str
    user: str
    picture_url: str | None = None


class CallLimits(Model):
    """Limits of a model or search call, including its retries.

    Attributes:
        timeout_s: limit for all attempts together.
        max_retries: number of retries after the first attempt, on 429 and 5xx only.
        max_output_tokens: maximum number of tokens in the reply.
    """

    timeout_s: float
    max_retries: int = 1
    max_output_tokens: int = 1500


class ToolDefinition(Model):
    """Tool that is offered to a model. `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: dict[str, Any]


class ToolCall(Model):
    """Tool call requested by a model. `arguments` is JSON written by the model and not yet validated."""

    call_id: str
    name: str
    arguments: str


class Picture(Model):
    """Picture attached to a message. `label` is its name in the message text, `url` a data URI."""

    label: str
    url: str


class Message(Model):
    """Message in a conversation with a model.

    Attributes:
        pictures: pictures of a user message. Models without vision receive only the text.
        tool_calls: calls requested by an assistant message. A message with the role tool answers each.
        call_id: id of the tool call that a tool message answers.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    pictures: tuple[Picture, ...] = ()


class ModelUsage(Model):
    """Number of tokens used by a call, as reported by the endpoint. Output tokens include hidden reasoning.

    Attributes:
        cached_tokens: input tokens served from the endpoint's cache.
    """

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0


class ModelTurn(Model):
    """Reply of a model in a conversation: text, tool calls or both.

    Attributes:
        tokens: sum of input and output tokens, or None if the endpoint doesn't report it.
        usage: input and output tokens separately, if the endpoint reports both.
        cut: whether the reply was cut off at its output limit.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tokens: int | None = None
    usage: ModelUsage | None = None
    cut: bool = False


StructuredOutput = TypeVar("StructuredOutput", bound=BaseModel)


class ChatModel(Protocol):
    """Interface of a chat model."""

    async def parse(
        self, prompt: Prompt, output: type[StructuredOutput], limits: CallLimits
    ) -> StructuredOutput:
        """Return a validated instance of `output`. Raise `ModelFixableError` if the reply is invalid."""

    def stream_output(
        self, prompt: Prompt, output: type[BaseModel], limits: CallLimits
    ) -> AsyncGenerator[str | ModelUsage, None]:
        """Yield pieces of JSON as the model generates them. The caller must validate the result.

        The usage comes last if the endpoint reports it. Errors are raised after it.

        Raises:
            OutputCutError: the output limit was reached.
            ModelFixableError: the content filter stopped the answer, or the model refuses.
        """

    def stream_turn(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        limits: CallLimits,
        *,
        may_call: bool = True,
    ) -> AsyncGenerator[str | ModelTurn, None]:
        """Yield pieces of the model's text as it is generated, then the complete turn.

        With `may_call` False the model must answer in text. Reaching the output limit sets `cut`. An endpoint
        without tools yields the text in one piece, because only the end shows whether it is a call.

        Raises:
            ModelFixableError: the reply is empty, refused or filtered.
        """


class VisionModel(Protocol):
    """Interface of a model that describes pictures."""

    def stream(self, prompt: Prompt, limits: CallLimits) -> AsyncGenerator[str, None]:
        """Yield pieces of text as the model generates them.

        Raises:
            OutputCutError: the output limit was reached; raised after the last piece.
            ModelFixableError: the content filter stopped the answer.
        """


class DeployedModel(ChatModel, VisionModel, Protocol):
    """Interface of a model for both conversations and pictures."""


class Embedder(Protocol):
    """Interface of an embedding model."""

    @property
    def dimensions(self) -> int:
        """Number of dimensions of each vector."""

    async def embed(self, texts: Sequence[str], limits: CallLimits) -> list[tuple[float, ...]]:
        """Return one vector per text, in the same order. Long lists are split into batches."""
