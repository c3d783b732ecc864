"""Bodies of OpenAI's chat protocol, as received and sent."""

from typing import Literal

from pydantic import ConfigDict, Field, JsonValue

from shared.platform.models import Model


class ChatMessage(Model):
    """A chat message in OpenAI's protocol. Unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    role: str = Field(
        max_length=20, description="Author of the message. Only messages with the role `user` are used."
    )
    content: str | tuple[dict[str, JsonValue], ...] | None = Field(
        default=None,
        description=(
            "Text, or a list of content parts. The last user message may only have parts of type `text`."
        ),
    )

    @property
    def text(self) -> str:
        """The message text. Text parts are joined with line breaks; other parts are left out."""
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        return "\n".join(str(part.get("text", "")) for part in self.content if part.get("type") == "text")

    @property
    def unsupported_types(self) -> tuple[str, ...]:
        """Types of the content parts that aren't text, such as `image_url`."""
        parts = self.content if isinstance(self.content, tuple) else ()
        return tuple(str(part.get("type")) for part in parts if part.get("type") != "text")


class StreamOptions(Model):
    """Stream options in OpenAI's protocol. Unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    include_usage: bool = Field(
        default=False, description="Whether a chunk with the token usage is sent before the stream ends."
    )


class ResponseFormat(Model):
    """Format of the answer in OpenAI's protocol. Unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    type: Literal["text"] = Field(description="Type of the format. Only `text` is supported.")


class CompletionBody(Model):
    """Body of a chat completion request in OpenAI's protocol. Unknown fields, such as `tools` and
    `temperature`, are ignored.
    """

    model_config = ConfigDict(extra="ignore")

    model: str = Field(
        max_length=200,
        description="`groundwork`, `groundwork-deep` for deep research, or the name of an agent.",
    )
    messages: tuple[ChatMessage, ...] = Field(
        min_length=1,
        max_length=1000,
        description="Messages of the conversation, oldest first. The last user message is the question.",
    )
    stream: bool = Field(default=False, description="Whether the answer is streamed as server-sent events.")
    stream_options: StreamOptions | None = Field(
        default=None, description="Options that apply only if `stream` is true."
    )
    n: int | None = Field(default=None, ge=1, le=1, description="Number of answers, always 1.")
    response_format: ResponseFormat | None = Field(default=None, description="Format of the answer.")
    tool_choice: Literal["auto", "none"] | None = Field(
        default=None, description="Must not require a tool call, because the client's tools are ignored."
    )

    @property
    def questions(self) -> tuple[str, ...]:
        """Texts of the user messages, oldest first."""
        return tuple(message.text for message in self._user_messages)

    @property
    def unsupported_types(self) -> tuple[str, ...]:
        """Types of the parts of the last user message that aren't text."""
        return self._user_messages[-1].unsupported_types if self._user_messages else ()

    @property
    def _user_messages(self) -> tuple[ChatMessage, ...]:
        return tuple(message for message in self.messages if message.role == "user")


class CompletionEvent(Model):
    """A server-sent event of a streamed completion. Lines that begin with `:` are comments."""

    data: str = Field(
        description=(
            "A `chat.completion.chunk` or an error object, as JSON. The last event of a complete answer is "
            "`[DONE]`."
        )
    )


class _Choice(Model):
    index: int = Field(description="Index of the choice, always 0.")
    message: dict[str, JsonValue] = Field(
        description="The answer text in `content`, and its citations in `annotations` of type `url_citation`."
    )
    finish_reason: str = Field(description="`length` if the answer was truncated, otherwise `stop`.")


class Completion(Model):
    """An answer in the `chat.completion` format of OpenAI's protocol."""

    id: str = Field(description="Id of the run, prefixed with `chatcmpl-`.")
    object: Literal["chat.completion"] = Field(description="Object type, always `chat.completion`.")
    created: int = Field(description="Time at which the question arrived, as a Unix timestamp in seconds.")
    model: str = Field(description="Name of the model or agent that the request named.")
    choices: tuple[_Choice, ...] = Field(description="List with the answer as its only choice.")
    usage: dict[str, int] = Field(
        description="Token counts of the whole run: `prompt_tokens`, `completion_tokens` and `total_tokens`."
    )
    groundwork: dict[str, JsonValue] = Field(
        description=(
            "Fields without an equivalent in OpenAI's protocol: `run_id`, `thread_id`, `status`, `citations` "
            "with their verification, and `abstained`."
        )
    )


class ModelObject(Model):
    """A model or an agent in OpenAI's protocol."""

    id: str = Field(description="Name of the model or agent.")
    object: Literal["model"] = Field(default="model", description="Object type, always `model`.")
    created: int = Field(default=0, description="Always 0.")
    owned_by: Literal["groundwork"] = Field(default="groundwork", description="Always `groundwork`.")
    description: str = Field(description="Purpose of the model or agent.")


class ModelList(Model):
    """The models and agents that the caller may use through OpenAI's protocol."""

    object: Literal["list"] = Field(default="list", description="Object type, always `list`.")
    data: tuple[ModelObject, ...] = Field(description="Models and agents.")
