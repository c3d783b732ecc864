"""`ChatModel` over the openai SDK, for any endpoint of the protocol. Logs how much was said; never what.

What an endpoint lacks is done without (docs/models.md): the refused request is sent again at once, within the
same limits, as `chat_request` renders it for what is left.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from shared.platform.calls import Deadline, Dependency, RateGate, call_within
from shared.platform.errors import ConfigurationError, ModelFixableError, OutputCutError
from shared.platform.language_models.chat_request import (
    ChatRequest,
    conversation_request,
    limited,
    output_request,
    prompt_request,
    read_turn,
    read_usage,
    streamed,
)
from shared.platform.language_models.endpoint import filtered, model_errors, not_the_protocol
from shared.platform.language_models.features import Feature, FeatureMemory
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
from shared.platform.language_models.prompted import (
    DeltaText,
    ObjectPieces,
    ThoughtFilter,
    holds_no_json,
    mending_of,
    read_output,
    with_calls_read,
)
from shared.platform.telemetry import get_logger, tell_usage
from shared.platform.tracing import note_usage, outgoing

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream
    from openai.types.chat import ChatCompletionChunk

    from shared.platform.connections import Connection


@dataclass(frozen=True)
class Delta:
    """What one chunk says. `answering`: it belongs to an answer, be it an empty one."""

    text: str
    ending: str | None
    answering: bool
    refused: bool
    usage: ModelUsage | None


@dataclass
class Heard:
    """What the chunks of one answer said beside its text."""

    usage: ModelUsage | None = None
    ending: str | None = None
    answering: bool = False
    refused: bool = False

    def note(self, delta: Delta) -> None:
        """Learn of one more chunk."""
        self.usage = delta.usage or self.usage
        self.ending = delta.ending or self.ending
        self.answering = self.answering or delta.answering
        self.refused = self.refused or delta.refused

    def check(self, endpoint: Dependency) -> None:
        """Once it has ended.

        Raises:
            OutputCutError: at its largest length.
            ModelFixableError: filtered, or refused.
            DependencyError: it was no answer at all.
        """
        if not self.answering:
            raise not_the_protocol(endpoint)
        if self.ending == "content_filter":
            raise filtered()
        if self.refused:
            raise ModelFixableError("The model refused to answer.")
        if self.ending == "length":
            raise OutputCutError(
                "The answer was cut off at its largest length.",
                "Ask for less at once, or raise MAX_ANSWER_TOKENS.",
            )


def read_delta(chunk: "ChatCompletionChunk") -> Delta:
    """What a chunk says."""
    # No choices are in the chunk with the usage, and in Azure's first one.
    return Delta(
        text="".join(choice.delta.content or "" for choice in chunk.choices),
        ending=next((choice.finish_reason for choice in chunk.choices if choice.finish_reason), None),
        answering=bool(chunk.choices),
        refused=any(choice.delta.refusal for choice in chunk.choices),
        usage=read_usage(chunk.usage),
    )


MODEL_SETTING = "CHAT_MODEL"
_LENGTH_SLACK = 1.1  # of what an answer may have: some endpoints count a little otherwise than they cut
Features = frozenset[Feature]
Render = Callable[[Features], ChatRequest]


class OpenAIChatModel(ChatModel):
    """One chat deployment."""

    def __init__(
        self,
        connection: "Connection[AsyncOpenAI]",
        model: str,
        endpoint: Dependency,
        setting: str = MODEL_SETTING,
        *,
        memory: FeatureMemory | None = None,
    ) -> None:
        """`setting`: the one that names the model, for errors that say what to mend."""
        self._connection = connection
        self._model = model
        self._endpoint = endpoint
        self._setting = setting
        self._memory = memory or FeatureMemory()
        self._gate = RateGate()
        self._has_heeded_schema = False

    async def parse(
        self, prompt: Prompt, output: type[StructuredOutput], limits: CallLimits
    ) -> StructuredOutput:
        """Structured output, validated; where nothing holds the model to the schema, asked for once more.

        Raises:
            ModelFixableError: cut off, filtered, refused, or not what the schema asks for.
        """
        deadline = Deadline(limits.timeout_s)
        turn, features = await self._turn(
            prompt.name, limits, deadline, lambda known: output_request(prompt, output, known)
        )
        try:
            value = read_output(turn.text, output)
        except ModelFixableError as invalid:
            problem = invalid
        else:
            self._has_heeded_schema = self._has_heeded_schema or "json_schema" in features
            return value
        if turn.cut:
            raise ModelFixableError("The answer was cut off at its largest length.", "Answer more briefly.")
        if "json_schema" in features and (self._has_heeded_schema or not holds_no_json(turn.text)):
            raise problem  # schemas are heeded, mostly; a second call would cost what nobody planned
        in_words, mending = features - {"json_schema"}, mending_of(turn.text, problem.detail)
        turn, _ = await self._turn(
            prompt.name,
            limits,
            deadline,
            lambda known: output_request(prompt, output, known & in_words, mending),
        )
        value = read_output(turn.text, output)
        self._memory.learn(in_words, self._model)  # it took a schema, and did not heed it
        return value

    async def stream(self, prompt: Prompt, limits: CallLimits) -> AsyncGenerator[str, None]:
        # Only the opening is tried again: what was read cannot be taken back.
        said = self._said(prompt.name, limits, lambda known: prompt_request(prompt, known))
        async with aclosing(said):
            async for piece in said:
                if isinstance(piece, str):
                    yield piece

    async def stream_output(
        self, prompt: Prompt, output: type[BaseModel], limits: CallLimits
    ) -> AsyncGenerator[str | ModelUsage, None]:
        json = ObjectPieces()
        said = self._said(prompt.name, limits, lambda known: output_request(prompt, output, known))
        async with aclosing(said):
            async for piece in said:
                of_object = json.feed(piece) if isinstance(piece, str) else piece
                if of_object:
                    yield of_object

    async def converse(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        limits: CallLimits,
        *,
        may_call: bool = True,
    ) -> ModelTurn:
        turn, features = await self._turn(
            "converse",
            limits,
            Deadline(limits.timeout_s),
            lambda known: conversation_request(messages, tools, known, may_call=may_call),
        )
        return turn if "tools" in features or not tools else with_calls_read(turn)

    async def _turn(
        self, name: str, limits: CallLimits, deadline: Deadline, render: Render
    ) -> tuple[ModelTurn, Features]:
        """A whole answer, and what its request was rendered for."""
        started = time.perf_counter()

        async def attempt() -> tuple[ModelTurn, Features]:
            client = await self._connection.opened()
            with model_errors(self._endpoint, self._setting):
                answer, features = await self._created(client, deadline, self._limited(render, limits))
                return read_turn(answer), features

        turn, features = await call_within(deadline, limits.max_retries, attempt, gate=self._gate)
        self._note(name, limits, started, turn.usage, "length" if turn.cut else None)
        return turn, features

    async def _said(
        self, name: str, limits: CallLimits, render: Render
    ) -> AsyncGenerator[str | ModelUsage, None]:
        """Pieces of text, then the usage if it is told; what `stream` raises comes behind both."""
        deadline = Deadline(limits.timeout_s)
        started = time.perf_counter()
        limited_render = self._limited(render, limits)
        chunks = await call_within(
            deadline, limits.max_retries, lambda: self._open(deadline, limited_render), gate=self._gate
        )
        heard, text, thoughts = Heard(), DeltaText(), ThoughtFilter()
        try:
            while (delta := await self._next(chunks, deadline)) is not None:
                heard.note(delta)
                if piece := thoughts.feed(text.feed(delta.text)):
                    yield piece
        finally:
            await chunks.close()  # a reader that goes away ends the model's work
        if rest := thoughts.feed(text.finish()) + thoughts.finish():
            yield rest
        self._note(name, limits, started, heard.usage, heard.ending)
        if heard.usage is not None:
            yield heard.usage
        heard.check(self._endpoint)

    async def _open(self, deadline: Deadline, render: Render) -> "AsyncStream[ChatCompletionChunk]":
        client = await self._connection.opened()
        with model_errors(self._endpoint, self._setting):
            opened: AsyncStream[ChatCompletionChunk]
            opened, _ = await self._created(client, deadline, lambda known: streamed(render(known), known))
            return opened

    async def _created(
        self, client: "AsyncOpenAI", deadline: Deadline, render: Render
    ) -> tuple[Any, Features]:
        """The SDK's answer, and what the request was rendered for; without what the endpoint refuses."""
        from openai import APIStatusError

        features = self._memory.features
        while True:
            request = render(features)
            if "images" in request.used - features:
                raise self._no_pictures()
            try:
                async with asyncio.timeout_at(deadline.at):
                    answer = await client.chat.completions.create(
                        model=self._model,
                        timeout=max(deadline.remaining_s, 0.001),
                        extra_headers=outgoing(),
                        **request.arguments,
                    )
            except APIStatusError as error:
                missing = self._memory.refused(error, request.used)
                if missing is None:
                    raise
                features -= {missing}
            else:
                self._memory.learn(features, self._model)
                return answer, features

    async def _next(self, chunks: "AsyncStream[ChatCompletionChunk]", deadline: Deadline) -> Delta | None:
        # Around each chunk and not around the loop: a timeout that spans a yield would strike the reader.
        with model_errors(self._endpoint, self._setting):
            async with asyncio.timeout_at(deadline.at):
                chunk = await anext(chunks, None)
            return None if chunk is None else read_delta(chunk)

    def _limited(self, render: Render, limits: CallLimits) -> Render:
        return lambda known: limited(render(known), limits.max_output_tokens, known)

    def _no_pictures(self) -> ConfigurationError:
        # No other request could show that it is the picture: there is none without it.
        self._memory.learn(self._memory.features - {"images"}, self._model)
        return ConfigurationError(
            f"The model of {self._endpoint.name} takes no pictures.",
            f"Set {self._setting} to one that sees, or MODEL_FEATURES if this one does.",
        )

    def _note(
        self, name: str, limits: CallLimits, started: float, usage: ModelUsage | None, ending: str | None
    ) -> None:
        if usage is not None:
            tell_usage(usage.input_tokens + usage.output_tokens)
            self._learn_limit(usage.output_tokens > limits.max_output_tokens * _LENGTH_SLACK)
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

    def _learn_limit(self, was_ignored: bool) -> None:
        """An endpoint that takes the newer name of the limit and does not heed it may know the older."""
        if was_ignored and "max_tokens" in self._memory.features:
            self._memory.learn(self._memory.features - {"max_completion_tokens"}, self._model)
