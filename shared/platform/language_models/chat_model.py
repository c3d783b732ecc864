"""A `ChatModel` for any OpenAI-compatible endpoint, based on the openai SDK. Token counts are logged, but no
texts.

If an endpoint rejects a feature (docs/models.md), the request is sent again at once, within the same limits,
as `chat_request` renders it without that feature.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from shared.platform.calls import Deadline, Dependency, RateGate, call_within
from shared.platform.connections import Connection
from shared.platform.errors import ConfigurationError, ModelFixableError, OutputCutError
from shared.platform.language_models.chat_request import (
    ChatRequest,
    check_ending,
    conversation_request,
    lacks_room,
    output_request,
    prompt_request,
    read_turn,
    read_usage,
    require_content,
    with_distinct_ids,
    with_streaming,
    with_token_limit,
)
from shared.platform.language_models.endpoint import model_errors, protocol_error
from shared.platform.language_models.features import FeatureMemory
from shared.platform.language_models.models import (
    CallLimits,
    DeployedModel,
    Message,
    ModelTurn,
    ModelUsage,
    Prompt,
    StructuredOutput,
    ToolCall,
    ToolDefinition,
)
from shared.platform.language_models.prompted import (
    DeltaText,
    ObjectPieces,
    ThoughtFilter,
    has_no_json,
    read_output,
    repair_messages,
    with_parsed_calls,
)
from shared.platform.language_models.protocol import Efforts, Feature
from shared.platform.telemetry import get_logger, report_usage
from shared.platform.tracing import note_usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream
    from openai.types.chat import ChatCompletionChunk
    from openai.types.chat.chat_completion_chunk import ChoiceDeltaToolCall


@dataclass
class StreamedAnswer:
    """Accumulator for the chunks of a streamed answer. It returns their text and collects usage, finish
    reason and tool calls.

    Attributes:
        answering: whether any chunk had a choice, even an empty one.
    """

    usage: ModelUsage | None = None
    ending: str | None = None
    answering: bool = False
    refused: bool = False
    _calls: dict[int, ToolCall] = field(default_factory=dict)

    def take(self, chunk: "ChatCompletionChunk") -> str:
        """Add a chunk to the answer, and return the text in the chunk."""
        self.usage = read_usage(chunk.usage) or self.usage
        for choice in chunk.choices:  # Azure's first chunk and the chunk with the token usage have no choices
            self.answering = True
            self.ending = choice.finish_reason or self.ending
            self.refused = self.refused or bool(choice.delta.refusal)
            for piece in choice.delta.tool_calls or ():
                self._add_call(piece)
        return "".join(choice.delta.content or "" for choice in chunk.choices)

    def _add_call(self, piece: "ChoiceDeltaToolCall") -> None:
        call = self._calls.get(piece.index) or ToolCall(call_id="", name="", arguments="")
        function = piece.function
        self._calls[piece.index] = ToolCall(
            call_id=call.call_id or piece.id or "",
            name=call.name or (function.name if function else "") or "",
            arguments=call.arguments + ((function.arguments if function else "") or ""),
        )

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The complete tool calls, with distinct ids."""
        return with_distinct_ids([call for _, call in sorted(self._calls.items())])

    def check(self, endpoint: Dependency) -> None:
        """Check that the stream ended with a complete answer.

        Raises:
            OutputCutError: the model reached its output limit.
            ModelFixableError: the answer was filtered or refused.
            DependencyError: the response contained no answer.
        """
        if not self.answering:
            raise protocol_error(endpoint)
        check_ending(self.ending, is_refused=self.refused)
        if self.ending == "length":
            raise OutputCutError(
                "The answer was cut off at its maximum length.",
                "Ask for less, or raise MAX_ANSWER_TOKENS.",
            )


MODEL_SETTING = "CHAT_MODEL"
ROOM_TOKENS = 3_000  # extra output tokens for hidden reasoning, like the setting `reasoning_room_tokens`
TURN = "converse"
_SHORT = frozenset({"plan", "repair", "rewrite", "rerank", "grade", "summarise_turns"})
# Factor on the output limit, because some endpoints count tokens differently when they enforce it.
_LENGTH_SLACK = 1.1
Features = frozenset[Feature]
Render = Callable[[Features], ChatRequest]


class OpenAIChatModel(DeployedModel):
    """Client of one chat model or deployment."""

    def __init__(
        self,
        connection: "Connection[AsyncOpenAI]",
        model: str,
        endpoint: Dependency,
        setting: str = MODEL_SETTING,
        *,
        memory: FeatureMemory | None = None,
        efforts: Efforts | None = None,
        room_tokens: int = ROOM_TOKENS,
    ) -> None:
        """Store the connection without opening it.

        Args:
            setting: the variable that names the model, for error messages.
            room_tokens: added to the output limit when a reply was empty or cut off and is requested again.
        """
        self._connection = connection
        self._model = model
        self._endpoint = endpoint
        self._setting = setting
        self._memory = memory or FeatureMemory()
        self._gate = RateGate()
        self._has_followed_schema = False
        self._efforts = efforts or Efforts()
        self._room_tokens = room_tokens
        self._roomy: set[str] = set()  # names of calls whose replies needed extra tokens for hidden reasoning

    async def parse(
        self, prompt: Prompt, output: type[StructuredOutput], limits: CallLimits
    ) -> StructuredOutput:
        """Return validated structured output. If the endpoint ignores schemas, ask once more with the schema
        in the prompt.

        Raises:
            ModelFixableError: the reply was cut off, filtered or refused, or doesn't match the schema.
        """
        deadline = Deadline(limits.timeout_s)
        turn, features = await self._turn(
            prompt.name, limits, deadline, lambda supported: output_request(prompt, output, supported)
        )
        try:
            value = read_output(turn.text, output)
        except ModelFixableError as invalid:
            problem = invalid
        else:
            self._has_followed_schema = self._has_followed_schema or "json_schema" in features
            return value
        if turn.cut:
            raise ModelFixableError("The answer was cut off at its maximum length.", "Answer more briefly.")
        if "json_schema" in features and (self._has_followed_schema or not has_no_json(turn.text)):
            raise problem  # the endpoint supports schemas, so asking again would waste tokens
        without_schema, correction = features - {"json_schema"}, repair_messages(turn.text, problem.detail)
        turn, _ = await self._turn(
            prompt.name,
            limits,
            deadline,
            lambda supported: output_request(prompt, output, supported & without_schema, correction),
        )
        value = read_output(turn.text, output)
        self._memory.learn(without_schema, self._model)  # the endpoint accepted the schema but ignored it
        return value

    async def stream(self, prompt: Prompt, limits: CallLimits) -> AsyncGenerator[str, None]:
        # Only opening the stream is retried, because text that has been yielded can't be withdrawn.
        pieces = self._generate(prompt.name, limits, lambda features: prompt_request(prompt, features))
        async with aclosing(pieces):
            async for piece in pieces:
                if isinstance(piece, StreamedAnswer):
                    piece.check(self._endpoint)
                else:
                    yield piece

    async def stream_output(
        self, prompt: Prompt, output: type[BaseModel], limits: CallLimits
    ) -> AsyncGenerator[str | ModelUsage, None]:
        json = ObjectPieces()
        pieces = self._generate(
            prompt.name, limits, lambda features: output_request(prompt, output, features)
        )
        async with aclosing(pieces):
            async for piece in pieces:
                if isinstance(piece, StreamedAnswer):
                    if piece.usage is not None:
                        yield piece.usage
                    piece.check(self._endpoint)
                elif of_object := json.feed(piece):
                    yield of_object

    async def converse(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], limits: CallLimits
    ) -> ModelTurn:
        turn, features = await self._turn(
            TURN,
            limits,
            Deadline(limits.timeout_s),
            lambda supported: conversation_request(messages, tools, supported, may_call=True),
        )
        return turn if "tools" in features or not tools else with_parsed_calls(turn)

    async def stream_turn(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        limits: CallLimits,
        *,
        may_call: bool = True,
    ) -> AsyncGenerator[str | ModelTurn, None]:
        if tools and may_call and "tools" not in self._memory.features:
            turn = await self.converse(messages, tools, limits)
            yield turn.text
            yield turn
            return
        text: list[str] = []
        pieces = self._generate(
            TURN,
            limits,
            lambda features: conversation_request(messages, tools, features, may_call=may_call),
        )
        async with aclosing(pieces):
            async for piece in pieces:
                if isinstance(piece, StreamedAnswer):
                    yield self._turn_of("".join(text), piece)
                else:
                    text.append(piece)
                    yield piece

    def _turn_of(self, text: str, answer: StreamedAnswer) -> ModelTurn:
        with suppress(OutputCutError):  # a truncated text is still a usable turn
            answer.check(self._endpoint)
        usage = answer.usage
        turn = ModelTurn(
            text=text,
            tool_calls=answer.calls,
            tokens=usage and usage.input_tokens + usage.output_tokens,
            usage=usage,
            cut=answer.ending == "length",
        )
        return require_content(turn)

    async def _turn(
        self, name: str, limits: CallLimits, deadline: Deadline, render: Render
    ) -> tuple[ModelTurn, Features]:
        """Return a complete reply and the features that the endpoint accepts."""
        started = time.perf_counter()

        async def attempt() -> tuple[ModelTurn, Features]:
            client = await self._connection.opened()
            with model_errors(self._endpoint, self._setting):
                answer, features = await self._create(client, deadline, render, name, limits)
                if lacks_room(answer, structured=name != TURN) and self._may_give_room(name):
                    self._roomy.add(name)
                    self._note(name, limits, started, read_usage(answer.usage), "length")
                    answer, features = await self._create(client, deadline, render, name, limits)
                return read_turn(answer), features

        turn, features = await call_within(deadline, limits.max_retries, attempt, gate=self._gate)
        self._note(name, limits, started, turn.usage, "length" if turn.cut else None)
        return turn, features

    async def _generate(
        self, name: str, limits: CallLimits, render: Render
    ) -> AsyncGenerator[str | StreamedAnswer, None]:
        """Yield pieces of text, then a `StreamedAnswer` with the metadata. The caller must call `check` on
        it.
        """
        deadline = Deadline(limits.timeout_s)
        while True:
            started = time.perf_counter()
            chunks = await call_within(
                deadline,
                limits.max_retries,
                lambda: self._open(deadline, render, name, limits),
                gate=self._gate,
            )
            answer, text, thoughts = StreamedAnswer(), DeltaText(), ThoughtFilter()
            is_empty = True
            try:
                while (delta := await self._next(chunks, answer, deadline)) is not None:
                    if piece := thoughts.feed(text.feed(delta)):
                        is_empty = False
                        yield piece
            finally:
                await chunks.close()  # closing the stream stops the generation if the reader has disconnected
            if rest := thoughts.feed(text.finish()) + thoughts.finish():
                is_empty = False
                yield rest
            self._note(name, limits, started, answer.usage, answer.ending)
            if not (is_empty and answer.ending == "length" and self._may_give_room(name)):
                break
            self._roomy.add(name)
        yield answer

    async def _open(
        self, deadline: Deadline, render: Render, name: str, limits: CallLimits
    ) -> "AsyncStream[ChatCompletionChunk]":
        client = await self._connection.opened()
        with model_errors(self._endpoint, self._setting):
            opened: AsyncStream[ChatCompletionChunk]
            opened, _ = await self._create(
                client, deadline, lambda features: with_streaming(render(features), features), name, limits
            )
            return opened

    async def _create(
        self, client: "AsyncOpenAI", deadline: Deadline, render: Render, name: str, limits: CallLimits
    ) -> tuple[Any, Features]:
        """Send the request. Return the SDK response and the features that the endpoint accepts."""
        efforts = self._efforts
        effort = efforts.short if name in _SHORT else efforts.tools if name == TURN else efforts.writing

        def render_limited(features: Features) -> tuple[dict[str, Any], Features]:
            request = with_token_limit(render(features), self._most_tokens(name, limits), features)
            if "images" in request.used - features:
                raise self._no_pictures()
            return request.arguments, request.used

        create = client.chat.completions.create
        return await self._memory.call(create, self._model, render_limited, deadline, effort)

    def _most_tokens(self, name: str, limits: CallLimits) -> int:
        return limits.max_output_tokens + (self._room_tokens if name in self._roomy else 0)

    def _may_give_room(self, name: str) -> bool:
        return self._room_tokens > 0 and name not in self._roomy

    async def _next(
        self, chunks: "AsyncStream[ChatCompletionChunk]", answer: StreamedAnswer, deadline: Deadline
    ) -> str | None:
        # Limit each chunk instead of the loop: a timeout that spans a yield would cancel the reader.
        with model_errors(self._endpoint, self._setting):
            async with asyncio.timeout_at(deadline.at):
                chunk = await anext(chunks, None)
            return None if chunk is None else answer.take(chunk)

    def _no_pictures(self) -> ConfigurationError:
        # A picture can't be left out of the request, so no successful request will reveal the missing
        # feature. Record it now.
        self._memory.learn(self._memory.features - {"images"}, self._model)
        return ConfigurationError(
            f"The model of {self._endpoint.name} does not accept pictures.",
            f"Set {self._setting} to a vision model, or set MODEL_FEATURES if this model accepts pictures.",
        )

    def _note(
        self, name: str, limits: CallLimits, started: float, usage: ModelUsage | None, ending: str | None
    ) -> None:
        if usage is not None:
            report_usage(usage.input_tokens + usage.output_tokens)
            was_ignored = usage.output_tokens > self._most_tokens(name, limits) * _LENGTH_SLACK
            if (
                was_ignored and "max_tokens" in self._memory.features
            ):  # the endpoint may only support the older field name
                self._memory.learn(self._memory.features - {"max_completion_tokens"}, self._model)
        note_usage(usage.input_tokens if usage else None, usage.output_tokens if usage else None, ending)
        get_logger().info(
            "model.answered",
            prompt=name,
            model=self._model,
            duration_ms=round((time.perf_counter() - started) * 1000),
            input_tokens=usage.input_tokens if usage else None,
            output_tokens=usage.output_tokens if usage else None,
            truncated=ending == "length",
        )
