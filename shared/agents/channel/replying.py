"""A run's answer, written into the conversation: as it grows where that can be seen, whole in the end.

What is there twice is worse than a pause, and what is missing is worse than both: an attempt that finds that
an earlier one had begun puts the whole in the place of what that one showed, else sends it once more; none
does after one that went out whole.
"""

from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime

from shared.agents.channel.following import follow
from shared.agents.channel.kept import ReplyMemory
from shared.agents.channel.live_text import LiveText
from shared.agents.channel.rendering import reply_of
from shared.agents.channel.visit import remember
from shared.agents.channel.world import ChannelWorld
from shared.agents.channel.writer import Writer, open_writer
from shared.agents.runs import close_dead_run, view_run
from shared.agents.working_memory import WorkingMemory
from shared.core import channel_texts as texts
from shared.core.channel_progress import progress_line
from shared.core.channel_text import plain, visible
from shared.core.channel_words import conversation_key, language_of
from shared.core.rights_after_wait import asker_after_wait
from shared.core.security_filter import NOBODYS
from shared.errors import AccessDeniedError, DefectError, NotAuthenticatedError, NotFoundError
from shared.models.bot import BotReply, BotSender, ChosenOption, ShownButton
from shared.models.channel import Language, ReplyPlace, ReplyStep
from shared.models.clarification import Clarification
from shared.models.events import TERMINAL_EVENTS, RunEvent
from shared.models.identity import UserContext
from shared.models.runs import RunAnswer, RunRecord

MAX_PARTS = 40  # more than an hour; a run has an end long before, whatever happens
_AFTER_EXPIRY_S = 60.0  # by then the run has noticed itself that nobody answered


@dataclass(frozen=True)
class Telling:
    """One reply at work."""

    step: ReplyStep
    world: ChannelWorld
    place: ReplyPlace
    memory: ReplyMemory
    writer: Writer

    @property
    def language(self) -> Language:
        """Of fixed texts."""
        return language_of(self.place.conversation)

    @property
    def end(self) -> ReplyStep:
        """There is nothing left to do."""
        return ReplyStep(reply_key=self.step.reply_key, day=self.step.day, kind="end")


async def reply_part(step: ReplyStep, world: ChannelWorld) -> ReplyStep:
    """Follow the run for a while; its end, or its question, becomes a message.

    Raises:
        NotFoundError: the run was erased.
        CallerError: the channel takes nothing from us there.
        DependencyError: it cannot be reached.
    """
    memory = ReplyMemory(world.services.blobs, step.run_id, step.reply_key)
    place = await memory.place()
    if (sent := await memory.sent(step.ask_step)) is not None:
        await _note(sent.message_id, step, place, world)
        return ReplyStep(reply_key=step.reply_key, day=step.day, kind="end")
    is_first = step.part == 0 and await memory.begin(step.ask_step)
    begun = "" if is_first or step.part else await memory.growing(step.ask_step)
    writer = await open_writer(world.outbox, place, grows=is_first, begun=begun)
    telling = Telling(step, world, place, memory, writer)
    try:
        return await _follow(telling)
    finally:
        if await writer.give_up(texts.GOING_ON[telling.language]):  # not, if it has ended
            await memory.note_growing(step.ask_step, "")


async def expire(step: ReplyStep, world: ChannelWorld) -> ReplyStep:
    """Nobody may have answered in time: then the run went on by itself, and this tells its answer."""
    services = world.services
    end = ReplyStep(reply_key=step.reply_key, day=step.day, kind="end")
    record = await services.runs.get(step.run_id)
    if record is None or record.status == "cancelled":
        return end
    choice = await WorkingMemory(services.blobs, step.run_id).find_choice(step.ask_step)
    if choice is not None and choice.said:
        return end  # answered: here, where another reply tells what came of it, or over the API
    if not await _is_let_in(step, world):
        return end
    if not await ReplyMemory(services.blobs, step.run_id, step.reply_key).claim(step.ask_step):
        return end
    return step.model_copy(update={"kind": "follow", "part": 1, "delay_s": 0.0, "attempt": 0})


async def _is_let_in(step: ReplyStep, world: ChannelWorld) -> bool:
    """Whether the person may still be told anything: days have passed, and nobody has written."""
    place = await ReplyMemory(world.services.blobs, step.run_id, step.reply_key).place()
    asker = BotSender(channel_user_id=place.owner_id, object_id=place.owner_id)
    if place.owner_id.startswith(NOBODYS):
        return True
    try:
        await world.find_user(place.conversation, asker)
    except (NotAuthenticatedError, AccessDeniedError):
        return False
    return True


async def _follow(telling: Telling) -> ReplyStep:
    step, world, writer = telling.step, telling.world, telling.writer
    live, number, line = LiveText(), step.after, texts.BEGINNING[telling.language]
    await writer.inform(line)  # at once: a plan may take some seconds

    async def look_after() -> None:
        if not await world.orchestrations.is_alive(step.run_id):
            await close_dead_run(step.run_id, "The run was stopped before it had an answer.", world.services)

    seconds = world.services.settings.bot_stream_seconds
    events = follow(world.services.run_log, step.run_id, step.after, seconds, look_after)
    async with aclosing(events):
        shown = ""
        async for found in events:
            shown = await _noted(shown, telling)
            if found is None:
                await writer.keep_typing()
                continue
            number, event = found
            if event.name in TERMINAL_EVENTS:
                return await _tell_end(event, telling)
            if event.name == "ASK_USER":
                return await _tell_question(event, number, telling)
            if (now := progress_line(event, telling.language)) is not None and now != line:
                line = now
                await writer.inform(now)
            await live.take(event, writer.write)
    return await _go_on_later(number, telling)


async def _noted(known: str, telling: Telling) -> str:
    """The id of the message that people see begun, kept as soon as there is one: an attempt after a crash
    puts the whole there."""
    shown = telling.writer.message_id
    if shown != known:
        await telling.memory.note_growing(telling.step.ask_step, shown)
    return shown


async def _go_on_later(number: int, telling: Telling) -> ReplyStep:
    """Time for one message is over: what comes of the run is told in a new one."""
    if telling.step.part >= MAX_PARTS:
        raise DefectError("a run without an end")
    if telling.writer.is_open:
        await telling.writer.finish(BotReply(text=texts.GOING_ON[telling.language]))
    update = {"after": number, "part": telling.step.part + 1, "attempt": 0, "delay_s": 0.0}
    return telling.step.model_copy(update=update)


async def _tell_question(event: RunEvent, number: int, telling: Telling) -> ReplyStep:
    """The run asks: its options become buttons. Whose answer it is stands there before they are shown."""
    world, place, run_id = telling.world, telling.place, telling.step.run_id
    ask_step = int(event.data["step"])
    asked = Clarification.model_validate(
        {name: event.data[name] for name in ("question", "options", "expires_at")}
    )
    await remember(place.conversation, place.owner_id, world, lambda turn: {"waiting_run_id": run_id})
    buttons = tuple(
        ShownButton(
            title=visible(f"{option.title or option.filename} ({option.filename}, {option.date})"),
            value=ChosenOption(run_id=run_id, number=option.number),
        )
        for option in asked.options
    )
    await telling.writer.finish(BotReply(text=plain(asked.question), buttons=buttons))
    waits_s = (asked.expires_at - datetime.now(UTC)).total_seconds() + _AFTER_EXPIRY_S
    update = {"kind": "expire", "ask_step": ask_step, "after": number, "part": 1, "attempt": 0}
    return telling.step.model_copy(update={**update, "delay_s": max(waits_s, 0.0)})


async def _tell_end(event: RunEvent, telling: Telling) -> ReplyStep:
    """The run has ended: its answer, or that there is none."""
    world, step = telling.world, telling.step
    record = await world.services.runs.get(step.run_id)
    if event.name == "COMPLETE" and record is not None:
        reply = await _answer(record, telling)
    else:
        text = texts.error_text(str(event.data.get("type")), step.run_id[:8], telling.language)
        reply = BotReply(text=text)
    message_id = await telling.writer.finish(reply)
    await telling.memory.note_sent(step.ask_step, message_id)
    await _note(message_id, step, telling.place, world)
    return telling.end


async def _answer(record: RunRecord, telling: Telling) -> BotReply:
    services = telling.world.services
    reader = await _reader(WorkingMemory(services.blobs, record.run_id), record.ask_step)
    view = await view_run(record, services, reader)
    if view.answer is None:
        raise NotFoundError("The answer was deleted.")
    address = services.settings.public_address
    reply = reply_of(view.answer, language=telling.language, public_address=address)
    note = _note_of(view.answer, telling.place)
    if note is None:
        return reply
    return reply.model_copy(update={"text": f"{reply.text}\n\n_{note[telling.language]}_"})


def _note_of(answer: RunAnswer, place: ReplyPlace) -> texts.Texts | None:
    """What is to be known of an answer here: of how little it could be made."""
    if place.alone:
        return texts.OF_PERSON_ALONE
    is_of_several = place.conversation.kind != "personal"
    is_without = answer.abstained or not answer.citations
    return texts.OF_SEVERAL if is_of_several and is_without else None


async def _reader(memory: WorkingMemory, ask_step: int) -> UserContext:
    """As whom the answer is read: as whom it was written."""
    request = await memory.request()
    choice = await memory.find_choice(ask_step) if ask_step else None
    asker = asker_after_wait(request, choice, datetime.now(UTC)) if choice else None
    return request.with_rights_of(asker).user


async def _note(message_id: str, step: ReplyStep, place: ReplyPlace, world: ChannelWorld) -> None:
    """Keep of which run our message tells: for thumbs, and for `/sources`."""
    key, run_id = conversation_key(place.conversation), step.run_id
    if await world.services.runs.get(run_id) is None:
        return  # forgotten meanwhile
    if message_id:
        await world.turns.note_message(key, message_id, run_id, place.owner_id)
    await remember(place.conversation, place.owner_id, world, lambda turn: {"last_run_id": run_id})
