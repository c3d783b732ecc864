"""A conversation with a model that may call tools: messages, calls it asks for, what it says in a turn."""

from typing import Any, Literal

from shared.models.base import Model


class ToolDefinition(Model):
    """A tool as a model is told of it. `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: dict[str, Any]


class ToolCall(Model):
    """A call that a model asks for. `arguments` is JSON as the model wrote it: maybe none at all."""

    call_id: str
    name: str
    arguments: str


class Message(Model):
    """One message of a conversation.

    Attributes:
        tool_calls: of an assistant's message: what it asked for. Each is answered by a message of role tool.
        call_id: of a tool's message: the call that it answers.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None


class ModelUsage(Model):
    """Tokens of one call as the endpoint counts them; written ones include hidden reasoning."""

    input_tokens: int
    output_tokens: int


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
