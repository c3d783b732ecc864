"""Acting: one step of a reply, and which one is next. Whatever happens, whoever wrote hears of it.

A step may run twice after a crash. What fails and may pass is tried again; else the next step says so.
"""

from collections.abc import Awaitable, Callable, Mapping

from shared.platform.errors import CallerError, GroundworkError, NotFoundError
from shared.platform.telemetry import get_logger
from shared.teams import messages
from shared.teams.context import ChannelWorld, Visit
from shared.teams.dispatch import as_message, greet, take
from shared.teams.dropped_files import look_at_files, store_files
from shared.teams.models import BotConversation, BotJoined, BotReply, ReplyStep, StepKind, sorry
from shared.teams.parsing import language_of
from shared.teams.replying import expire, reply_part
from shared.teams.store import ReplyMemory, settle, taken

PAUSES_S = (2.0, 8.0, 30.0)  # together about what people wait before they ask again (unmeasured)
_MAX_PAUSE_S = 60.0


async def perform_reply(step: ReplyStep, world: ChannelWorld) -> ReplyStep:
    """Perform one step; expected failures come back as the step that follows them."""
    try:
        if step.kind == "follow" and step.part == 0:
            await settle(step, world.services.blobs)  # nobody takes it a second time any more
        following = await _perform(step, world)
        if following.kind == "end":
            await settle(step, world.services.blobs)
    except GroundworkError as failed:
        get_logger().warning("channel.step_failed", step=step.kind, error_type=failed.code)
        return _after_failure(step, failed)
    return following


async def _perform(step: ReplyStep, world: ChannelWorld) -> ReplyStep:
    if (without_words := _WITHOUT_WORDS.get(step.kind)) is not None:
        return await without_words(step, world)
    said = await taken(step, world.services.blobs)
    if said is None:  # answered already
        return step.model_copy(update={"kind": "end"})
    visit = Visit(as_message(said), step, world)
    if isinstance(said, BotJoined):
        return await greet(visit)
    return await _OF_MESSAGES[step.kind](visit)


def _after_failure(step: ReplyStep, failed: GroundworkError) -> ReplyStep:
    may_pass = failed.retryable and not isinstance(failed, CallerError)
    # An answer that is there is worth a longer wait than the news that there will be none.
    tries = len(PAUSES_S) if step.kind == "follow" else len(PAUSES_S) - 1
    if may_pass and step.attempt < tries:
        pause_s = max(PAUSES_S[step.attempt], failed.retry_after_s or 0.0)
        again = {"attempt": step.attempt + 1, "delay_s": min(pause_s, _MAX_PAUSE_S)}
        return step.model_copy(update=again)
    return sorry(step, failed.code)


async def _apologise(step: ReplyStep, world: ChannelWorld) -> ReplyStep:
    conversation, reply_to = await _where(step, world)
    if conversation is not None:
        reference = (step.run_id or step.reply_key)[:8]
        text = messages.error_text(step.error, reference, language_of(conversation))
        await world.outbox.say(conversation, BotReply(text=text), reply_to)
    return step.model_copy(update={"kind": "end"})


async def _where(step: ReplyStep, world: ChannelWorld) -> tuple[BotConversation | None, str | None]:
    """Where the reply belongs, if that is still known."""
    said = await taken(step, world.services.blobs)
    if said is not None:
        return said.conversation, said.activity_id
    try:
        place = await ReplyMemory(world.services.blobs, step.run_id, step.reply_key).place()
    except NotFoundError:
        return None, None
    return place.conversation, None


_WITHOUT_WORDS: Mapping[StepKind, Callable[[ReplyStep, ChannelWorld], Awaitable[ReplyStep]]] = {
    "follow": reply_part,
    "expire": expire,
    "apologise": _apologise,
}

_OF_MESSAGES: Mapping[StepKind, Callable[[Visit], Awaitable[ReplyStep]]] = {
    "take": take,
    "store_files": store_files,
    "look_at_files": look_at_files,
}
