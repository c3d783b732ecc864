"""Dispatches an incoming message: to a command, a waiting clarification, file storage or a new run.

Every function may be repeated after a crash.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from shared.access.limits import admit, release, slot_of_run
from shared.access.models import UserContext
from shared.answering.agent_files import agents_for, asked_agent
from shared.answering.clarification import reply_event_name
from shared.answering.clarification_steps import answer_clarification, pending_clarification
from shared.answering.runs import Arrival, begin_run, thread_of_run, view_run
from shared.conversations.memory import forget_all
from shared.conversations.threads import delete_thread, new_thread
from shared.evidence.untrusted_text import markdown_text
from shared.platform.errors import CallerError, GroundworkError, NotFoundError, TooManyRequestsError
from shared.platform.tracing import link_to
from shared.runs.events import AskUserEvent, events_of
from shared.runs.models import ChatRequest, Clarification, ClarificationAnswer, RunRecord
from shared.runs.run_store import owned_run
from shared.teams import messages
from shared.teams.context import IncomingMessage, cancel_waiting_run
from shared.teams.models import (
    BotReply,
    ButtonCommand,
    ChosenOption,
    Command,
    ReplyPlace,
    ReplyStep,
)
from shared.teams.outgoing import reply_of
from shared.teams.parsing import (
    MAX_OPTION_CHARS,
    as_answer,
    command_of,
    has_words,
    is_number_of_option,
    is_unknown_command,
)
from shared.teams.store import ReplyMemory


async def take(incoming: IncomingMessage) -> ReplyStep:
    """Process an incoming message and return the next step. Attached files are stored before the text is
    processed.
    """
    with suppress(GroundworkError):
        await incoming.deps.outbox.typing(incoming.conversation)
    button = incoming.message.button
    if isinstance(button, ChosenOption):
        record, _ = await _waiting_run(button.run_id, incoming)
        if record is None:
            return await incoming.finish(messages.ANSWERED_ALREADY)
        return await _resume(incoming, record, ClarificationAnswer(choice=button.number))
    if incoming.message.attachments:
        return incoming.step.model_copy(update={"kind": "store_files", "attempt": 0})
    return await answer_words(incoming)


async def answer_words(incoming: IncomingMessage, doc_ids: tuple[str, ...] = ()) -> ReplyStep:
    """Process the text of a message and return the next step. `doc_ids` are the documents attached to it."""
    button = incoming.message.button
    text = button.command if isinstance(button, ButtonCommand) else incoming.message.text
    if not text.strip():
        return incoming.step.end
    if (command := command_of(text)) is not None:
        return await _COMMANDS[command](incoming)
    if not has_words(text):
        return await incoming.finish(messages.NO_WORDS)
    if is_unknown_command(text):
        return await incoming.finish(messages.NO_SUCH_COMMAND)
    turn = None if doc_ids else await incoming.turn()
    if turn and turn.waiting_run_id:
        return await _answer_clarification(incoming, turn.waiting_run_id)
    return await _ask(incoming, doc_ids)


async def show_help(incoming: IncomingMessage) -> ReplyStep:
    """Send the help text, which lists the commands, the available agents and the documents searched in this
    conversation.
    """
    is_personal = incoming.conversation.kind == "personal"
    scope = messages.OF_STRANGER if is_personal else messages.OF_SEVERAL
    if incoming.is_from_person:
        _, without_groups = await incoming.user()
        scope = messages.OF_PERSON_ALONE if without_groups else messages.OF_PERSON
    return await incoming.finish(messages.HELP, scope[incoming.language] + await _agents(incoming))


async def _agents(incoming: IncomingMessage) -> str:
    """Return the help paragraph that lists the user's agents, or "" if there are none."""
    user, _ = await incoming.user()
    agents = agents_for(user, incoming.deps.services.settings, "chat")
    lines = [f"- **{agent.name}:** {markdown_text(agent.description)}" for agent in agents]
    return "\n".join(("\n\n" + messages.AGENTS[incoming.language], *lines)) if lines else ""


async def _start_new(incoming: IncomingMessage) -> ReplyStep:
    await cancel_waiting_run(await incoming.turn(), incoming.deps)
    await incoming.remember(lambda turn: {"thread_id": None, "waiting_run_id": None})
    return await incoming.finish(messages.BEGUN)


async def _forget(incoming: IncomingMessage) -> ReplyStep:
    turn, deps = await incoming.turn(), incoming.deps
    user = UserContext(user_id=incoming.owner_id)
    await cancel_waiting_run(turn, deps)
    if turn is not None and turn.thread_id is not None:
        with suppress(NotFoundError):  # The thread may have been deleted in another client.
            await delete_thread(turn.thread_id, user, deps.services)
    await forget_all(user, deps.services.memory_index, deps.services.threads)
    await deps.turns.forget(incoming.owner_id)
    return await incoming.finish(messages.FORGOTTEN)


async def _show_sources(incoming: IncomingMessage) -> ReplyStep:
    """Send the sources of the last answer, omitting documents that the owner can no longer read."""
    turn, services, answer = await incoming.turn(), incoming.deps.services, None
    if turn and turn.last_run_id:
        user, _ = await incoming.user()
        with suppress(NotFoundError):  # The thread of the last answer was deleted.
            record = await owned_run(turn.last_run_id, user, services.runs)
            answer = (await view_run(record, services, user)).answer
    if answer is None or not answer.citations:
        return await incoming.finish(messages.NO_SOURCES)
    address = services.settings.host.public_address
    citations = reply_of(answer, language=incoming.language, public_address=address).citations
    lines = [f"{markdown_text(citation.name)} [{citation.n}]" for citation in citations]
    reply = BotReply(
        text="\n\n".join((messages.SOURCES[incoming.language], *lines)),
        citations=citations,
    )
    await incoming.deps.outbox.say(incoming.conversation, reply, incoming.message.activity_id)
    return incoming.step.end


async def _keep(incoming: IncomingMessage) -> ReplyStep:
    return incoming.step.model_copy(update={"kind": "keep_file", "attempt": 0})


_COMMANDS: Mapping[Command, Callable[[IncomingMessage], Awaitable[ReplyStep]]] = {
    "new": _start_new,
    "sources": _show_sources,
    "keep": _keep,
    "forget": _forget,
    "help": show_help,
}


async def _answer_clarification(incoming: IncomingMessage, run_id: str) -> ReplyStep:
    """Handle a message that arrives while a run waits: either the answer to its clarification or a new
    question.
    """
    text = incoming.message.text
    record, clarification = await _waiting_run(run_id, incoming)
    if record is None or clarification is None:
        if is_number_of_option(text):
            return await incoming.finish(messages.ANSWERED_ALREADY)
        return await _ask(incoming)
    try:
        choice = as_answer(text, clarification.options)
    except CallerError:
        return await incoming.finish(messages.NO_SUCH_OPTION, len(clarification.options))
    if choice is None:
        return await _ask(incoming)
    return await _resume(incoming, record, ClarificationAnswer(text=text.strip()[:MAX_OPTION_CHARS]))


async def _waiting_run(
    run_id: str, incoming: IncomingMessage
) -> tuple[RunRecord | None, Clarification | None]:
    """Return the run and its open clarification, or (None, None) if the run has another owner or is no longer
    waiting.
    """
    services = incoming.deps.services
    try:
        record = await owned_run(run_id, UserContext(user_id=incoming.owner_id), services.runs)
        return record, await pending_clarification(record, services.run_log)
    except NotFoundError:
        return None, None


async def _resume(incoming: IncomingMessage, record: RunRecord, answer: ClarificationAnswer) -> ReplyStep:
    """Pass the user's reply on to the waiting run, and return the step that shows how the run continues."""
    deps, ask_step = incoming.deps, record.ask_step
    user, without_groups = await incoming.user()
    try:
        must_be_raised = await answer_clarification(record, answer, user, deps.services)
    except TooManyRequestsError:
        raise
    # The clarification was already answered differently, or the button belongs to an earlier one.
    except CallerError:
        return await incoming.finish(messages.ANSWERED_ALREADY)
    if must_be_raised:
        await deps.orchestrations.raise_event(record.run_id, reply_event_name(ask_step))
    memory = ReplyMemory(deps.services.blobs, record.run_id, incoming.step.reply_key)
    if not await memory.claim(ask_step):
        return incoming.step.end  # A second click: the reply to the first click shows the answer.
    await memory.keep_place(_place(incoming, without_groups=without_groups))
    await incoming.remember(lambda turn: {"waiting_run_id": None})
    events = events_of(await deps.services.run_log.read(record.run_id))
    numbers = (number for number, event in enumerate(events, start=1) if isinstance(event, AskUserEvent))
    update = {"run_id": record.run_id, "ask_step": ask_step, "after": max(numbers, default=0)}
    return incoming.step.model_copy(update={**update, "kind": "follow", "attempt": 0, "part": 0})


async def _ask(incoming: IncomingMessage, doc_ids: tuple[str, ...] = ()) -> ReplyStep:
    """Start the run of a question, and return the step that follows it. A retry doesn't start a second run.

    Args:
        doc_ids: documents dropped with the question; only they are searched.

    Raises:
        CallerError: the user has no access, or the question isn't accepted.
    """
    services, run_id = incoming.deps.services, incoming.step.reply_key
    user, without_groups = await incoming.user()
    await _leave_clarification(incoming)
    if await services.runs.get(run_id) is None:
        await services.ensure_prepared()
        slot = slot_of_run(run_id, services.settings)
        await admit(user, services.settings, services.user_limits, slot=slot)
        try:
            await _begin(incoming, user, doc_ids)
        except GroundworkError:
            await release(user.user_id, run_id, services.settings, services.user_limits)
            raise
    place = _place(incoming, without_groups=without_groups)
    await ReplyMemory(services.blobs, run_id, run_id).keep_place(place)
    await incoming.deps.orchestrations.start("answer_question", run_id, {"run_id": run_id, **link_to(run_id)})
    return incoming.step.model_copy(update={"kind": "follow", "run_id": run_id, "attempt": 0, "part": 0})


async def _leave_clarification(incoming: IncomingMessage) -> None:
    """Cancel the run that waits for a clarification, because the user has asked something else."""
    turn = await incoming.turn()
    if turn is None or turn.waiting_run_id is None:
        return
    left = turn.waiting_run_id
    await cancel_waiting_run(turn, incoming.deps)
    await incoming.remember(
        lambda now: {"waiting_run_id": None if now.waiting_run_id == left else now.waiting_run_id}
    )


async def _begin(incoming: IncomingMessage, user: UserContext, doc_ids: tuple[str, ...]) -> None:
    """Create the run and add its question to the conversation's thread, or to a new thread if that one was
    deleted.
    """
    services, run_id = incoming.deps.services, incoming.step.reply_key
    own = thread_of_run(run_id, user.user_id, services.settings.identity.owner_id_key)
    turn = await incoming.turn()
    if turn is None or turn.thread_id is None:
        turn = await incoming.remember(lambda now: {"thread_id": now.thread_id or own})
    thread_id = turn.thread_id or own
    agent, text = asked_agent(incoming.message.text, user, services.settings)
    question = ChatRequest(question=text, doc_ids=doc_ids, agent=agent)
    arrival = Arrival(origin=incoming.conversation.channel)
    if thread_id == own:
        await begin_run(question, user, services, arrival, run_id=run_id)
        return
    question = question.model_copy(update={"thread_id": thread_id})
    try:
        await begin_run(question, user, services, arrival, run_id=run_id)
    except NotFoundError:
        # The thread was deleted, or the run of the previous question has not created it yet.
        try:
            await new_thread(None, user, services.threads, thread_id)
        except NotFoundError:
            await incoming.remember(lambda now: {"thread_id": own})
            question = question.model_copy(update={"thread_id": None})
        await begin_run(question, user, services, arrival, run_id=run_id)


def _place(incoming: IncomingMessage, *, without_groups: bool) -> ReplyPlace:
    return ReplyPlace(
        conversation=incoming.conversation,
        owner_id=incoming.owner_id,
        reply_to=incoming.message.activity_id,
        alone=without_groups,
    )
