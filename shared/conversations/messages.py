"""The turns of a thread with their answers, as shown to the thread's owner."""

from shared.access.models import UserContext
from shared.access.security_filter import in_thread
from shared.conversations.models import AnsweredClarification, MessageList, ThreadMessage, ThreadTurn
from shared.conversations.services import ConversationServices
from shared.conversations.threads import owned_thread
from shared.platform.concurrency import run_together
from shared.platform.errors import NotFoundError
from shared.runs.fresh_urls import refresh_answers
from shared.runs.journal import clarification_of, committed_answer, current_record
from shared.runs.models import RunAnswer, RunRecord
from shared.runs.run_log import RunLog


async def read_messages(
    thread_id: str, user: UserContext, services: ConversationServices, limit: int, before: int | None = None
) -> MessageList:
    """Return the newest turns of a thread, or those before a turn number, oldest first and with newly signed
    figure URLs.

    Raises:
        NotFoundError: as `owned_thread`.
    """
    thread = await owned_thread(thread_id, user, services.threads)
    turns = await services.threads.turns(user.user_id, thread_id, limit + 1, before)
    visible = [turn for turn in turns[:limit] if turn.is_shown_in(thread)]
    messages = await run_together(*(_message(turn, user, services) for turn in reversed(visible)))
    reader = in_thread(user, thread_id)
    present = await _refreshed([message for message in messages if message is not None], reader, services)
    has_more = len(visible) == limit and len(turns) > limit and turns[limit].is_shown_in(thread)
    return MessageList(
        thread_id=thread_id,
        messages=tuple(present),
        count=len(present),
        cursor=str(visible[-1].number) if has_more else None,
    )


async def _message(
    turn: ThreadTurn, user: UserContext, services: ConversationServices
) -> ThreadMessage | None:
    """Return the message of a turn, or None if its run was never stored because the process died."""
    record = await services.runs.get(turn.run_id)
    if record is None or record.owner_id != user.user_id:
        return None
    record = await current_record(record, services.run_log)
    fields = record.model_dump(include=set(ThreadMessage.model_fields))
    answer, clarification = await run_together(
        _answer(record, services), _clarification(record, services.run_log)
    )
    return ThreadMessage(
        **fields, number=turn.number, answer=answer, clarification=clarification, replaces=turn.replaces
    )


async def _clarification(record: RunRecord, run_log: RunLog) -> AnsweredClarification | None:
    if not record.ask_step or not record.has_log:
        # Most runs have no clarification, so avoid a read.
        return None
    request, reply = await clarification_of(record.run_id, record.ask_step, run_log)
    if request is None or reply is None:
        return None
    choice = reply.choice
    labels = [option.label for option in request.options if option.number in choice.numbers]
    return AnsweredClarification(question=request.question, answer=", ".join(labels) or choice.said)


async def _answer(record: RunRecord, services: ConversationServices) -> RunAnswer | None:
    if record.status != "completed":
        return None
    try:
        return await committed_answer(record.run_id, services.blobs, services.run_log)
    except NotFoundError:
        # The thread is being erased.
        return None


async def _refreshed(
    messages: list[ThreadMessage], user: UserContext, services: ConversationServices
) -> list[ThreadMessage]:
    answers = [message.answer for message in messages if message.answer is not None]
    fresh = {answer.run_id: answer for answer in await refresh_answers(answers, user, services)}
    return [message.model_copy(update={"answer": fresh.get(message.run_id)}) for message in messages]
