"""Routes compatible with OpenAI's chat protocol: POST /api/v1/chat/completions, GET /api/v1/models and GET
/api/v1/models/{model}.

The last user message is the question. The user messages before it identify the thread. All other content,
system messages included, is ignored: answers rest on documents alone.
"""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from functions.http.api_route import ApiRoute
from functions.http.contracts import JSON, STREAM, Reply, contract, json_reply
from functions.http.event_stream import NamedFrame
from functions.http.models import CompletionFailure
from functions.http.openai_format import CompletionRun, chunks, complete_response
from functions.http.openai_models import Completion, CompletionBody, CompletionEvent, ModelList, ModelObject
from functions.http.questions import Question, begin_question, deliver_answer
from functions.http.requests import Caller, Durable, Ready, open_stream
from functions.http.responses import address_of, event_stream, json_response
from shared.access.models import UserContext
from shared.answering.agent_files import agents_for
from shared.conversations.thread_search import thread_with
from shared.platform.errors import CallerError, NotFoundError
from shared.runs.models import MAX_ANSWER_CHARS, ChatRequest, ClarificationAnswer
from shared.wiring import Services

ModelName = Annotated[str, Path(min_length=1, description="Name of a model or an agent.")]
router = APIRouter(tags=["Assistants"], route_class=ApiRoute)
MODELS = {
    "groundwork": "Answers questions from the documents.",
    "groundwork-deep": "Answers questions with deep research.",
}
# The platform ends responses after 230 s, and clients of this protocol can't resume a stream.
_WITHIN_S = 210.0


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
        return event_stream(chunks(replace(completion, tells_usage=tells_usage)), place, completion.run_id)
    with closing(place):
        return await complete_response(completion)


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


async def _start_or_resume(question: Question, earlier: list[str], model: str) -> CompletionRun:
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
    return CompletionRun(run_id, question, events, model, address_of(question.request))


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
