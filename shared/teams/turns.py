"""What a channel brings, at the edge: taken down and acknowledged; the rest is an orchestration's.

Nothing here asks a model or a directory, or writes to the channel: it waits for the answer to this, and sends
again what takes too long. A thumb is stored at once, for its sender waits for that.
"""

from contextlib import suppress

from shared.access.models import UserContext
from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.instances import OrchestrationStarter
from shared.platform.telemetry import get_logger
from shared.platform.tracing import link_to
from shared.quality.recording import rate_run
from shared.quality.store import QualityStore
from shared.runs.models import FeedbackBody
from shared.runs.run_store import RunStore
from shared.teams.context import channel_parts
from shared.teams.models import BotActivity, BotFeedback, BotIgnored, BotJoined, InvokeBody, ReplyStep
from shared.teams.parsing import conversation_key, owner_of, reply_key
from shared.teams.ports import BotTurnStore
from shared.teams.services import TeamsServices
from shared.teams.store import instance_of, take_down, today

ORCHESTRATION = "reply_in_channel"


async def handle(
    activity: BotActivity, services: TeamsServices, starter: OrchestrationStarter
) -> InvokeBody | None:
    """Do what an activity asks. None = nobody waits for a body.

    The same activity again finds what the first one began: it is answered once.

    Raises:
        ConfigurationError: there is no bot.
        DependencyError: it could not be taken down; the channel sends it again.
    """
    _, turns = channel_parts(services.bot_outbox, services.bot_turns)
    if isinstance(activity, BotIgnored) or (isinstance(activity, BotJoined) and not activity.is_us):
        return None
    if isinstance(activity, BotFeedback):
        await _rate(activity, services.runs, services.quality, turns)
        return {}
    key = reply_key(activity)
    step = ReplyStep(reply_key=key, day=today())
    await take_down(activity, key, step.day, services.blobs)
    instance_id = instance_of(key)
    given = {"reply_key": key, "day": step.day, **link_to(instance_id)}
    await starter.start(ORCHESTRATION, instance_id, given)
    return None


async def _rate(feedback: BotFeedback, runs: RunStore, quality: QualityStore, turns: BotTurnStore) -> None:
    """Keep a thumb with the run that our message tells of; only its owner's counts."""
    key = conversation_key(feedback.conversation)
    owner = owner_of(feedback.conversation, feedback.sender)
    if feedback.message_id:
        found = await turns.run_of_message(key, feedback.message_id)
    else:
        # Some clients do not say which message they rate: it is the last answer.
        turn = await turns.get(key, owner)
        found = (turn.last_run_id, owner) if turn and turn.last_run_id else None
    if found is None or found[1] != owner:
        get_logger().info("channel.thumb_unplaced")
        return
    said = FeedbackBody(thumb=feedback.thumb, comment=feedback.comment.strip() or None)
    with suppress(NotFoundError, ConflictError):  # the run was deleted meanwhile
        await rate_run(found[0], said, UserContext(user_id=owner), runs, quality)
