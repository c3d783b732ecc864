"""Tests for spans of model calls: tokens and duration, and message texts only if enabled."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import pytest
from opentelemetry.trace import StatusCode
from pydantic import BaseModel

from shared.platform import tracing
from shared.platform.errors import DependencyError
from shared.platform.language_models.models import CallLimits, Message, ModelTurn, Prompt, ToolCall
from shared.platform.language_models.traced import TracedChatModel, TracedEmbedder
from tests.fakes.models import HashingEmbedder, Reply, ScriptedChatModel
from tests.tracing_fixture import Recorded, StartRecording, recorded, start_recording

__all__ = ["recorded", "start_recording"]

PROMPT = Prompt(name="answer", system="SYSTEM", user="QUESTION")
LIMITS = CallLimits(timeout_s=5, max_output_tokens=77)


class Answer(BaseModel):
    text: str


class Telling(ScriptedChatModel):
    """A model that reports its usage like the real client, and records the trace context of its request."""

    outgoing: dict[str, str]

    async def stream(self, prompt: Prompt, limits: CallLimits) -> AsyncGenerator[str, None]:
        self.outgoing = tracing.outgoing()
        async with aclosing(super().stream(prompt, limits)) as pieces:
            async for piece in pieces:
                yield piece
        tracing.note_usage(12, 34, "stop")


def traced(*replies: Reply) -> TracedChatModel:
    return TracedChatModel(Telling(*replies), "gpt", "openai")


async def call(model: TracedChatModel, how: str) -> object:
    if how == "parse":
        return await model.parse(PROMPT, Answer, LIMITS)
    if how == "stream_turn":
        return [
            piece async for piece in model.stream_turn([Message(role="user", text="QUESTION")], (), LIMITS)
        ]
    if how == "stream":
        return "".join([piece async for piece in model.stream(PROMPT, LIMITS)])
    return [piece async for piece in model.stream_output(PROMPT, Answer, LIMITS)]


ANSWERS: dict[str, Reply] = {
    "parse": Answer(text="ANSWER"),
    "stream_turn": ModelTurn(
        text="ANSWER", tool_calls=(ToolCall(call_id="1", name="weigh", arguments='{"q": "ARGUMENT"}'),)
    ),
    "stream": "the whole ANSWER",
    "stream_output": Answer(text="ANSWER"),
}


@pytest.mark.parametrize("how", ANSWERS)
async def test_each_call_is_a_span_without_what_was_said(recorded: Recorded, how: str) -> None:
    with tracing.root("step", "server"):
        await call(traced(ANSWERS[how]), how)
    assert recorded.parent_of("chat gpt") == "step"
    attributes = recorded.attributes("chat gpt")
    assert attributes["gen_ai.request.model"] == "gpt"
    assert attributes["gen_ai.request.max_tokens"] == 77
    assert attributes["gen_ai.operation.name"] == "chat"
    span_text = f"{dict(attributes)} {recorded.one('chat gpt').events}"
    assert not any(word in span_text for word in ("SYSTEM", "QUESTION", "ANSWER", "ARGUMENT"))


@pytest.mark.parametrize("how", ANSWERS)
async def test_where_content_is_asked_for_it_is_there_whole(
    start_recording: StartRecording, how: str
) -> None:
    recorded = start_recording(with_content=True)
    with tracing.root("step", "server"):
        await call(traced(ANSWERS[how]), how)
    (event,) = recorded.one("chat gpt").events
    attributes = dict(event.attributes or {})
    assert "QUESTION" in str(attributes["gen_ai.input.messages"])
    assert "ANSWER" in str(attributes["gen_ai.output.messages"])
    assert ("ARGUMENT" in str(attributes)) == (how == "stream_turn")


@pytest.mark.parametrize("how", ANSWERS)
async def test_a_call_that_fails_fails_its_span(recorded: Recorded, how: str) -> None:
    with pytest.raises(DependencyError), tracing.root("step", "server"):
        await call(traced(DependencyError("No connection.")), how)
    span = recorded.one("chat gpt")
    assert span.status.status_code is StatusCode.ERROR
    assert recorded.attributes("chat gpt")["error.type"] == DependencyError.code


async def test_a_stream_tells_its_usage_and_hands_the_trace_on(recorded: Recorded) -> None:
    model = Telling("the whole ANSWER")
    with tracing.root("step", "server"):
        await call(TracedChatModel(model, "gpt", "openai"), "stream")
    span = recorded.one("chat gpt")
    attributes = recorded.attributes("chat gpt")
    assert (attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"]) == (12, 34)
    assert attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert span.context is not None
    assert model.outgoing["traceparent"].split("-")[2] == f"{span.context.span_id:016x}"


async def test_what_a_reader_does_between_pieces_is_not_below_the_call(recorded: Recorded) -> None:
    with tracing.root("step", "server"):
        async for _ in traced("the whole ANSWER").stream(PROMPT, LIMITS):
            with tracing.span("reading"):
                pass
    by_id = {span.context.span_id: span.name for span in recorded.all if span.context}
    parents = {by_id[span.parent.span_id] for span in recorded.all if span.name == "reading" and span.parent}
    assert parents == {"step"}


async def test_a_reader_who_goes_away_ends_the_span(recorded: Recorded) -> None:
    with tracing.root("step", "server"):
        async with aclosing(traced("the whole ANSWER").stream(PROMPT, LIMITS)) as pieces:
            await anext(pieces)
    assert recorded.one("chat gpt").status.status_code is StatusCode.UNSET


async def test_embeddings_are_counted(recorded: Recorded) -> None:
    texts: Sequence[str] = ["QUESTION", "b"]
    with tracing.root("step", "server"):
        vectors = await TracedEmbedder(HashingEmbedder(), "minilm", "openai").embed(texts, LIMITS)
    assert len(vectors) == 2
    attributes = recorded.attributes("embeddings minilm")
    assert attributes["result_count"] == 2
    assert "QUESTION" not in str(dict(attributes))


async def test_outside_of_any_trace_a_call_is_only_a_call(recorded: Recorded) -> None:
    assert await call(traced("text"), "stream") == "text"
    assert recorded.names == []
