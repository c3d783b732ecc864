"""Wrappers of a chat model and an embedder that record each call as a span with model, tokens, duration and
outcome.

Content is recorded only if the deployment enables it.
Source: OpenTelemetry semantic conventions for generative AI.
"""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import TypeVar

from opentelemetry.trace import Span
from pydantic import BaseModel

from shared.platform.calls import Dependency
from shared.platform.language_models.models import (
    CallLimits,
    DeployedModel,
    Embedder,
    Message,
    ModelTurn,
    ModelUsage,
    Prompt,
    StructuredOutput,
    ToolDefinition,
)
from shared.platform.tracing import (
    Attributes,
    add_content,
    begin,
    end,
    fail_by,
    inside,
    messages_text,
    set_attributes,
    span,
    wants_content,
)

Piece = TypeVar("Piece", str, str | ModelUsage, str | ModelTurn)

TURN = "converse"
_INPUT, _OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"


def provider_of(endpoint: Dependency) -> str:
    """Return the value of the span attribute `gen_ai.provider.name` for an endpoint, as far as the settings
    reveal it.
    """
    return "azure.ai.openai" if endpoint.endpoint_setting.startswith("AZURE") else "openai"


class TracedChatModel(DeployedModel):
    """A chat model that records its calls as spans. Without tracing, it delegates directly to the wrapped
    model.
    """

    def __init__(self, model: DeployedModel, name: str, provider: str) -> None:
        """Wrap a model. `name` is the deployment or model in requests."""
        self._model = model
        self._name = name
        self._provider = provider

    async def parse(
        self, prompt: Prompt, output: type[StructuredOutput], limits: CallLimits
    ) -> StructuredOutput:
        call = self._call(prompt.name, limits, "json", _messages(prompt))
        with call.active():
            value = await self._model.parse(prompt, output, limits)
        call.hear(value.model_dump_json() if wants_content() else "")
        call.end()
        return value

    def stream(self, prompt: Prompt, limits: CallLimits) -> AsyncGenerator[str, None]:
        return _observe(
            self._model.stream(prompt, limits),
            lambda: self._call(prompt.name, limits, "text", _messages(prompt)),
        )

    def stream_output(
        self, prompt: Prompt, output: type[BaseModel], limits: CallLimits
    ) -> AsyncGenerator[str | ModelUsage, None]:
        return _observe(
            self._model.stream_output(prompt, output, limits),
            lambda: self._call(prompt.name, limits, "json", _messages(prompt)),
        )

    def stream_turn(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        limits: CallLimits,
        *,
        may_call: bool = True,
    ) -> AsyncGenerator[str | ModelTurn, None]:
        return _observe(
            self._model.stream_turn(messages, tools, limits, may_call=may_call),
            lambda: self._call(TURN, limits, "text", [(message.role, message.text) for message in messages]),
        )

    def _call(
        self, prompt: str, limits: CallLimits, output: str, messages: Sequence[tuple[str, str]]
    ) -> "_Call":
        attributes: Attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": self._provider,
            "gen_ai.request.model": self._name,
            "gen_ai.request.max_tokens": limits.max_output_tokens,
            "gen_ai.output.type": output,
            "groundwork.prompt": prompt,
        }
        return _Call(begin(f"chat {self._name}", attributes, "client"), messages)


class TracedEmbedder(Embedder):
    """An embedder that records its calls as spans."""

    def __init__(self, embedder: Embedder, name: str, provider: str) -> None:
        """Wrap an embedder. `name` is the deployment or model in requests."""
        self._embedder = embedder
        self._name = name
        self._provider = provider

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    async def embed(self, texts: Sequence[str], limits: CallLimits) -> list[tuple[float, ...]]:
        attributes: Attributes = {
            "gen_ai.operation.name": "embeddings",
            "gen_ai.provider.name": self._provider,
            "gen_ai.request.model": self._name,
            "gen_ai.embeddings.dimension.count": self.dimensions,
            "result_count": len(texts),
        }
        with span(f"embeddings {self._name}", attributes, "client"):
            return await self._embedder.embed(texts, limits)


class _Call:
    """A traced call: its span, and its texts if TRACE_CONTENT is enabled."""

    def __init__(self, span: Span, messages: Sequence[tuple[str, str]]) -> None:
        self.span = span
        self._sent = messages
        self._generated: list[str] = []

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make the span current while part of the call is executed. An exception ends the span."""
        try:
            with inside(self.span):
                yield
        except BaseException as error:
            fail_by(self.span, error)
            self.end()
            raise

    def note_tools(self, turn: ModelTurn) -> None:
        """Record the tool calls that a turn requests."""
        set_attributes(
            self.span, {"groundwork.tool_calls": [requested.name for requested in turn.tool_calls]}
        )
        for requested in turn.tool_calls:
            self.hear(f"\n{requested.name}({requested.arguments})")

    def hear(self, text: str) -> None:
        """Collect generated text to record it in the span, if TRACE_CONTENT is enabled."""
        if wants_content():
            self._generated.append(text)

    def end(self) -> None:
        """End the span and add the texts, if TRACE_CONTENT is enabled. A second call is ignored."""
        if wants_content():
            answered = messages_text([("assistant", "".join(self._generated))])
            add_content(self.span, {_INPUT: messages_text(self._sent), _OUTPUT: answered})
        end(self.span)


async def _observe(
    pieces: AsyncGenerator[Piece, None], begin_call: Callable[[], _Call]
) -> AsyncGenerator[Piece, None]:
    """Yield pieces of a reply. The span covers their generation, but not the time that the reader takes."""
    call = begin_call()
    try:
        async with aclosing(pieces):
            while True:
                with call.active():
                    piece = await anext(pieces, None)
                if piece is None:
                    return
                if isinstance(piece, str):
                    call.hear(piece)
                elif isinstance(piece, ModelTurn):
                    call.note_tools(piece)
                yield piece
    finally:
        call.end()


def _messages(prompt: Prompt) -> list[tuple[str, str]]:
    """Return the role and text of each message in a prompt, without the picture."""
    return [("system", prompt.system), ("user", prompt.user)]
