"""A thread's turns as its owner reads them: questions and whole answers, with addresses that are good now."""

import asyncio

from shared.agents.closing import answer_path
from shared.agents.fresh_urls import refresh_answers
from shared.agents.threads import owned_thread
from shared.errors import NotFoundError
from shared.models.identity import UserContext
from shared.models.names import RUN_LOG
from shared.models.runs import RunAnswer, RunRecord
from shared.models.threads import MessageList, Thread, ThreadMessage, ThreadTurn
from shared.services import Services


async def read_messages(
    thread_id: str, user: UserContext, services: Services, limit: int, before: int | None = None
) -> MessageList:
    """The newest turns, or the newest before a number, oldest first; addresses in answers are fresh.

    Raises:
        NotFoundError: as `owned_thread`.
    """
    thread = await owned_thread(thread_id, user, services)
    found = await services.threads.turns(user.user_id, thread_id, limit + 1, before)
    shown = [turn for turn in found[:limit] if _is_shown(turn, thread)]
    messages = await asyncio.gather(*(_message(turn, user, services) for turn in reversed(shown)))
    present = await _refreshed([message for message in messages if message is not None], user, services)
    has_more = len(shown) == limit and len(found) > limit and _is_shown(found[limit], thread)
    return MessageList(
        thread_id=thread_id,
        messages=tuple(present),
        count=len(present),
        cursor=str(shown[-1].number) if has_more else None,
    )


def _is_shown(turn: ThreadTurn, thread: Thread) -> bool:
    return turn.number > thread.cleared_count and turn.status != "erased"


async def _message(turn: ThreadTurn, user: UserContext, services: Services) -> ThreadMessage | None:
    """None for a question whose run was never stored, because the process ended in between."""
    record = await services.runs.get(turn.run_id)
    if record is None or record.owner_id != user.user_id:
        return None
    return ThreadMessage(
        run_id=record.run_id,
        number=turn.number,
        question=record.question,
        status=record.status,
        created_at=record.created_at,
        finished_at=record.finished_at,
        error=record.error,
        error_type=record.error_type,
        answer=await _answer(record, services),
        feedback=record.feedback,
    )


async def _answer(record: RunRecord, services: Services) -> RunAnswer | None:
    if record.status != "completed":
        return None
    try:
        content = await services.blobs.read(RUN_LOG, answer_path(record.run_id))
    except NotFoundError:  # the thread is being erased at this moment
        return None
    return RunAnswer.from_kept(content)


async def _refreshed(
    messages: list[ThreadMessage], user: UserContext, services: Services
) -> list[ThreadMessage]:
    answers = [message.answer for message in messages if message.answer is not None]
    fresh = {answer.run_id: answer for answer in await refresh_answers(answers, user, services)}
    return [message.model_copy(update={"answer": fresh.get(message.run_id)}) for message in messages]
