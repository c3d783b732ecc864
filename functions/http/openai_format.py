"""Answers of runs in the format of OpenAI's chat protocol, complete or as a stream of chunks."""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

from fastapi import Response

from functions.http.questions import Question, view_of
from functions.http.responses import json_response
from shared.evidence.untrusted_text import markdown_text
from shared.platform.errors import CallTimeoutError, status_of
from shared.platform.tokens import tokens_of
from shared.runs.models import ClarificationOption, RunAnswer, RunView
from shared.runs.portable_text import split_at_open_picture, with_signed_pictures

_CHUNK = "chat.completion.chunk"
_MARK = re.compile(r" ?\(Source: [^\n]*?\)\[(\d{1,3})\]")


@dataclass(frozen=True)
class CompletionRun:
    """A run that is presented as a chat completion in OpenAI's protocol.

    Attributes:
        events: the remaining events of the run, by name.
        address: base URL of the app in a browser.
        tells_usage: whether the stream ends with the token usage.
    """

    run_id: str
    question: Question
    events: AsyncGenerator[tuple[str, dict[str, Any]], None]
    model: str
    address: str
    tells_usage: bool = False

    def choice(self, kind: str, content: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
        """Return this run as a `chat.completion` object, or as a chunk object, depending on `kind`."""
        part = "message" if kind == "chat.completion" else "delta"
        return {
            "id": f"chatcmpl-{self.run_id}",
            "object": kind,
            "created": int(self.question.arrived_at.timestamp()),
            "model": self.model,
            "choices": [{"index": 0, part: content, "finish_reason": finish}],
        }

    def chunk(self, content: Mapping[str, Any], finish: str | None = None) -> bytes:
        """Encode a chunk of the completion as a server-sent event."""
        return _data(self.choice(_CHUNK, content, finish))


async def complete_response(completion: CompletionRun) -> Response:
    """Wait for the end of the run, and return its answer, clarification or error as one JSON object."""
    clarification = None
    async for name, data in completion.events:
        clarification = data if name == "ASK_USER" else None
    view = await view_of(completion.run_id, completion.question)
    headers = {"X-Run-Id": completion.run_id}
    if clarification is not None:
        message: dict[str, Any] = {"role": "assistant", "content": _clarification_text(clarification)}
    elif view.answer is not None:
        text = await _portable(view.answer.text, completion)
        message = {"role": "assistant", "content": text, **_sources(text, view.answer, completion)}
    else:
        return json_response(_error_of(view), status_of(view.error_type) if view.error else 504, headers)
    whole = completion.choice("chat.completion", message, _finish_of(view))
    return json_response({**whole, "usage": _usage(view), "groundwork": _extra_fields(view)}, headers=headers)


async def chunks(completion: CompletionRun) -> AsyncIterator[bytes]:
    """Yield the answer of the run as server-sent events, while it is written."""
    yield completion.chunk({"role": "assistant", "content": ""})
    text_so_far = pending = ""
    async with aclosing(completion.events) as events:
        async for name, data in events:
            text = (
                data["text"] if name == "TOKEN" else _clarification_text(data) if name == "ASK_USER" else ""
            )
            ready, pending = split_at_open_picture(pending + text)
            text_so_far += ready
            content = await _portable(ready, completion)
            yield completion.chunk({"content": content}) if content else b": at work\n\n"
    view = await view_of(completion.run_id, completion.question)
    if pending and view.answer is None:
        yield completion.chunk({"content": pending})
    if view.answer is not None:
        # A restarted run may produce an answer that differs from the streamed text. Sent text can't be
        # withdrawn, so the whole answer is appended.
        is_whole = view.answer.text.startswith(text_so_far)
        rest = view.answer.text[len(text_so_far) :] if is_whole else f"\n\n{view.answer.text}"
        if rest:
            yield completion.chunk({"content": await _portable(rest, completion)})
        text = await _portable(view.answer.text, completion)
        yield completion.chunk(_sources(text, view.answer, completion))
    elif view.status != "waiting":
        yield _data(_error_of(view))
        return
    end = completion.choice(_CHUNK, {}, _finish_of(view))
    yield _data({**end, "groundwork": _extra_fields(view)})
    if completion.tells_usage:
        yield _data({**end, "choices": [], "usage": _usage(view)})
    yield b"data: [DONE]\n\n"


def _data(content: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(content, ensure_ascii=False)}\n\n".encode()


def _clarification_text(clarification: Mapping[str, Any]) -> str:
    """Render a clarification as a chat message: the question, followed by its numbered options."""
    options = [
        one if isinstance(one, str) else ClarificationOption(**one).name for one in clarification["options"]
    ]
    listed = "\n".join(f"{number}. {markdown_text(name)}" for number, name in enumerate(options, 1))
    return f"{clarification['question']}\n\n{listed}".strip()


def _finish_of(view: RunView) -> str:
    return "length" if view.answer is not None and view.answer.truncated else "stop"


async def _portable(text: str, completion: CompletionRun) -> str:
    return await with_signed_pictures(text, completion.question.user, completion.question.services)


def _sources(text: str, answer: RunAnswer, completion: CompletionRun) -> dict[str, Any]:
    """Return the citations as `url_citation` annotations, each with the position of its citation mark in
    `text`.
    """
    marks = {int(match[1]): match.span() for match in _MARK.finditer(text)}
    annotations = [
        {
            "type": "url_citation",
            "url_citation": {
                "url": urljoin(completion.address, citation.url),
                "title": citation.filename,
                "start_index": marks[citation.n][0],
                "end_index": marks[citation.n][1],
            },
        }
        for citation in answer.citations
        if citation.n in marks
    ]
    return {"annotations": annotations} if annotations else {}


def _usage(view: RunView) -> dict[str, int]:
    """Return the token usage of a run, including its sub-agents. Only tokens of the answer text count as
    completion tokens; all others count as prompt tokens.
    """
    total = view.answer.tokens if view.answer is not None else 0
    output_tokens = min(tokens_of(view.answer.text), total) if view.answer is not None else 0
    return {"prompt_tokens": total - output_tokens, "completion_tokens": output_tokens, "total_tokens": total}


def _extra_fields(view: RunView) -> dict[str, Any]:
    """Return the run fields that OpenAI's protocol has no equivalent for: ids, status, citations and
    abstention.
    """
    own: dict[str, Any] = {"run_id": view.run_id, "thread_id": view.thread_id, "status": view.status}
    if view.answer is not None:
        citations = [citation.model_dump(mode="json") for citation in view.answer.citations]
        own |= {"citations": citations, "abstained": view.answer.abstained}
    return own


def _error_of(view: RunView) -> dict[str, Any]:
    detail = view.error or f"The answer is not complete yet. Request the run {view.run_id} later."
    code = view.error_type or CallTimeoutError.code
    return {"error": {"message": detail, "type": code, "param": None, "code": code}}
