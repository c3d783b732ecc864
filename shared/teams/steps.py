"""Performs one step of a reply and returns the next one. The user always gets a reply, if only an apology.

A step may run twice after a crash. Temporary failures are retried; after others the next step apologises.
"""

from collections.abc import Awaitable, Callable, Mapping

from shared.platform.errors import CallerError, GroundworkError, NotFoundError
from shared.platform.telemetry import get_logger
from shared.teams import messages
from shared.teams.context import IncomingMessage, ReplyDependencies
from shared.teams.dispatch import show_help, take
from shared.teams.dropped_files import keep_file, look_at_files, store_files
from shared.teams.models import BotJoined, BotMessage, BotReply, ReplyStep, StepKind, apology
from shared.teams.replies import expire, reply_part
from shared.teams.store import ReplyMemory, read_activity, settle

PAUSES_S = (2.0, 8.0, 30.0)  # between retries; users may ask again after a longer wait (unmeasured)
_MAX_PAUSE_S = 60.0


async def perform_reply(step: ReplyStep, deps: ReplyDependencies) -> ReplyStep:
    """Perform one step and return the next. After an expected failure, the next step is a retry or an
    apology.
    """
    try:
        if step.kind == "follow" and step.part == 0:
            # The run has started, so no retry may process the activity a second time.
            await settle(step, deps.services.blobs)
        following = await _perform(step, deps)
        if following.kind == "end":
            await settle(step, deps.services.blobs)
    except GroundworkError as failed:
        get_logger().warning("channel.step_failed", step=step.kind, error_type=failed.code)
        return _after_failure(step, failed)
    return following


async def _perform(step: ReplyStep, deps: ReplyDependencies) -> ReplyStep:
    if step.kind == "follow":
        return await reply_part(step, deps)
    if step.kind == "expire":
        return await expire(step, deps)
    if step.kind == "apologise":
        return await _apologise(step, deps)
    activity = await read_activity(step, deps.services.blobs)
    if activity is None:  # The activity has already been answered.
        return step.end
    if isinstance(activity, BotJoined):
        greeting = BotMessage(
            activity_id=activity.activity_id, conversation=activity.conversation, sender=activity.sender
        )
        return await show_help(IncomingMessage(greeting, step, deps))
    return await _OF_MESSAGES[step.kind](IncomingMessage(activity, step, deps))


_OF_MESSAGES: Mapping[StepKind, Callable[[IncomingMessage], Awaitable[ReplyStep]]] = {
    "take": take,
    "store_files": store_files,
    "look_at_files": look_at_files,
    "keep_file": keep_file,
}


def _after_failure(step: ReplyStep, failed: GroundworkError) -> ReplyStep:
    may_pass = failed.retryable and not isinstance(failed, CallerError)
    # Retry longer if an answer exists, because losing it is worse than a late apology.
    retries = len(PAUSES_S) if step.kind == "follow" else len(PAUSES_S) - 1
    if may_pass and step.attempt < retries:
        pause_s = max(PAUSES_S[step.attempt], failed.retry_after_s or 0.0)
        again = {"attempt": step.attempt + 1, "delay_s": min(pause_s, _MAX_PAUSE_S)}
        return step.model_copy(update=again)
    return apology(step, failed.code)


async def _apologise(step: ReplyStep, deps: ReplyDependencies) -> ReplyStep:
    """Tell the user that there is no answer, and return the final step. Nothing is sent if the conversation
    is no longer stored.
    """
    following = step.model_copy(update={"kind": "end"})
    activity = await read_activity(step, deps.services.blobs)
    if activity is not None:
        conversation, reply_to = activity.conversation, activity.activity_id
    else:
        try:
            place = await ReplyMemory(deps.services.blobs, step.run_id, step.reply_key).place()
        except NotFoundError:
            return following
        conversation, reply_to = place.conversation, None
    reference = (step.run_id or step.reply_key)[:8]
    text = messages.error_text(step.error, reference, messages.language_of(conversation))
    await deps.outbox.say(conversation, BotReply(text=text), reply_to)
    return following
