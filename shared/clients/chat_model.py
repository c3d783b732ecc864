"""`ChatModel` over the openai SDK. Logs how much was said and how long it took; never what."""

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from shared.clients.connection import Connection
from shared.clients.dependency import Dependency
from shared.clients.rate_gate import RateGate
from shared.clients.retrying import Deadline, call_within
from shared.clients.translate_openai import model_errors
from shared.errors import ModelFixableError
from shared.models.prompts import CallLimits, Prompt
from shared.ports import ChatModel, StructuredOutput
from shared.telemetry import get_logger

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream
    from openai.types import CompletionUsage
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
        deadline = Deadline(limits.timeout_s)
        started = time.perf_counter()

        async def attempt() -> "ParsedChatCompletion[StructuredOutput]":
            with model_errors(self._endpoint, self._setting):
                async with asyncio.timeout_at(deadline.at):
                    return await self._connection.client().chat.completions.parse(
                        response_format=output, **self._arguments(prompt, limits, deadline)
                    )

        completion = await call_within(deadline, limits.max_retries, attempt, gate=self._gate)
        self._log(prompt, started, completion.usage)
        message = completion.choices[0].message if completion.choices else None
        if message is None or message.parsed is None:
            raise ModelFixableError(
                "The model refused to answer." if message and message.refusal else "The model said nothing."
            )
        return message.parsed

    async def stream(self, prompt: Prompt, limits: CallLimits) -> AsyncGenerator[str, None]:
        """Text as it is written. Only the opening is tried again: what was read cannot be taken back."""
        deadline = Deadline(limits.timeout_s)
        started = time.perf_counter()
        chunks = await call_within(
            deadline, limits.max_retries, lambda: self._open(prompt, limits, deadline), gate=self._gate
        )
        usage: CompletionUsage | None = None
        ending: str | None = None
        try:
            while (chunk := await self._next(chunks, deadline)) is not None:
                usage = chunk.usage or usage
                for choice in chunk.choices:  # none in the chunk with the usage, and in Azure's first one
                    ending = choice.finish_reason or ending
                    if choice.delta.content:
                        yield choice.delta.content
        finally:
            await chunks.close()  # a reader that goes away ends the model's work
        self._log(prompt, started, usage, ending)
        if ending == "content_filter":
            raise ModelFixableError(
                "The model's content filter stopped the answer.", "Put it in other words."
            )

    async def _open(
        self, prompt: Prompt, limits: CallLimits, deadline: Deadline
    ) -> "AsyncStream[ChatCompletionChunk]":
        with model_errors(self._endpoint, self._setting):
            async with asyncio.timeout_at(deadline.at):
                opened: AsyncStream[
                    ChatCompletionChunk
                ] = await self._connection.client().chat.completions.create(
                    stream=True,
                    stream_options={"include_usage": True},
                    **self._arguments(prompt, limits, deadline),
                )
                return opened

    async def _next(
        self, chunks: "AsyncStream[ChatCompletionChunk]", deadline: Deadline
    ) -> "ChatCompletionChunk | None":
        # Around each chunk and not around the loop: a timeout that spans a yield would strike the reader.
        with model_errors(self._endpoint, self._setting):
            async with asyncio.timeout_at(deadline.at):
                return await anext(chunks, None)

    def _arguments(self, prompt: Prompt, limits: CallLimits, deadline: Deadline) -> dict[str, Any]:
        return {
            "model": self._model,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": _user_content(prompt)},
            ],
            "max_completion_tokens": limits.max_output_tokens,
            "timeout": max(deadline.remaining_s, 0.001),
        }

    def _log(
        self, prompt: Prompt, started: float, usage: "CompletionUsage | None", ending: str | None = None
    ) -> None:
        get_logger().info(
            "model.answered",
            prompt=prompt.name,
            model=self._model,
            duration_ms=round((time.perf_counter() - started) * 1000),
            input_tokens=usage.prompt_tokens if usage else None,
            output_tokens=usage.completion_tokens if usage else None,
            truncated=ending == "length",
        )


def _user_content(prompt: Prompt) -> str | list[dict[str, Any]]:
    """The text alone, or text and picture as parts."""
    if prompt.picture_url is None:
        return prompt.user
    return [
        {"type": "text", "text": prompt.user},
        {"type": "image_url", "image_url": {"url": prompt.picture_url}},
    ]
