"""What is said to a language model and what it answers, and the ports of chat models and embedders."""

# For annotations alone: the start of the app need not build every model.
from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Literal, Protocol, TypeVar

from pydantic import BaseModel

from shared.platform.models import Model


class Prompt(Model):
    """A rendered prompt. `user` holds the material; documents in it are data, never instructions.

    Attributes:
        picture_url: a data URI, for models that see.
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
        timeout_s: for the whole call, all tries together.
        max_retries: further tries after the first, on 429 and 5xx only.
        max_output_tokens: the model stops there.
    """

    timeout_s: float
    max_retries: int = 1
    max_output_tokens: int = 1500


class ToolDefinition(Model):
    """A tool as a model sees it. `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: dict[str, Any]


class ToolCall(Model):
    """A call that a model asks for. `arguments` is JSON as the model wrote it: maybe none at all."""

    call_id: str
    name: str
    arguments: str


class Picture(Model):
    """A picture that goes with a message. `label`: what the text calls it; `url`: a data URI."""

    label: str
    url: str


class Message(Model):
    """One message of a conversation.

    Attributes:
        pictures: of a user's message, for models that see; others get the text alone.
        tool_calls: of an assistant's message: what it asked for. Each is answered by a message of role tool.
        call_id: of a tool's message: the call that it answers.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    pictures: tuple[Picture, ...] = ()


class ModelUsage(Model):
    """Tokens of one call as the endpoint counts them; written ones include hidden reasoning.

    Attributes:
        cached_tokens: those of the input that the endpoint had in its cache.
    """

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0


class ModelTurn(Model):
    """What a model says when it is its turn: text, or tool calls, or both.

    Attributes:
        tokens: read and written, as the endpoint counts them; None when it does not say.
        usage: the same apart, where it tells them apart.
        cut: it stopped at its length limit.
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
        """Structured output, validated. ModelFixableError when what came back does not validate."""

    def stream(self, prompt: Prompt, limits: CallLimits) -> AsyncGenerator[str, None]:
        """Text as it is written, in pieces of any size.

        Raises:
            OutputCutError: it ended at its largest length; comes after the last piece.
            ModelFixableError: the content filter ended it.
        """

    def stream_output(
        self, prompt: Prompt, output: type[BaseModel], limits: CallLimits
    ) -> AsyncGenerator[str | ModelUsage, None]:
        """Structured output as it is written: pieces of its JSON, which the reader validates.

        The usage comes last, if the endpoint tells it. Errors as `stream`, and when the model refuses; they
        come after the usage.
        """

    async def converse(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], limits: CallLimits
    ) -> ModelTurn:
        """The model's next turn: text or tool calls.

        Raises:
            ModelFixableError: it said nothing, refused, or the content filter ended it.
        """

    def stream_turn(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        limits: CallLimits,
        *,
        may_call: bool = True,
    ) -> AsyncGenerator[str | ModelTurn, None]:
        """The model's next turn as it is written: pieces of its text, then the whole turn.

        Without `may_call` it must answer in words. Errors as `converse`; a turn that stopped at its length
        limit is `cut` and no error. An endpoint without tools gives the text in one piece, because only its
        end shows whether it is a call.
        """


class Embedder(Protocol):
    """An embedding deployment."""

    @property
    def dimensions(self) -> int:
        """Length of every vector."""

    async def embed(self, texts: Sequence[str], limits: CallLimits) -> list[tuple[float, ...]]:
        """One vector per text, in order; any number of texts, sent in batches."""
