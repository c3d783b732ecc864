"""Helpers that ask questions in threads."""

from typing import Any

from shared.access.models import UserContext
from shared.answering.inline import run_to_end
from shared.answering.runs import begin_run
from shared.conversations.messages import read_messages
from shared.runs.models import ChatRequest, RunRequest
from shared.wiring import Services
from tests.world import ANNA


async def begin(services: Services, question: str, thread_id: str | None = None, **of: Any) -> RunRequest:
    chat = ChatRequest(question=question, thread_id=thread_id)
    return await begin_run(chat, of.get("user", ANNA), services)


async def ask(services: Services, question: str, thread_id: str | None = None, **of: Any) -> RunRequest:
    request = await begin(services, question, thread_id, **of)
    await run_to_end(request.run_id, services)
    return request


async def questions_of(services: Services, thread_id: str, user: UserContext = ANNA) -> list[str]:
    return [message.question for message in (await read_messages(thread_id, user, services, 20)).messages]


def questions(request: RunRequest) -> list[str]:
    return [turn.question for turn in request.conversation.turns]
