"""Tests for the model calls that the recorder stores, made over HTTP against a fake endpoint."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from evals.real.recorder import Endpoint, Recorder, recording
from tests.http_server import Answer, HttpServer, Request, json_answer

TRACE = "5b8aa5a2d2c872e8321cf37308d69df2"
USAGE = {"prompt_tokens": 11, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}}


@contextmanager
def endpoint(name: str) -> Iterator[str]:
    """Serve a model that answers with its own name, streamed if requested, and yield the URL."""

    def respond(request: Request) -> Answer:
        body = json.loads(request.body)
        key = request.headers["Authorization"]
        reply = {"by": name, "model": body["model"], "key": key, "usage": USAGE}
        if not body.get("stream"):
            return json_answer(reply)
        chunks = [{"choices": [{"delta": {"content": "Hi"}}]}, {"choices": [], **reply}]
        frames = [f"data: {data}\n\n" for data in (*map(json.dumps, chunks), "[DONE]")]
        return 200, {"Content-Type": "text/event-stream"}, "".join(frames).encode()

    with HttpServer(respond) as server:
        yield f"{server.url}/v1"


@contextmanager
def recorded() -> Iterator[Recorder]:
    with (
        endpoint("local") as local,
        endpoint("hosted") as hosted,
        recording(Endpoint(local), Endpoint(hosted, "their-key", "their-model")) as recorder,
    ):
        yield recorder


def ask(recorder: Recorder, path: str, trace_id: str, **fields: object) -> httpx.Response:
    headers = {"Authorization": "Bearer our-key", "traceparent": f"00-{trace_id}-00f067aa0ba902b7-01"}
    body = {"model": "our-model", "messages": [{"role": "user", "content": "Hello"}], **fields}
    return httpx.post(f"{recorder.url}/v1{path}", json=body, headers=headers, timeout=60)


def test_a_watched_question_is_answered_by_the_hosted_endpoint_and_kept() -> None:
    with recorded() as recorder:
        recorder.watch(TRACE)
        reply = ask(recorder, "/chat/completions", TRACE).json()
        assert (reply["by"], reply["model"], reply["key"]) == ("hosted", "their-model", "Bearer their-key")
        calls = recorder.take(TRACE)
        assert [(call["tokens_in"], call["tokens_cached"], call["tokens_out"]) for call in calls] == [
            (11, 8, 3)
        ]
        assert calls[0]["request"]["messages"] == [{"role": "user", "content": "Hello"}]


def test_a_stream_passes_unchanged_and_its_usage_is_read() -> None:
    with recorded() as recorder:
        recorder.watch(TRACE)
        streamed = ask(recorder, "/chat/completions", TRACE, stream=True)
        assert streamed.text.endswith("data: [DONE]\n\n")
        call = recorder.take(TRACE)[0]
        assert (call["tokens_in"], call["tokens_out"]) == (11, 3)
        assert call["first_s"] is not None


def test_what_belongs_to_no_question_goes_to_the_stack_s_own_model() -> None:
    with recorded() as recorder:
        recorder.watch(TRACE)
        for path, trace_id in (("/chat/completions", "0" * 31 + "1"), ("/embeddings", TRACE)):
            reply = ask(recorder, path, trace_id).json()
            assert (reply["by"], reply["model"], reply["key"]) == ("local", "our-model", "Bearer our-key")
        assert recorder.take(TRACE) == []
