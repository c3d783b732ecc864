"""Request bodies and errors of the OpenAI API. Fields that this server doesn't use are ignored.

Errors have OpenAI's shape: {"error": {message, type, param, code}}, each with its HTTP status.
"""

from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from local.model_server.protocol.replies import Json


class ApiError(Exception):
    """An error sent to the client. `param` names the invalid field of the body."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.param, self.headers = status, param, headers
        kind = "invalid_request_error" if status < 500 else "server_error"
        self.body: Json = {"error": {"message": message, "type": kind, "param": param, "code": code}}


MAX_INPUTS = 2048  # maximum number of texts per embedding request, as in OpenAI's API

BodyT = TypeVar("BodyT", bound="Body")


class Body(BaseModel):
    """Base of the request models: immutable, with unknown fields ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class ImageUrl(Body):
    url: str


class ContentPart(Body):
    """A text or picture in a message. Other types are accepted and ignored."""

    type: str
    text: str = ""
    image_url: ImageUrl | None = None


class CalledFunction(Body):
    name: str = ""
    arguments: str = ""


class CalledTool(Body):
    """A tool call made earlier in the conversation."""

    function: CalledFunction = CalledFunction()


def _as_parts(content: object) -> object:
    return ({"type": "text", "text": content},) if isinstance(content, str) else content or ()


class Message(Body):
    """A chat message. Content given as a string becomes a single text part."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Annotated[tuple[ContentPart, ...], BeforeValidator(_as_parts)] = ()
    tool_calls: Annotated[tuple[CalledTool, ...], BeforeValidator(lambda value: value or ())] = ()

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.content if part.type == "text")

    @property
    def image_urls(self) -> tuple[str, ...]:
        return tuple(part.image_url.url for part in self.content if part.image_url)


class FunctionSpec(Body):
    name: str
    parameters: dict[str, JsonValue] = Field(default_factory=dict)


class ToolSpec(Body):
    function: FunctionSpec


class JsonSchema(Body):
    name: str
    schema_: dict[str, JsonValue] = Field(alias="schema", default_factory=dict)


class ResponseFormat(Body):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class StreamOptions(Body):
    include_usage: bool = False


class ChatRequest(Body):
    """The body of POST /chat/completions."""

    model: str = ""
    messages: tuple[Message, ...] = Field(min_length=1)
    stream: bool = False
    stream_options: StreamOptions | None = None
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: Literal["none", "auto"] = "auto"
    response_format: ResponseFormat | None = None
    reasoning_effort: str | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    n: Literal[1] | None = None

    @property
    def output_limit(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens

    @property
    def offered(self) -> frozenset[str]:
        """The names of the tools that the model may call; empty if `tool_choice` is "none"."""
        return frozenset(tool.function.name for tool in self.tools if self.tool_choice != "none")

    def texts_of(self, role: str) -> list[str]:
        """Return the texts of all messages with the given role, in order."""
        return [message.text for message in self.messages if message.role == role]

    @property
    def last_user_message(self) -> Message:
        """The last message with the role "user", or an empty one if there is none."""
        users = [message for message in self.messages if message.role == "user"]
        return users[-1] if users else Message(role="user")


class EmbeddingRequest(Body):
    """The body of POST /embeddings. `input` is one text or a list of texts, none of them empty."""

    model: str = ""
    input: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...],
        BeforeValidator(lambda value: (value,) if isinstance(value, str) else value),
        Field(min_length=1, max_length=MAX_INPUTS),
    ]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None


def read_body(kind: type[BodyT], raw: bytes) -> BodyT:
    """Parse and validate a request body.

    Raises:
        ApiError: 400, naming the first invalid field.
    """
    try:
        return kind.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        path = ".".join(str(step) for step in first["loc"]) or None
        message = f"{path or 'The body is not valid JSON'}: {first['msg']}"
        raise ApiError(400, message, code="invalid_value", param=path) from None
