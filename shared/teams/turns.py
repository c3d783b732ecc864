"""Acceptance of incoming activities: each is stored, then the orchestration of its reply is started. Ratings
are only stored.

The channel redelivers activities that aren't acknowledged quickly, so nothing here calls a model or a
directory or writes to the channel. A rating is stored immediately, because the sender waits for the response.
"""

from contextlib import suppress

from shared.access.models import UserContext
from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.instances import Instances
from shared.platform.telemetry import get_logger
from shared.platform.tracing import link_to
from shared.quality.recording import rate_run
from shared.runs.models import FeedbackBody
from shared.teams.context import TeamsServices, channel_clients
from shared.teams.models import BotActivity, BotFeedback, BotIgnored, BotJoined, InvokeBody
from shared.teams.parsing import conversation_key, owner_of, reply_key
from shared.teams.store import BotTurnStore, folder_of, instance_of, store_activity

ORCHESTRATION = "reply_in_channel"


async def handle(activity: BotActivity, services: TeamsServices, starter: Instances) -> InvokeBody | None:
    """Store an activity and start the orchestration of its reply. Return the response body for the channel,
    or None for an empty response.

    A repeated delivery starts no second reply.

    Raises:
        ConfigurationError: no bot is configured.
        DependencyError: the activity could not be stored; the channel will redeliver it.
    """
    _, turns = channel_clients(services)
    if isinstance(activity, BotIgnored) or (isinstance(activity, BotJoined) and not activity.is_us):
        return None
    if isinstance(activity, BotFeedback):
        await _rate(activity, services, turns)
        return {}
    owner_id_key = services.settings.identity.owner_id_key
    key, folder = reply_key(activity, owner_id_key), folder_of(activity, owner_id_key)
    await store_activity(activity, key, folder, services.blobs)
    instance_id = instance_of(key)
    payload = {"reply_key": key, "folder": folder, **link_to(instance_id)}
    await starter.start(ORCHESTRATION, instance_id, payload)
    return None


async def _rate(feedback: BotFeedback, services: TeamsServices, turns: BotTurnStore) -> None:
    """Store a rating for the run whose answer was rated. Ratings by anyone but the owner of the run are
    ignored.
    """
    key = conversation_key(feedback.conversation)
    owner = owner_of(feedback.conversation, feedback.sender)
    if feedback.message_id:
        rated = await turns.run_of_message(key, feedback.message_id)
    else:
        # Some clients omit the message id; the rating then applies to the last answer.
        turn = await turns.get(key, owner)
        rated = (turn.last_run_id, owner) if turn and turn.last_run_id else None
    if rated is None or rated[1] != owner:
        get_logger().info("channel.rating_ignored")
        return
    body = FeedbackBody(thumb=feedback.thumb, comment=feedback.comment.strip() or None)
    # The run was deleted or changed before the rating was stored.
    with suppress(NotFoundError, ConflictError):
        await rate_run(rated[0], body, UserContext(user_id=owner), services)
