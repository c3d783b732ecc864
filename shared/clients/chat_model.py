"""`ChatModel` over the openai SDK. Logs how much was said and how long it took; never what."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from pydantic import BaseModel

from shared.clients.connection import Connection
from shared.clients.conversing import conversation_arguments, output_format, read_turn, read_usage
from shared.clients.delta_text import DeltaText
from shared.clients.dependency import Dependency
from shared.clients.rate_gate import RateGate
from shared.clients.retrying import Deadline, call_within
from shared.clients.translate_openai import filtered, model_errors, not_the_protocol
from shared.errors import ModelFixableError, OutputCutError
from shared.models.conversing import Message, ModelTurn, ModelUsage, ToolDefinition
from shared.models.prompts import CallLimits, Prompt
from shared.ports import ChatModel, StructuredOutput
from shared.telemetry import get_logger, tell_usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream
    from openai.types.chat import ChatCompletionChunk, ParsedChatCompletion

MODEL_SETTING = "CHAT_MODEL"


class OpenAIChatModel(ChatModel):
    """One chat deployment."""

    def __init__(
        self,
        connection: "Connection[AsyncOpenAI]",
        model: str,
        endpoint: Dependency,
        setting: str = MODEL_SETTING,
    ) -> None:
        """`setting`: the one that names the model, for errors that say what to mend."""
        self._connection = connection
        self._model = model
        self._endpoint = endpoint
        self._setting = setting
        self._gate = RateGate()

    async def parse(
        self, prompt: Prompt, output: type[StructuredOutput], limits: CallLimits
    ) -> StructuredOutput:
        """Structured output, validated.

        Raises:
            ModelFixableError: cut off, filtered, refused, or not what the schema asks for.
        """
        client = await self._connection.opened()
        deadline = Deadline(limits.timeout_s)
        started = time.perf_counter()

        async def attempt() -> _Parsed[StructuredOutput]:
            with model_errors(self._endpoint, self._setting):
                async with asyncio.timeout_at(deadline.at):
                    completion = await client.chat.completions.parse(
                        response_format=output, **self._arguments(prompt, limits, deadline)
                    )
                return _read_answer(completion)

        answer = await call_within(deadline, limits.max_retries, attempt, gate=self._gate)
        self._log(prompt.name, started, answer.usage)
        if answer.value is None:
            raise ModelFixableError(
                "The model refused to answer." if answer.refused else "The model said nothing."
            )
        return answer.value

    async def stream(self, prompt: Prompt, limits: CallLimits) -> AsyncGenerator[str, None]:
        """Text as it is written. Only the opening is tried again: what was read cannot be taken back.

        Raises:
            OutputCutError: it ended at its largest length; all that was written has been given.
            ModelFixableError: the content filter ended it.
        """
        async with aclosing(self._said(prompt, limits, {})) as said:
            async for piece in said:
                if isinstance(piece, str):
                    yield piece

    async def stream_output(
        self, prompt: Prompt, output: type[BaseModel], limits: CallLimits
    ) -> AsyncGenerator[str | ModelUsage, None]:
        """Structured output as it is written, its usage last; errors as `stream`, and when it refused."""
        async with aclosing(self._said(prompt, limits, output_format(output))) as said:
            async for piece in said:
                yield piece

    async def converse(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        limits: CallLimits,
        *,
        may_call: bool = True,
    ) -> ModelTurn:
        """The model's next turn, whole: text or tool calls.

        Raises:
            ModelFixableError: it said nothing, refused, or was filtered.
        """
        client = await self._connection.opened()
        deadline = Deadline(limits.timeout_s)
        started = time.perf_counter()
        said = conversation_arguments(messages, tools, may_call=may_call)

        async def attempt() -> ModelTurn:
            with model_errors(self._endpoint, self._setting):
                async with asyncio.timeout_at(deadline.at):
                    completion = await client.chat.completions.create(
                        **said, **self._limiting(limits, deadline)
                    )
                return read_turn(completion)

        turn = await call_within(deadline, limits.max_retries, attempt, gate=self._gate)
        self._log("converse", started, turn.usage, "length" if turn.cut else None)
        return turn

    async def _said(
        self, prompt: Prompt, limits: CallLimits, shape: dict[str, Any]
    ) -> AsyncGenerator[str | ModelUsage, None]:
        """Pieces of text, then the usage if it is told; what `stream` raises comes behind both."""
        deadline = Deadline(limits.timeout_s)
        started = time.perf_counter()
        chunks = await call_within(
            deadline, limits.max_retries, lambda: self._open(prompt, limits, deadline, shape), gate=self._gate
        )
        heard = _Heard()
        text = DeltaText()
        try:
            while (delta := await self._next(chunks, deadline)) is not None:
                heard.note(delta)
                if piece := text.feed(delta.text):
                    yield piece
        finally:
            await chunks.close()  # a reader that goes away ends the model's work
        if rest := text.finish():
            yield rest
        self._log(prompt.name, started, heard.usage, heard.ending)
        if heard.usage is not None:
            yield heard.usage
        heard.check(self._endpoint)

    async def _open(
        self, prompt: Prompt, limits: CallLimits, deadline: Deadline, shape: dict[str, Any]
    ) -> "AsyncStream[ChatCompletionChunk]":
        client = await self._connection.opened()
        with model_errors(self._endpoint, self._setting):
            async with asyncio.timeout_at(deadline.at):
                opened: AsyncStream[ChatCompletionChunk] = await client.chat.completions.create(
                    stream=True,
                    stream_options={"include_usage": True},
                    **self._arguments(prompt, limits, deadline),
                    **shape,
                )
                return opened

    async def _next(self, chunks: "AsyncStream[ChatCompletionChunk]", deadline: Deadline) -> "_Delta | None":
        # Around each chunk and not around the loop: a timeout that spans a yield would strike the reader.
        with model_errors(self._endpoint, self._setting):
            async with asyncio.timeout_at(deadline.at):
                chunk = await anext(chunks, None)
            return None if chunk is None else _read_delta(chunk)

    def _arguments(self, prompt: Prompt, limits: CallLimits, deadline: Deadline) -> dict[str, Any]:
        messages = [
            {"role": "system", "content": prompt.system},
            {"role": "user", "content": _user_content(prompt)},
        ]
        return {"messages": messages, **self._limiting(limits, deadline)}

    def _limiting(self, limits: CallLimits, deadline: Deadline) -> dict[str, Any]:
        return {
            "model": self._model,
            "max_completion_tokens": limits.max_output_tokens,
            "timeout": max(deadline.remaining_s, 0.001),
        }

    def _log(self, name: str, started: float, usage: ModelUsage | None, ending: str | None = None) -> None:
        if usage is not None:
            tell_usage(usage.input_tokens + usage.output_tokens)
        get_logger().info(
            "model.answered",
            prompt=name,
            model=self._model,
            duration_ms=round((time.perf_counter() - started) * 1000),
            input_tokens=usage.input_tokens if usage else None,
            output_tokens=usage.output_tokens if usage else None,
            truncated=ending == "length",
        )


@dataclass(frozen=True)
class _Parsed(Generic[StructuredOutput]):
    value: StructuredOutput | None
    refused: bool
    usage: ModelUsage | None


@dataclass(frozen=True)
class _Delta:
    """What one chunk says. `answering`: it belongs to an answer, be it an empty one."""

    text: str
    ending: str | None
    answering: bool
    refused: bool
    usage: ModelUsage | None


@dataclass
class _Heard:
    """What the chunks of one answer said beside its text."""

    usage: ModelUsage | None = None
    ending: str | None = None
    answering: bool = False
    refused: bool = False

    def note(self, delta: _Delta) -> None:
        self.usage = delta.usage or self.usage
        self.ending = delta.ending or self.ending
        self.answering = self.answering or delta.answering
        self.refused = self.refused or delta.refused

    def check(self, endpoint: Dependency) -> None:
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


# The next two are called where errors are translated: the SDK does not check what it reads, so that an
# answer of another shape fails here.
def _read_answer(completion: "ParsedChatCompletion[StructuredOutput]") -> _Parsed[StructuredOutput]:
    message = completion.choices[0].message if completion.choices else None
    return _Parsed(
        value=message.parsed if message else None,
        refused=bool(message and message.refusal),
        usage=read_usage(completion.usage),
    )


def _read_delta(chunk: "ChatCompletionChunk") -> _Delta:
    # No choices are in the chunk with the usage, and in Azure's first one.
    return _Delta(
        text="".join(choice.delta.content or "" for choice in chunk.choices),
        ending=next((choice.finish_reason for choice in chunk.choices if choice.finish_reason), None),
        answering=bool(chunk.choices),
        refused=any(choice.delta.refusal for choice in chunk.choices),
        usage=read_usage(chunk.usage),
    )


def _user_content(prompt: Prompt) -> str | list[dict[str, Any]]:
    """The text alone, or text and picture as parts."""
    if prompt.picture_url is None:
        return prompt.user
    return [
        {"type": "text", "text": prompt.user},
        {"type": "image_url", "image_url": {"url": prompt.picture_url}},
    ]
