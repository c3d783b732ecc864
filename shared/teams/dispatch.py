"""What a message asks: a command, the answer to a question of ours, files, or a question of its own."""

from collections.abc import Mapping
from contextlib import suppress

from shared.access.limits import admit, release, slot_of_run
from shared.access.models import UserContext
from shared.answering.asking import answer_clarification, pending_clarification
from shared.answering.clarification import event_name
from shared.answering.runs import begin_run
from shared.conversations.threads import new_thread
from shared.platform.errors import CallerError, GroundworkError, NotFoundError
from shared.platform.hashing import digest
from shared.platform.tracing import link_to
from shared.runs.events import AskUserEvent, events_of
from shared.runs.models import ChatRequest, Clarification, ClarificationAnswer, RunRecord
from shared.runs.records import owned_run
from shared.runs.run_log import RunLog
from shared.teams import messages
from shared.teams.commands import obey, show_help
from shared.teams.context import Visit, leave_question, remember
from shared.teams.messages import Texts
from shared.teams.models import (
    BotJoined,
    BotMessage,
    BotTurn,
    ButtonCommand,
    ChosenOption,
    ReplyPlace,
    ReplyStep,
)
from shared.teams.parsing import (
    MAX_OPTION_CHARS,
    as_answer,
    command_of,
    has_words,
    is_number_of_option,
    is_unknown_command,
)
from shared.teams.store import ReplyMemory


async def ask(visit: Visit, doc_ids: tuple[str, ...] = ()) -> ReplyStep:
    """Begin the run of a question, unless it was begun; then its answer is to be written.

    Args:
        doc_ids: documents that were dropped with it; the answer comes from these.

    Raises:
        CallerError: the person is refused, or the question is.
    """
    world, key = visit.world, visit.step.reply_key
    user, alone = await world.find_user(visit.conversation, visit.message.sender)
    await _leave_question(visit)
    if await world.services.runs.get(key) is None:
        await world.prepare()
        await admit(
            user,
            world.services.settings,
            world.services.user_limits,
            slot=slot_of_run(key, world.services.settings),
        )
        try:
            await _begin(visit, user, doc_ids)
        except GroundworkError:
            await release(user.user_id, key, world.services.settings, world.services.user_limits)
            raise
    await ReplyMemory(world.services.blobs, key, key).keep_place(_place(visit, alone=alone))
    await world.orchestrations.start("answer_question", key, {"run_id": key, **link_to(key)})
    return visit.step.model_copy(update={"kind": "follow", "run_id": key, "attempt": 0, "part": 0})


async def answer(visit: Visit, turn: BotTurn) -> ReplyStep:
    """A message while a run waits: its answer, or a question of its own."""
    record, asked = await _waiting(turn.waiting_run_id or "", visit)
    if record is None or asked is None:
        if is_number_of_option(visit.message.text):
            return await visit.say(messages.ANSWERED_ALREADY)
        return await ask(visit)
    try:
        choice = as_answer(visit.message.text, asked.options)
    except CallerError:
        return await visit.say(messages.NO_SUCH_OPTION, len(asked.options))
    if choice is None:
        return await ask(visit)
    return await _go_on(
        visit, record, ClarificationAnswer(text=visit.message.text.strip()[:MAX_OPTION_CHARS])
    )


async def choose(visit: Visit, run_id: str, number: int) -> ReplyStep:
    """The button of an option was pressed."""
    record, _ = await _waiting(run_id, visit)
    if record is None:
        return await visit.say(messages.ANSWERED_ALREADY)
    return await _go_on(visit, record, ClarificationAnswer(choice=number))


async def _go_on(visit: Visit, record: RunRecord, said: ClarificationAnswer) -> ReplyStep:
    world, key, ask_step = visit.world, visit.step.reply_key, record.ask_step
    user, alone = await world.find_user(visit.conversation, visit.message.sender)
    try:
        must_be_told = await answer_clarification(record, said, user, world.services.blobs)
    except CallerError:  # answered otherwise, or an option that there is not: a button of another question
        return await visit.say(messages.ANSWERED_ALREADY)
    if must_be_told:
        await world.orchestrations.tell(record.run_id, event_name(ask_step))
    memory = ReplyMemory(world.services.blobs, record.run_id, key)
    if not await memory.claim(ask_step):
        return visit.end  # pressed twice: the first one's reply tells the answer
    await memory.keep_place(_place(visit, alone=alone))
    await remember(visit.conversation, visit.owner_id, world, lambda turn: {"waiting_run_id": None})
    after = await _asked_at(record, world.services.run_log)
    step = {"kind": "follow", "run_id": record.run_id, "ask_step": ask_step, "after": after}
    return visit.step.model_copy(update={**step, "attempt": 0, "part": 0})


def _place(visit: Visit, *, alone: bool) -> ReplyPlace:
    return ReplyPlace(
        conversation=visit.conversation,
        owner_id=visit.owner_id,
        reply_to=visit.message.activity_id,
        alone=alone,
    )


async def _waiting(run_id: str, visit: Visit) -> tuple[RunRecord | None, Clarification | None]:
    """The run, and what it asks while it waits. None for what is not the owner's, or no more."""
    services = visit.world.services
    try:
        record = await owned_run(run_id, UserContext(user_id=visit.owner_id), services.runs)
        return record, await pending_clarification(record, services.blobs)
    except NotFoundError:
        return None, None


async def _asked_at(record: RunRecord, run_log: RunLog) -> int:
    """The number of the event that asked."""
    events = events_of(await run_log.read(record.run_id))
    asked = (number for number, event in enumerate(events, start=1) if isinstance(event, AskUserEvent))
    return max(asked, default=0)


async def _begin(visit: Visit, user: UserContext, doc_ids: tuple[str, ...]) -> None:
    """Store the question in the conversation's thread; in a new one, if that was deleted."""
    services, key = visit.world.services, visit.step.reply_key
    own = digest("thread", key)[:32]
    thread_id = await _thread_id(visit, own)
    question = ChatRequest(question=visit.message.text, doc_ids=doc_ids)
    if thread_id == own:
        await begin_run(question, user, services, run_id=key)
        return
    question = question.model_copy(update={"thread_id": thread_id})
    try:
        await begin_run(question, user, services, run_id=key)
    except NotFoundError:
        # Deleted; or so new that the question before has not begun it yet.
        try:
            await new_thread(None, user, services.threads, thread_id)
        except NotFoundError:
            await remember(visit.conversation, visit.owner_id, visit.world, lambda turn: {"thread_id": own})
            question = question.model_copy(update={"thread_id": None})
        await begin_run(question, user, services, run_id=key)


async def _leave_question(visit: Visit) -> None:
    """Whoever asks something else does not mean to answer any more."""
    turn = await visit.turn()
    if turn is None or turn.waiting_run_id is None:
        return
    left = turn.waiting_run_id
    await leave_question(turn, visit.world)

    def without(now: BotTurn) -> Mapping[str, str | None]:
        return {"waiting_run_id": None if now.waiting_run_id == left else now.waiting_run_id}

    await remember(visit.conversation, visit.owner_id, visit.world, without)


async def _thread_id(visit: Visit, own: str) -> str:
    """The conversation's thread; with its first question one begins."""

    def begun(turn: BotTurn) -> Mapping[str, str]:
        return {"thread_id": turn.thread_id or own}

    turn = await visit.turn()
    if turn is None or turn.thread_id is None:
        turn = await remember(visit.conversation, visit.owner_id, visit.world, begun)
    return turn.thread_id or own


async def take(visit: Visit) -> ReplyStep:
    """Do what the message asks, or say what is to be done next: its files come before its words."""
    with suppress(GroundworkError):
        await visit.world.outbox.typing(visit.conversation)
    button = visit.message.button
    if isinstance(button, ChosenOption):
        return await choose(visit, button.run_id, button.number)
    if visit.message.attachments:
        return visit.step.model_copy(update={"kind": "store_files", "attempt": 0})
    return await heed(visit)


async def heed(visit: Visit, doc_ids: tuple[str, ...] = ()) -> ReplyStep:
    """Do what the words of a message say. `doc_ids`: documents that came with them."""
    button = visit.message.button
    text = button.command if isinstance(button, ButtonCommand) else visit.message.text
    if not text.strip():
        return visit.end
    if (command := command_of(text)) is not None:
        return await obey(command, visit)
    if (refusal := _refusal(text)) is not None:
        return await visit.say(refusal)
    turn = None if doc_ids else await visit.turn()
    return await answer(visit, turn) if turn and turn.waiting_run_id else await ask(visit, doc_ids)


def _refusal(text: str) -> Texts | None:
    """What is said to words that nobody can mean as a question."""
    if not has_words(text):
        return messages.NO_WORDS
    return messages.NO_SUCH_COMMAND if is_unknown_command(text) else None


async def greet(visit: Visit) -> ReplyStep:
    """Somebody has added us."""
    return await show_help(visit)


def as_message(said: BotMessage | BotJoined) -> BotMessage:
    """What was said, as a message; a greeting has no words."""
    if isinstance(said, BotMessage):
        return said
    return BotMessage(activity_id=said.activity_id, conversation=said.conversation, sender=said.sender)
