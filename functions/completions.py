"""Routes compatible with OpenAI's chat protocol: POST /api/v1/chat/completions, GET /api/v1/models and GET
/api/v1/models/{model}.

The last user message is the question. The user messages before it identify the thread. All other content,
system messages included, is ignored: answers rest on documents alone.
"""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from urllib.parse import urljoin

from fastapi import APIRouter, Path, Request, Response
from pydantic import ConfigDict, Field, JsonValue

from functions.http.api_route import ApiRoute
from functions.http.contracts import JSON, STREAM, Reply, contract, json_reply
from functions.http.event_stream import NamedFrame
from functions.http.models import CompletionFailure
from functions.http.questions import Question, begin_question, deliver_answer, view_of
from functions.http.requests import Caller, Durable, Ready, open_stream
from functions.http.responses import address_of, event_stream, json_response
from shared.access.models import UserContext
from shared.answering.agent_files import agents_for
from shared.conversations.thread_search import thread_with
from shared.evidence.untrusted_text import markdown_text
from shared.platform.errors import CallerError, CallTimeoutError, NotFoundError, status_of
from shared.platform.models import Model
from shared.platform.tokens import tokens_of
from shared.runs.models import (
    MAX_ANSWER_CHARS,
    ChatRequest,
    ClarificationAnswer,
    ClarificationOption,
    RunAnswer,
    RunView,
)
from shared.runs.portable_text import split_at_open_picture, with_signed_pictures
from shared.wiring import Services


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


ModelName = Annotated[str, Path(min_length=1, description="Name of a model or an agent.")]


router = APIRouter(tags=["Assistants"], route_class=ApiRoute)

MODELS = {
    "groundwork": "Answers questions from the documents.",
    "groundwork-deep": "Answers questions with deep research.",
}
# The platform ends responses after 230 s, and clients of this protocol can't resume a stream.
_WITHIN_S = 210.0
_CHUNK = "chat.completion.chunk"
_MARK = re.compile(r" ?\(Source: [^\n]*?\)\[(\d{1,3})\]")


@dataclass(frozen=True)
class _Completion:
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


@router.get(
    "/api/v1/models",
    **contract(
        "Models and agents, in OpenAI's protocol",
        json_reply(200, "The models.", ModelList),
    ),
)
async def list_models(user: Caller, services: Ready) -> Response:
    """List the models of Groundwork and the agents that the caller may use."""
    models = _models_for(user, services)
    return json_response(ModelList(data=tuple(models.values())))


@router.get(
    "/api/v1/models/{model}",
    **contract(
        "A model or an agent, in OpenAI's protocol",
        json_reply(200, "The model.", ModelObject),
        errors=(NotFoundError,),
    ),
)
async def get_model(model: ModelName, user: Caller, services: Ready) -> Response:
    """Return a model of Groundwork, or an agent that the caller may use."""
    return json_response(_model_for(model, user, services))


@router.post(
    "/api/v1/chat/completions",
    **contract(
        "Ask a question in OpenAI's protocol",
        Reply(
            200,
            "The complete answer, or a stream.",
            ((JSON, Completion), (STREAM, CompletionEvent)),
            ("X-Run-Id",),
        ),
        errors=(NotFoundError,),
        costs=True,
        ends_as=CompletionFailure,
    ),
)
async def complete_chat(
    req: Request, body: CompletionBody, user: Caller, services: Ready, client: Durable
) -> Response:
    """Answer the last user message, either as a stream of chunks or as a single JSON object."""
    arrived_at = datetime.now(UTC)
    _model_for(body.model, user, services)
    if body.unsupported_types:
        raise CallerError(
            f"The question has a part of the type {body.unsupported_types[0][:64]!r}.",
            "Only text is supported. Upload files and pictures as documents.",
        )
    *earlier, last = body.questions or ("",)
    if not last.strip():
        raise CallerError(
            "The last message with the role `user` has no text.", "Put the question in this message."
        )
    if _is_chore(last):
        raise CallerError(
            "Requests for chat titles, tags and similar tasks are not supported.",
            "Configure another model for these tasks.",
        )
    agent = None if body.model in MODELS else body.model
    chat = ChatRequest(question=last, deep=body.model == "groundwork-deep", agent=agent)
    question = Question(req, chat, user, services, client, arrived_at, channel="openai")
    # Reserve the stream first, so that a run never starts without a connection for its answer.
    place = open_stream(user, services)
    completion = await _start_or_resume(question, earlier, body.model)
    if body.stream:
        tells_usage = body.stream_options is not None and body.stream_options.include_usage
        return event_stream(_chunks(replace(completion, tells_usage=tells_usage)), place, completion.run_id)
    with closing(place):
        return await _complete_response(completion)


def _is_chore(text: str) -> bool:
    """Return whether the text is a request for a chat title, tags or follow-up questions, such as Open WebUI
    sends in the background.

    Answering it would cost a run and clutter the user's threads. Chat programs work without a reply: they
    then name the chat after its first question.
    """
    return text.lstrip().startswith("### Task:") and "<chat_history>" in text


def _models_for(user: UserContext, services: Services) -> dict[str, ModelObject]:
    """Return the models and agents that the user may use, by name."""
    agents = agents_for(user, services.settings, "openai")
    descriptions = {**MODELS, **{agent.name: agent.description for agent in agents}}
    return {name: ModelObject(id=name, description=text) for name, text in descriptions.items()}


def _model_for(name: str, user: UserContext, services: Services) -> ModelObject:
    """Return a model or agent by name.

    Raises:
        NotFoundError: there is no such model, or the user may not use the agent.
    """
    models = _models_for(user, services)
    if name not in models:
        raise NotFoundError(f"There is no model {name[:64]!r}.", f"Available models: {', '.join(models)}.")
    return models[name]


async def _start_or_resume(question: Question, earlier: list[str], model: str) -> _Completion:
    """Start a run. If a run of this conversation is waiting for a clarification, deliver the message to that
    run instead.
    """
    user, services = question.user, question.services
    turn = await thread_with(earlier, user, services.threads) if earlier else None
    record = await services.runs.get(turn.run_id) if turn else None
    if record is not None and record.status == "waiting":
        words = ClarificationAnswer(text=question.chat.question[:MAX_ANSWER_CHARS])
        await deliver_answer(record, words, user, services, question.client)
        run_id, start, asked_step = record.run_id, None, record.ask_step
    else:
        if turn is not None:
            chat = question.chat.model_copy(update={"thread_id": turn.thread_id})
            question = replace(question, chat=chat)
        run_id, start = await begin_question(question)
        asked_step = 0
    events = _events(question.events(run_id, start, _WITHIN_S), asked_step)
    return _Completion(run_id, question, events, model, address_of(question.request))


async def _events(
    frames: AsyncGenerator[NamedFrame, None], asked_step: int
) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
    """Yield the name and data of each run event until the run ends or asks for a clarification.

    A comment, which only keeps the connection open, has the name "".
    """
    async with aclosing(frames):
        async for name, frame in frames:
            data = json.loads(frame.partition(b"data: ")[2]) if name else {}
            if name == "ASK_USER" and data["step"] <= asked_step:
                continue
            yield name or "", data
            if name == "ASK_USER":
                return


async def _complete_response(completion: _Completion) -> Response:
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


async def _chunks(completion: _Completion) -> AsyncIterator[bytes]:
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


async def _portable(text: str, completion: _Completion) -> str:
    return await with_signed_pictures(text, completion.question.user, completion.question.services)


def _sources(text: str, answer: RunAnswer, completion: _Completion) -> dict[str, Any]:
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
