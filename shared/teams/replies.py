"""Follows a run and sends its answer to the conversation, streamed if the channel supports it.

A duplicate is worse than a delay, and a missing answer worse than both. So an attempt that follows a crashed
one replaces the partial message with the complete one or sends it again. It sends nothing if the complete
message was already sent.
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

# Maximum number of messages per run: over an hour, far beyond the deadline of any run.
MAX_PARTS = 40
_POLLS_S = (0.05, 0.5)  # shortest and longest pause; messages are updated once a second
# Seconds without events after which the orchestration's status is checked.
_CHECK_AFTER_S = 5.0
_TYPING_EVERY_S = 5.0  # clients show the typing indicator for a few seconds
_AFTER_EXPIRY_S = 60.0  # grace period for the run to notice that its clarification expired


@dataclass(frozen=True)
class RunReply:
    """The state of the reply to one run: destination, stored state and the message being written."""

    step: ReplyStep
    deps: ReplyDependencies
    place: ReplyPlace
    memory: ReplyMemory
    writer: "Writer"

    @property
    def language(self) -> Language:
        """The language of the bot's fixed texts in this conversation."""
        return messages.language_of(self.place.conversation)


async def reply_part(step: ReplyStep, deps: ReplyDependencies) -> ReplyStep:
    """Follow the run for a limited time and send its answer or clarification. Return the next step.

    Raises:
        NotFoundError: the run was erased.
        CallerError: the channel permanently rejects our messages.
        DependencyError: the channel is unreachable.
    """
    memory = ReplyMemory(deps.services.blobs, step.run_id, step.reply_key)
    place = await memory.place()
    if (previous := await memory.sent_message_id(step.ask_step, "sent")) is not None:
        await _record_message(previous, step, place, deps)
        return step.end
    is_first = step.part == 0 and await memory.begin(step.ask_step)
    partial = "" if is_first or step.part else await memory.sent_message_id(step.ask_step, "growing") or ""
    is_shown = is_first or partial
    stream = await deps.outbox.begin(place.conversation, place.reply_to, partial) if is_shown else None
    writer = Writer(deps.outbox, place, stream)
    reply = RunReply(step, deps, place, memory, writer)
    try:
        return await _follow_run(reply)
    finally:
        # `give_up` does nothing if the message is already finished.
        if await writer.give_up(messages.GOING_ON[reply.language]):
            await memory.note(step.ask_step, "growing", "")


async def expire(step: ReplyStep, deps: ReplyDependencies) -> ReplyStep:
    """Continue the reply after a clarification timed out: the run has continued without an answer from the
    user.
    """
    services = deps.services
    record = await services.runs.get(step.run_id)
    if record is None or record.status == "cancelled":
        return step.end
    _, reply = await clarification_of(step.run_id, step.ask_step, services.run_log)
    if reply is not None and reply.choice.said:
        # The user answered in the conversation, where another reply shows the result, or through the API.
        return step.end
    memory = ReplyMemory(services.blobs, step.run_id, step.reply_key)
    if not await _has_access(await memory.place(), deps) or not await memory.claim(step.ask_step):
        return step.end
    return step.model_copy(update={"kind": "follow", "part": 1, "delay_s": 0.0, "attempt": 0})


async def _has_access(place: ReplyPlace, deps: ReplyDependencies) -> bool:
    """Return whether the user still has access, which may have changed in the days since the question."""
    if place.owner_id.startswith(NOBODYS):
        return True
    asker = BotSender(channel_user_id=place.owner_id, object_id=place.owner_id)
    try:
        await deps.find_user(place.conversation, asker)
    except (NotAuthenticatedError, AccessDeniedError):
        return False
    return True


async def _follow_run(reply: RunReply) -> ReplyStep:
    """Show the progress and text of a run until it ends, asks a question or uses up the time for one message.
    Return the next step.
    """
    step, deps, writer = reply.step, reply.deps, reply.writer
    text, number, line = (
        LiveText(messages.PAGE[reply.language]),
        step.after,
        messages.BEGINNING[reply.language],
    )
    await writer.inform(line)  # Send the first progress line immediately, because planning may take seconds.

    async def close_if_dead() -> None:
        if not await deps.orchestrations.is_alive(step.run_id):
            await close_dead_run(step.run_id, "The run was stopped before it had an answer.", deps.services)

    seconds = deps.services.settings.bot.stream_seconds
    events = _events(deps.services.run_log, step.run_id, step.after, seconds, close_if_dead)
    async with aclosing(events):
        stored_id = ""
        async for entry in events:
            if writer.message_id != stored_id:
                # Store the id as soon as it is known, because a retry after a crash replaces this message.
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
    """Finish the current message with a notice, and return a step that continues in a new one."""
    part = reply.step.part
    if part >= MAX_PARTS:
        raise DefectError("the run has no end event")
    if reply.writer.is_open:
        await reply.writer.finish(BotReply(text=messages.GOING_ON[reply.language]))
    update = {"after": number, "part": part + 1, "attempt": 0, "delay_s": 0.0}
    return reply.step.model_copy(update=update)


async def _show_progress(event: RunEvent, line: str, reply: RunReply) -> str:
    """Show the progress line of an event if it differs from `line`. Return the line now shown."""
    now = messages.progress_line(event, reply.language) or line
    if now != line:
        await reply.writer.inform(now)
    return now


async def _send_clarification(event: AskUserEvent, number: int, reply: RunReply) -> ReplyStep:
    """Send the run's clarification with its options as buttons, and return a step that runs after it
    expires.
    """
    place, run_id = reply.place, reply.step.run_id
    clarification = Clarification.model_validate(event.model_dump(include=set(Clarification.model_fields)))
    # Stored before the buttons appear, because a click must find the waiting run.
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
    """Send the answer of a finished run, or an error message if it has none."""
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
    await _record_message(message_id, step, reply.place, deps)
    return step.end


async def _answer(record: RunRecord, reply: RunReply) -> BotReply:
    """Return the reply that shows the run's answer, read with the permissions that applied when the run wrote
    it.
    """
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
    """Return whether the run was small talk ("Thank you!"), which searches no documents and has no
    sources.
    """
    events = events_of(await deps.services.run_log.read(run_id))
    return any(isinstance(event, ActionEvent) and event.query_type == "CONVERSATION" for event in events)


def _note_of(answer: RunAnswer, place: ReplyPlace) -> messages.Texts | None:
    """Return a note that the answer was based on fewer documents than usual, or None if no note is needed."""
    if place.alone:
        return messages.OF_PERSON_ALONE
    is_shared = place.conversation.kind != "personal"
    return messages.OF_SEVERAL if is_shared and (answer.abstained or not answer.citations) else None


async def _record_message(
    message_id: str, step: ReplyStep, place: ReplyPlace, deps: ReplyDependencies
) -> None:
    """Record which run a bot message shows, so that ratings and `/sources` can refer to it."""
    run_id = step.run_id
    if await deps.services.runs.get(run_id) is None:
        return  # The run was deleted before its reply was recorded.
    if message_id:
        key = conversation_key(place.conversation)
        await deps.turns.note_message(key, message_id, run_id, place.owner_id)
    if not await _is_small_talk(run_id, deps):
        await remember(place.conversation, place.owner_id, deps.turns, lambda turn: {"last_run_id": run_id})


class LiveText:
    """Converter from the events of a run to complete lines of Markdown for a streamed message."""

    def __init__(self, page_label: str) -> None:
        self._page_label = page_label
        self._step: int | None = None
        self._text = ""
        self._shown = ""

    async def take(self, event: RunEvent, write: Callable[[str], Awaitable[None]]) -> None:
        """Process an event and pass newly completed lines to `write`. Events without text are ignored."""
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
    """Yield numbered events of the run after number `after`, and None after each poll that found nothing.

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
    """Writer of one message, streamed if the channel supports it. Call `finish` at most once, and `give_up`
    in any case.
    """

    def __init__(self, outbox: BotOutbox, place: ReplyPlace, stream: BotStream | None) -> None:
        self._outbox = outbox
        self._place = place
        self._stream = stream
        self._typed_at = time.monotonic()
        self._has_text = False

    @property
    def is_open(self) -> bool:
        """Whether this attempt has a stream that is not yet finished."""
        return self._stream is not None

    @property
    def message_id(self) -> str:
        """The channel's id of the streamed message, or "" if there is none."""
        return self._stream.message_id if self._stream is not None else ""

    async def inform(self, line: str) -> None:
        """Show a progress line. Ignored once text has been written."""
        if self._stream is not None and not self._has_text:
            await self._stream.inform(line)

    async def write(self, text: str) -> None:
        """Append to the streamed text. Ignored if the message isn't streamed."""
        if self._stream is not None:
            self._has_text = True
            await self._stream.write(text)

    async def keep_typing(self) -> None:
        """Renew the typing indicator every few seconds, unless the message is streamed."""
        if self._stream is not None and self._stream.is_live:
            return
        if time.monotonic() - self._typed_at >= _TYPING_EVERY_S:
            self._typed_at = time.monotonic()
            with suppress(GroundworkError):
                await self._outbox.typing(self._place.conversation)

    async def finish(self, reply: BotReply) -> str:
        """Send the complete reply and return the channel's message id. If streaming fails, send a new message
        instead.

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
        # Quote the user's message only in the first part. The quotations of later parts would refer far back.
        reply_to = self._place.reply_to if stream is not None else None
        return await self._outbox.say(self._place.conversation, reply, reply_to)

    async def give_up(self, text: str) -> bool:
        """End an unfinished message with the notice `text`. The answer will follow in a new message.

        Return whether there was an unfinished message.
        """
        stream, self._stream = self._stream, None
        if stream is not None:
            with suppress(GroundworkError):
                await stream.finish(BotReply(text=text))
        return stream is not None
