"""Writes a run's answer into the conversation, streamed if the channel supports it and complete at the end.

A duplicate is worse than a pause, and a missing answer worse than both. So an attempt that finds the traces
of an earlier one replaces the partial message with the complete one or sends it again; after a complete
message it sends nothing.
"""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from shared.access.models import UserContext
from shared.access.security_filter import NOBODYS
from shared.answering.runs import close_dead_run, view_run
from shared.evidence.untrusted_text import markdown_text, one_line
from shared.platform.errors import (
    AccessDeniedError,
    CallerError,
    DefectError,
    GroundworkError,
    NotAuthenticatedError,
    NotFoundError,
)
from shared.platform.telemetry import get_logger
from shared.runs.events import (
    ActionEvent,
    AskUserEvent,
    CompleteEvent,
    ErrorEvent,
    RunEvent,
    TokenEvent,
    events_of,
    is_terminal,
    parse_event,
    withdraws_step,
)
from shared.runs.journal import clarification_of
from shared.runs.models import Clarification, RunAnswer, RunRecord, asker_after_wait
from shared.runs.run_files import RunFiles
from shared.runs.run_log import RunLog, next_piece
from shared.teams import messages
from shared.teams.context import ReplyDependencies, remember
from shared.teams.markdown import finished_lines
from shared.teams.models import (
    BotReply,
    BotSender,
    ChosenOption,
    Language,
    ReplyPlace,
    ReplyStep,
    ShownButton,
)
from shared.teams.outbox import BotOutbox, BotStream
from shared.teams.outgoing import reply_of
from shared.teams.parsing import conversation_key
from shared.teams.store import ReplyMemory

MAX_PARTS = 40  # over an hour, far beyond any run's deadline
_POLLS_S = (0.05, 0.5)  # first, slowest; chat messages change once a second
_CHECK_AFTER_S = 5.0  # of silence, then check that the orchestration is alive
_TYPING_EVERY_S = 5.0  # clients show the typing indicator for a few seconds
_AFTER_EXPIRY_S = 60.0  # by then the run has timed out its clarification


@dataclass(frozen=True)
class RunReply:
    """The reply to one run: its destination, stored state and current message."""

    step: ReplyStep
    deps: ReplyDependencies
    place: ReplyPlace
    memory: ReplyMemory
    writer: "Writer"

    @property
    def language(self) -> Language:
        """The language of fixed texts."""
        return messages.language_of(self.place.conversation)


async def reply_part(step: ReplyStep, deps: ReplyDependencies) -> ReplyStep:
    """Follow the run for a while; its end or clarification becomes a message.

    Raises:
        NotFoundError: the run was erased.
        CallerError: the channel permanently rejects our messages.
        DependencyError: the channel is unreachable.
    """
    memory = ReplyMemory(deps.services.blobs, step.run_id, step.reply_key)
    place = await memory.place()
    if (previous := await memory.noted(step.ask_step, "sent")) is not None:
        await _note_answered(previous, step, place, deps)
        return step.end
    is_first = step.part == 0 and await memory.begin(step.ask_step)
    partial = "" if is_first or step.part else await memory.noted(step.ask_step, "growing") or ""
    is_shown = is_first or partial
    stream = await deps.outbox.begin(place.conversation, place.reply_to, partial) if is_shown else None
    writer = Writer(deps.outbox, place, stream)
    reply = RunReply(step, deps, place, memory, writer)
    try:
        return await _follow_run(reply)
    finally:
        if await writer.give_up(messages.GOING_ON[reply.language]):  # no effect once finished
            await memory.note(step.ask_step, "growing", "")


async def expire(step: ReplyStep, deps: ReplyDependencies) -> ReplyStep:
    """Follow a run that continued without a reply, because its clarification timed out."""
    services = deps.services
    record = await services.runs.get(step.run_id)
    if record is None or record.status == "cancelled":
        return step.end
    _, reply = await clarification_of(step.run_id, step.ask_step, services.run_log)
    if reply is not None and reply.choice.said:
        return step.end  # answered here (another reply shows the result) or over the API
    memory = ReplyMemory(services.blobs, step.run_id, step.reply_key)
    if not await _has_access(await memory.place(), deps) or not await memory.claim(step.ask_step):
        return step.end
    return step.model_copy(update={"kind": "follow", "part": 1, "delay_s": 0.0, "attempt": 0})


async def _has_access(place: ReplyPlace, deps: ReplyDependencies) -> bool:
    """Return whether the user still has access, days after the message."""
    if place.owner_id.startswith(NOBODYS):
        return True
    asker = BotSender(channel_user_id=place.owner_id, object_id=place.owner_id)
    try:
        await deps.find_user(place.conversation, asker)
    except (NotAuthenticatedError, AccessDeniedError):
        return False
    return True


async def _follow_run(reply: RunReply) -> ReplyStep:
    """Show progress and text until the run ends or asks, or the time for one message is over."""
    step, deps, writer = reply.step, reply.deps, reply.writer
    text, number, line = (
        LiveText(messages.PAGE[reply.language]),
        step.after,
        messages.BEGINNING[reply.language],
    )
    await writer.inform(line)  # at once, because a plan may take seconds

    async def close_if_dead() -> None:
        if not await deps.orchestrations.is_alive(step.run_id):
            await close_dead_run(step.run_id, "The run was stopped before it had an answer.", deps.services)

    seconds = deps.services.settings.bot.stream_seconds
    events = _events(deps.services.run_log, step.run_id, step.after, seconds, close_if_dead)
    async with aclosing(events):
        stored_id = ""
        async for entry in events:
            if writer.message_id != stored_id:
                # As soon as it is known: an attempt after a crash replaces this message.
                stored_id = writer.message_id
                await reply.memory.note(step.ask_step, "growing", stored_id)
            if entry is None:
                await writer.keep_typing()
                continue
            number, event = entry
            if is_terminal(event):
                return await _send_end(event, reply)
            if isinstance(event, AskUserEvent):
                return await _send_clarification(event, number, reply)
            line = await _show_progress(event, line, reply)
            await text.take(event, writer.write)
    return await _continue_later(number, reply)


async def _continue_later(number: int, reply: RunReply) -> ReplyStep:
    """Finish the message and let the next step continue in a new one."""
    part = reply.step.part
    if part >= MAX_PARTS:
        raise DefectError("the run has no end event")
    if reply.writer.is_open:
        await reply.writer.finish(BotReply(text=messages.GOING_ON[reply.language]))
    update = {"after": number, "part": part + 1, "attempt": 0, "delay_s": 0.0}
    return reply.step.model_copy(update=update)


async def _show_progress(event: RunEvent, line: str, reply: RunReply) -> str:
    """Show the event's progress line if it is new, and return the current line."""
    now = messages.progress_line(event, reply.language) or line
    if now != line:
        await reply.writer.inform(now)
    return now


async def _send_clarification(event: AskUserEvent, number: int, reply: RunReply) -> ReplyStep:
    """Send the run's clarification with its options as buttons."""
    place, run_id = reply.place, reply.step.run_id
    clarification = Clarification.model_validate(event.model_dump(include=set(Clarification.model_fields)))
    # Before the buttons appear, because a click must find the waiting run.
    await remember(
        place.conversation, place.owner_id, reply.deps.turns, lambda turn: {"waiting_run_id": run_id}
    )
    buttons = tuple(
        ShownButton(
            title=one_line(option.name),
            value=ChosenOption(run_id=run_id, number=option.number),
        )
        for option in clarification.options
    )
    await reply.writer.finish(BotReply(text=markdown_text(clarification.question), buttons=buttons))
    waits_s = (clarification.expires_at - datetime.now(UTC)).total_seconds() + _AFTER_EXPIRY_S
    update = {"kind": "expire", "ask_step": event.step, "after": number, "part": 1, "attempt": 0}
    return reply.step.model_copy(update={**update, "delay_s": max(waits_s, 0.0)})


async def _send_end(event: RunEvent, reply: RunReply) -> ReplyStep:
    """Send the answer, or that there is none."""
    deps, step = reply.deps, reply.step
    record = await deps.services.runs.get(step.run_id)
    if isinstance(event, CompleteEvent) and record is not None:
        message = await _answer(record, reply)
    else:
        code = event.type if isinstance(event, ErrorEvent) else None
        text = messages.error_text(code, step.run_id[:8], reply.language)
        message = BotReply(text=text)
    message_id = await reply.writer.finish(message)
    await reply.memory.note(step.ask_step, "sent", message_id)
    await _note_answered(message_id, step, reply.place, deps)
    return step.end


async def _answer(record: RunRecord, reply: RunReply) -> BotReply:
    """Return the answer, read with the rights under which it was written."""
    services = reply.deps.services
    request = await RunFiles(services.blobs, record.run_id).request()
    _, clarification = await clarification_of(record.run_id, record.ask_step, services.run_log)
    asker = asker_after_wait(request, clarification.choice, datetime.now(UTC)) if clarification else None
    reader: UserContext = request.with_rights_of(asker).user
    answer = (await view_run(record, services, reader)).answer
    if answer is None:
        raise NotFoundError("The answer was deleted.")
    message = reply_of(answer, language=reply.language, public_address=services.settings.host.public_address)
    note = None if await _is_small_talk(record.run_id, reply.deps) else _note_of(answer, reply.place)
    if note is None:
        return message
    return message.model_copy(update={"text": f"{message.text}\n\n_{note[reply.language]}_"})


async def _is_small_talk(run_id: str, deps: ReplyDependencies) -> bool:
    """Return whether the run read no documents ("Thank you!"), so that its answer has no sources."""
    events = events_of(await deps.services.run_log.read(run_id))
    return any(isinstance(event, ActionEvent) and event.query_type == "CONVERSATION" for event in events)


def _note_of(answer: RunAnswer, place: ReplyPlace) -> messages.Texts | None:
    """Return the note below an answer that was based on fewer documents than usual, or None."""
    if place.alone:
        return messages.OF_PERSON_ALONE
    is_shared = place.conversation.kind != "personal"
    return messages.OF_SEVERAL if is_shared and (answer.abstained or not answer.citations) else None


async def _note_answered(
    message_id: str, step: ReplyStep, place: ReplyPlace, deps: ReplyDependencies
) -> None:
    """Store which run our message shows, for ratings and `/sources`."""
    run_id = step.run_id
    if await deps.services.runs.get(run_id) is None:
        return  # deleted meanwhile
    if message_id:
        key = conversation_key(place.conversation)
        await deps.turns.note_message(key, message_id, run_id, place.owner_id)
    if not await _is_small_talk(run_id, deps):
        await remember(place.conversation, place.owner_id, deps.turns, lambda turn: {"last_run_id": run_id})


class LiveText:
    """Converts a run's events into finished lines for a streamed message."""

    def __init__(self, page_label: str) -> None:
        self._page_label = page_label
        self._step: int | None = None
        self._text = ""
        self._shown = ""

    async def take(self, event: RunEvent, write: Callable[[str], Awaitable[None]]) -> None:
        """Process an event; events without text are ignored."""
        if withdraws_step(event):
            if event.step == self._step:
                self._begin(None)
        elif isinstance(event, TokenEvent):
            if event.step != self._step:
                self._begin(event.step)
            self._text += event.text
            now = finished_lines(self._text, self._page_label) if "\n" in event.text else ""
            if len(now) > len(self._shown) and now.startswith(self._shown):
                addition = now[len(self._shown) :]
                self._shown = now
                await write(addition)

    def _begin(self, step: int | None) -> None:
        self._text, self._step = "", step


async def _events(
    log: RunLog, run_id: str, after: int, seconds: float, when_silent: Callable[[], Awaitable[None]]
) -> AsyncGenerator[tuple[int, RunEvent] | None, None]:
    """Yield events after number `after` with their numbers, and None periodically during silence.

    Ends after `seconds`. `when_silent` may write the last event of a run that has died.

    Raises:
        NotFoundError: the run's log was deleted.
    """
    ends = time.monotonic() + seconds
    number, offset, heard, pause = 0, 0, time.monotonic(), 0.0
    with log.watch(run_id) as tail:
        while True:
            piece = await next_piece(log, run_id, offset, tail, pause)
            offset = piece.next_offset
            for line in piece.public:
                number += 1
                if number > after:
                    yield number, parse_event(line)
            now = time.monotonic()
            if now >= ends:
                return
            first, slowest = _POLLS_S
            if piece.lines:
                heard, pause = now, first
                continue
            yield None
            if now - heard >= _CHECK_AFTER_S:
                await when_silent()
                heard = now
            pause = min(max(pause * 1.5, first), slowest, max(ends - now, 0.0))


class Writer:
    """One message of a reply. Call `finish` at most once, and always call `give_up` at the end."""

    def __init__(self, outbox: BotOutbox, place: ReplyPlace, stream: BotStream | None) -> None:
        self._outbox = outbox
        self._place = place
        self._stream = stream
        self._typed_at = time.monotonic()
        self._has_text = False

    @property
    def is_open(self) -> bool:
        """Whether a message was begun or is expected."""
        return self._stream is not None

    @property
    def message_id(self) -> str:
        """The channel's id of the message that was begun; empty if none."""
        return self._stream.message_id if self._stream is not None else ""

    async def inform(self, line: str) -> None:
        """Show the progress line until there is text."""
        if self._stream is not None and not self._has_text:
            await self._stream.inform(line)

    async def write(self, text: str) -> None:
        """Append to the text."""
        if self._stream is not None:
            self._has_text = True
            await self._stream.write(text)

    async def keep_typing(self) -> None:
        """Show the typing indicator periodically unless the message is streamed."""
        if self._stream is not None and self._stream.is_live:
            return
        if time.monotonic() - self._typed_at >= _TYPING_EVERY_S:
            self._typed_at = time.monotonic()
            with suppress(GroundworkError):
                await self._outbox.typing(self._place.conversation)

    async def finish(self, reply: BotReply) -> str:
        """Send the complete message and return the channel's id. If streaming fails, a new message is sent.

        Raises:
            CallerError: the channel permanently rejects our messages.
            DependencyError: the channel is unreachable.
        """
        stream, self._stream = self._stream, None
        if stream is not None:
            try:
                return await stream.finish(reply)
            except CallerError:
                raise
            except GroundworkError as failed:
                get_logger().warning("channel.stream_failed", error_type=failed.code)
        # Only the first part quotes the message: later ones would appear far above the latest messages.
        reply_to = self._place.reply_to if stream is not None else None
        return await self._outbox.say(self._place.conversation, reply, reply_to)

    async def give_up(self, text: str) -> bool:
        """End an unfinished message with a notice; the answer will be sent as a new one.

        Return whether there was an unfinished message.
        """
        stream, self._stream = self._stream, None
        if stream is not None:
            with suppress(GroundworkError):
                await stream.finish(BotReply(text=text))
        return stream is not None
