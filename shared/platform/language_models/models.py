"""Prompts, messages and replies of language models, and the ports of chat models and embedders."""

# Annotations stay text, so that their types need not be imported at start.
from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Literal, Protocol, TypeVar

from pydantic import BaseModel

from shared.platform.models import Model


class Prompt(Model):
    """A rendered prompt. `user` holds the material; documents in it are data, never instructions.

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
    """Limits of one model or search call, retries included.

    Attributes:
        timeout_s: for the whole call, all attempts together.
        max_retries: retries after the first attempt, on 429 and 5xx only.
        max_output_tokens: where the model stops.
    """

    timeout_s: float
    max_retries: int = 1
    max_output_tokens: int = 1500


class ToolDefinition(Model):
    """A tool as declared to a model. `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: dict[str, Any]


class ToolCall(Model):
    """A tool call requested by a model. `arguments` is the model's JSON, unvalidated."""

    call_id: str
    name: str
    arguments: str


class Picture(Model):
    """A picture attached to a message. `label` is its name in the text, `url` a data URI."""

    label: str
    url: str


class Message(Model):
    """One message of a conversation.

    Attributes:
        pictures: of a user message, for vision models; other models get only the text.
        tool_calls: of an assistant message; each is answered by a message with the role tool.
        call_id: of a tool message: the call that it answers.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    pictures: tuple[Picture, ...] = ()


class ModelUsage(Model):
    """Tokens of one call as counted by the endpoint. Output tokens include hidden reasoning.

    Attributes:
        cached_tokens: input tokens served from the endpoint's cache.
    """

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0


class ModelTurn(Model):
    """A model's reply in a conversation: text, tool calls or both.

    Attributes:
        tokens: input and output together as counted by the endpoint; None if it doesn't report them.
        usage: the same, separately, if the endpoint reports both.
        cut: whether the reply stopped at its output limit.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tokens: int | None = None
    usage: ModelUsage | None = None
    cut: bool = False


StructuredOutput = TypeVar("StructuredOutput", bound=BaseModel)


class ChatModel(Protocol):
    """A chat deployment."""

    async def parse(
        self, prompt: Prompt, output: type[StructuredOutput], limits: CallLimits
    ) -> StructuredOutput:
        """Return validated structured output. Raise ModelFixableError if the reply doesn't validate."""

    def stream_output(
        self, prompt: Prompt, output: type[BaseModel], limits: CallLimits
    ) -> AsyncGenerator[str | ModelUsage, None]:
        """Yield structured output as it is generated: pieces of JSON, which the caller validates.

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
        """Yield the model's next turn as it is generated: pieces of its text, then the whole turn.

        With `may_call` False the model must answer in text. Reaching the output limit sets `cut`. An endpoint
        without tools yields the text in one piece, because only the end shows whether it is a call.

        Raises:
            ModelFixableError: the reply is empty, refused or filtered.
        """


class VisionModel(Protocol):
    """A deployment that describes pictures."""

    def stream(self, prompt: Prompt, limits: CallLimits) -> AsyncGenerator[str, None]:
        """Yield text as it is generated, in pieces of any size.

        Raises:
            OutputCutError: the output limit was reached; raised after the last piece.
            ModelFixableError: the content filter stopped the answer.
        """


class DeployedModel(ChatModel, VisionModel, Protocol):
    """A deployment for questions and for pictures."""


class Embedder(Protocol):
    """An embedding deployment."""

    @property
    def dimensions(self) -> int:
        """The length of every vector."""

    async def embed(self, texts: Sequence[str], limits: CallLimits) -> list[tuple[float, ...]]:
        """Return one vector per text, in order. Any number of texts is sent in batches."""
