"""A run's answer, written into the conversation: as it grows where that can be seen, whole in the end.

What is there twice is worse than a pause, and what is missing is worse than both: an attempt that finds that
an earlier one had begun puts the whole in the place of what that one showed, else sends it once more; none
does after one that went out whole.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from shared.access.models import UserContext
from shared.access.security_filter import NOBODYS
from shared.answering.runs import close_dead_run, view_run
from shared.platform.errors import (
    AccessDeniedError,
    CallerError,
    DefectError,
    GroundworkError,
    NotAuthenticatedError,
    NotFoundError,
)
from shared.platform.telemetry import get_logger
from shared.platform.tracing import unrecorded
from shared.runs.events import (
    AskUserEvent,
    CompleteEvent,
    ErrorEvent,
    RunEvent,
    TokenEvent,
    is_terminal,
    parse_event,
    withdraws_step,
)
from shared.runs.log_lines import LogSlice
from shared.runs.models import Clarification, RunAnswer, RunRecord, asker_after_wait
from shared.runs.run_log import LogTail, RunLog
from shared.runs.working_memory import WorkingMemory
from shared.teams import messages
from shared.teams.context import ChannelWorld, remember
from shared.teams.markdown import ChannelText, plain, visible
from shared.teams.messages import progress_line
from shared.teams.models import (
    BotReply,
    BotSender,
    ChosenOption,
    Language,
    ReplyPlace,
    ReplyStep,
    ShownButton,
)
from shared.teams.parsing import conversation_key, language_of
from shared.teams.ports import BotOutbox, BotStream
from shared.teams.rendering import reply_of
from shared.teams.store import ReplyMemory

Write = Callable[[str], Awaitable[None]]


class LiveText:
    """Takes a run's events, writes what can be added."""

    def __init__(self) -> None:
        self._converting = ChannelText()
        self._step: int | None = None
        self._now = ""
        self._shown = ""

    async def take(self, event: RunEvent, write: Write) -> None:
        """Look at the next event; events that are no text change nothing."""
        if withdraws_step(event):
            if event.step == self._step:
                self._begin(None)
        elif isinstance(event, TokenEvent):
            if event.step != self._step:
                self._begin(event.step)
            self._now += self._converting.feed(event.text)
            await self._show(write)

    def _begin(self, step: int | None) -> None:
        self._converting, self._now, self._step = ChannelText(), "", step

    async def _show(self, write: Write) -> None:
        if len(self._now) > len(self._shown) and self._now.startswith(self._shown):
            added = self._now[len(self._shown) :]
            self._shown = self._now
            await write(added)


_POLLS_S = (0.05, 0.5)  # first, slowest; people in a chat see words by the second
_CHECK_AFTER_S = 5.0  # of silence: is the orchestration still there?
Numbered = tuple[int, RunEvent]


async def follow(
    log: RunLog, run_id: str, after: int, seconds: float, when_silent: Callable[[], Awaitable[None]]
) -> AsyncGenerator[Numbered | None, None]:
    """Events behind number `after` with their numbers; None now and then while nothing comes.

    Ends after `seconds`. `when_silent` may write the last event of a run that nobody goes on with.

    Raises:
        NotFoundError: the run's log is gone.
    """
    ends = time.monotonic() + seconds
    number, offset, heard, pause = 0, 0, time.monotonic(), _POLLS_S[0]
    with log.watch(run_id) as tail:
        while True:
            written = await _next(log, run_id, offset, tail)
            offset = written.next_offset
            for line in written.lines:
                number += 1
                if number > after:
                    yield number, parse_event(line)
            now = time.monotonic()
            if now >= ends:
                return
            if written.lines:
                heard, pause = now, _POLLS_S[0]
                continue
            yield None
            if now - heard >= _CHECK_AFTER_S:
                await when_silent()
                heard = now
            await tail.grown(offset, min(pause, max(ends - now, 0.0)))
            pause = min(pause * 1.5, _POLLS_S[1])


async def _next(log: RunLog, run_id: str, offset: int, tail: LogTail) -> LogSlice:
    """What follows: from memory if this process has it, else from storage."""
    known = tail.since(offset)
    if known is not None:
        await asyncio.sleep(0)
        return known
    with unrecorded():
        return await log.read_piece(run_id, offset)


_TYPING_EVERY_S = 5.0  # clients show the sign for some seconds


class Writer:
    """From `open_writer`. `finish` once, at the end; `give_up` in any case."""

    def __init__(self, outbox: BotOutbox, place: ReplyPlace, stream: BotStream | None) -> None:
        self._outbox = outbox
        self._place = place
        self._stream = stream
        self._typed_at = time.monotonic()
        self._has_text = False

    @property
    def is_open(self) -> bool:
        """Whether there is a message that people see begun, or wait for."""
        return self._stream is not None

    @property
    def message_id(self) -> str:
        """The channel's id of the message that people see begun; empty where there is none."""
        return self._stream.message_id if self._stream is not None else ""

    async def inform(self, line: str) -> None:
        """Show what is being done, until there is text."""
        if self._stream is not None and not self._has_text:
            with suppress(GroundworkError):
                await self._stream.inform(line)

    async def write(self, text: str) -> None:
        """Add to the text."""
        if self._stream is not None:
            self._has_text = True
            with suppress(GroundworkError):
                await self._stream.write(text)

    async def keep_typing(self) -> None:
        """Show now and then that we write, where the text itself does not show it."""
        if self._stream is not None and self._stream.is_live:
            return
        if time.monotonic() - self._typed_at >= _TYPING_EVERY_S:
            self._typed_at = time.monotonic()
            with suppress(GroundworkError):
                await self._outbox.typing(self._place.conversation)

    async def finish(self, reply: BotReply) -> str:
        """Put the whole message there; the channel's id of it. What cannot end as it began is sent anew.

        Raises:
            CallerError: the channel takes nothing from us there.
            DependencyError: it cannot be reached.
        """
        stream, self._stream = self._stream, None
        if stream is not None:
            try:
                return await stream.finish(reply)
            except CallerError:
                raise
            except GroundworkError as failed:
                get_logger().warning("channel.stream_failed", error_type=failed.code)
        # A reply to a message only the first time: later it would stand far above what people read.
        reply_to = self._place.reply_to if stream is not None else None
        return await self._outbox.say(self._place.conversation, reply, reply_to)

    async def give_up(self, text: str) -> bool:
        """End a message that nobody has finished, with a text that says so: what comes is sent anew.

        Whether there was one.
        """
        stream, self._stream = self._stream, None
        if stream is not None:
            with suppress(GroundworkError):
                await stream.finish(BotReply(text=text))
        return stream is not None


async def open_writer(outbox: BotOutbox, place: ReplyPlace, *, grows: bool, begun: str = "") -> Writer:
    """Begin a message; one that grows, where it may and can.

    `begun`: the channel's id of the one that an earlier attempt left behind; the whole is put in its place.
    """
    if not grows and not begun:
        return Writer(outbox, place, None)
    try:
        return Writer(outbox, place, await outbox.begin(place.conversation, place.reply_to, begun))
    except CallerError:
        raise
    except GroundworkError as failed:
        get_logger().warning("channel.stream_failed", error_type=failed.code)
        return Writer(outbox, place, None)


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
        if await writer.give_up(messages.GOING_ON[telling.language]):  # not, if it has ended
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
    live, number, line = LiveText(), step.after, messages.BEGINNING[telling.language]
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
            if is_terminal(event):
                return await _tell_end(event, telling)
            if isinstance(event, AskUserEvent):
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
        await telling.writer.finish(BotReply(text=messages.GOING_ON[telling.language]))
    update = {"after": number, "part": telling.step.part + 1, "attempt": 0, "delay_s": 0.0}
    return telling.step.model_copy(update=update)


async def _tell_question(event: AskUserEvent, number: int, telling: Telling) -> ReplyStep:
    """The run asks: its options become buttons. Whose answer it is stands there before they are shown."""
    world, place, run_id = telling.world, telling.place, telling.step.run_id
    ask_step = event.step
    asked = Clarification.model_validate(event.model_dump(include=set(Clarification.model_fields)))
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
    if isinstance(event, CompleteEvent) and record is not None:
        reply = await _answer(record, telling)
    else:
        error_type = event.type if isinstance(event, ErrorEvent) else None
        text = messages.error_text(error_type, step.run_id[:8], telling.language)
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


def _note_of(answer: RunAnswer, place: ReplyPlace) -> messages.Texts | None:
    """What is to be known of an answer here: of how little it could be made."""
    if place.alone:
        return messages.OF_PERSON_ALONE
    is_of_several = place.conversation.kind != "personal"
    is_without = answer.abstained or not answer.citations
    return messages.OF_SEVERAL if is_of_several and is_without else None


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
