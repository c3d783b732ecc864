"""Commands: begin anew, show sources, forget, help. Each may be done twice."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from shared.access.models import UserContext
from shared.answering.runs import view_run
from shared.conversations.memory import forget_all
from shared.conversations.threads import delete_thread
from shared.platform.errors import NotFoundError
from shared.runs.models import RunAnswer
from shared.runs.records import owned_run
from shared.teams import messages
from shared.teams.context import Visit, leave_question, remember
from shared.teams.markdown import plain
from shared.teams.models import BotReply, Command, ReplyStep
from shared.teams.rendering import reply_of


async def obey(command: Command, visit: Visit) -> ReplyStep:
    """Do what a command says."""
    return await _COMMANDS_COMMANDS[command](visit)


async def show_help(visit: Visit) -> ReplyStep:
    """Say what can be asked here, and what is read for it."""
    scope = messages.OF_STRANGER if visit.conversation.kind == "personal" else messages.OF_SEVERAL
    if visit.is_of_person:
        _, alone = await visit.world.find_user(visit.conversation, visit.message.sender)
        scope = messages.OF_PERSON_ALONE if alone else messages.OF_PERSON
    return await visit.say(messages.HELP, scope[visit.language])


async def _begin_anew(visit: Visit) -> ReplyStep:
    await leave_question(await visit.turn(), visit.world)
    anew = {"thread_id": None, "waiting_run_id": None}
    await remember(visit.conversation, visit.owner_id, visit.world, lambda turn: anew)
    return await visit.say(messages.BEGUN)


async def _forget(visit: Visit) -> ReplyStep:
    turn, world = await visit.turn(), visit.world
    user = UserContext(user_id=visit.owner_id)
    await leave_question(turn, world)
    if turn is not None and turn.thread_id is not None:
        with suppress(NotFoundError):  # it went another way
            await delete_thread(turn.thread_id, user, world.services)
    await forget_all(user, world.services.memory_index, world.services.threads)
    await world.turns.forget(visit.owner_id)
    return await visit.say(messages.FORGOTTEN)


async def _show_sources(visit: Visit) -> ReplyStep:
    turn = await visit.turn()
    answer = await _answer(turn.last_run_id, visit) if turn and turn.last_run_id else None
    if answer is None or not answer.citations:
        return await visit.say(messages.NO_SOURCES)
    address = visit.world.services.settings.public_address
    shown = reply_of(answer, language=visit.language, public_address=address)
    lines = [f"{plain(citation.name)} [{citation.n}]" for citation in shown.citations]
    text = "\n\n".join((messages.SOURCES[visit.language], *lines))
    reply = BotReply(text=text, citations=shown.citations)
    await visit.world.outbox.say(visit.conversation, reply, visit.message.activity_id)
    return visit.end


async def _answer(run_id: str, visit: Visit) -> RunAnswer | None:
    """The answer, with what its owner may see of it now."""
    services = visit.world.services
    user, _ = await visit.world.find_user(visit.conversation, visit.message.sender)
    try:
        record = await owned_run(run_id, user, services.runs)
        return (await view_run(record, services, user)).answer
    except NotFoundError:
        return None  # its thread was deleted


_COMMANDS_COMMANDS: Mapping[Command, Callable[[Visit], Awaitable[ReplyStep]]] = {
    "new": _begin_anew,
    "sources": _show_sources,
    "forget": _forget,
    "help": show_help,
}
