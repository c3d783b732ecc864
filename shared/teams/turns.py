"""Accepts an activity of a channel: stores it and starts the orchestration of its reply, or stores a rating.

The channel waits for the acknowledgement and sends again what takes too long. So nothing here calls a model
or a directory, or writes to the channel. A rating is stored at once, because its sender waits for that.
"""

from contextlib import suppress

from shared.access.models import UserContext
from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.instances import Instances
from shared.platform.telemetry import get_logger
from shared.platform.tracing import link_to
from shared.quality.recording import rate_run
from shared.quality.store import QualityStore
from shared.runs.models import FeedbackBody
from shared.runs.run_store import RunStore
from shared.teams.context import TeamsServices, channel_clients
from shared.teams.models import BotActivity, BotFeedback, BotIgnored, BotJoined, InvokeBody
from shared.teams.parsing import conversation_key, owner_of, reply_key
from shared.teams.store import BotTurnStore, instance_of, take_down, today

ORCHESTRATION = "reply_in_channel"


async def handle(activity: BotActivity, services: TeamsServices, starter: Instances) -> InvokeBody | None:
    """Do what an activity asks. None = the channel expects no body.

    A duplicate activity finds what the first one began, so it is answered once.

    Raises:
        ConfigurationError: there is no bot.
        DependencyError: it could not be stored; the channel sends it again.
    """
    _, turns = channel_clients(services)
    if isinstance(activity, BotIgnored) or (isinstance(activity, BotJoined) and not activity.is_us):
        return None
    if isinstance(activity, BotFeedback):
        await _rate(activity, services.runs, services.quality, turns)
        return {}
    key, day = reply_key(activity, services.settings.identity.owner_id_key), today()
    await take_down(activity, key, day, services.blobs)
    instance_id = instance_of(key)
    await starter.start(ORCHESTRATION, instance_id, {"reply_key": key, "day": day, **link_to(instance_id)})
    return None


async def _rate(feedback: BotFeedback, runs: RunStore, quality: QualityStore, turns: BotTurnStore) -> None:
    """Store a thumb with the run that our message shows; only its owner's counts."""
    key = conversation_key(feedback.conversation)
    owner = owner_of(feedback.conversation, feedback.sender)
    if feedback.message_id:
        rated = await turns.run_of_message(key, feedback.message_id)
    else:
        # Some clients do not say which message they rate: it is the last answer.
        turn = await turns.get(key, owner)
        rated = (turn.last_run_id, owner) if turn and turn.last_run_id else None
    if rated is None or rated[1] != owner:
        get_logger().info("channel.rating_ignored")
        return
    body = FeedbackBody(thumb=feedback.thumb, comment=feedback.comment.strip() or None)
    with suppress(NotFoundError, ConflictError):  # the run was deleted meanwhile
        await rate_run(rated[0], body, UserContext(user_id=owner), runs, quality)
