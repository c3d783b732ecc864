"""What a person says of an answer: stored with the run, which alone holds the words, and counted.

All channels rate through here. The last rating counts; a run that goes meanwhile takes it along.
"""

from datetime import UTC, datetime

from shared.agents.quality.instruments import count
from shared.agents.quality.recording import key_of
from shared.agents.runs import owned_run
from shared.errors import ConflictError, NotFoundError
from shared.models.feedback import Feedback, FeedbackBody
from shared.models.identity import UserContext
from shared.models.quality import RatingRecord
from shared.models.runs import RunRecord
from shared.services import Services

_ENDED = ("completed", "failed", "cancelled")


async def rate_run(run_id: str, rating: FeedbackBody, user: UserContext, services: Services) -> Feedback:
    """Keep what the user says of one of their own runs, in place of what they said before.

    Raises:
        NotFoundError: the user has no such run.
        ConflictError: it has not ended yet.
    """
    record = await owned_run(run_id, user, services)
    if record.status not in _ENDED:
        raise ConflictError("The run has not ended yet.", "Rate it when its last event has come.")
    said = {**rating.model_dump(), "reasons": tuple(dict.fromkeys(rating.reasons))}
    feedback = Feedback(**said, given_at=datetime.now(UTC))
    counted = _counted(record, feedback)
    await services.quality.put_rating(counted)
    try:
        # The words last: they are stored nowhere but in the run, and go with it.
        await services.runs.set_feedback(record.run_id, feedback)
    except NotFoundError:
        await services.quality.remove_rating(counted.at, counted.key)
        raise _gone(run_id) from None
    await count(counted)
    return feedback


async def feedback_of(run_id: str, user: UserContext, services: Services) -> Feedback:
    """What the user said.

    Raises:
        NotFoundError: the user has no such run, or has said nothing of it.
    """
    record = await owned_run(run_id, user, services)
    if record.feedback is None:
        raise NotFoundError("The run has not been rated.", "PUT a rating or a thumb.")
    return record.feedback


async def withdraw_feedback(run_id: str, user: UserContext, services: Services) -> None:
    """Take it back; twice changes nothing.

    Raises:
        NotFoundError: the user has no such run.
    """
    record = await owned_run(run_id, user, services)
    try:
        await services.runs.set_feedback(record.run_id, None)
    except NotFoundError:
        raise _gone(run_id) from None
    await services.quality.remove_rating(record.created_at, key_of(record.run_id))


def _counted(record: RunRecord, feedback: Feedback) -> RatingRecord:
    return RatingRecord(
        key=key_of(record.run_id),
        at=record.created_at,
        rating=feedback.rating,
        thumb=feedback.thumb,
        reasons=feedback.reasons,
        has_comment=feedback.comment is not None,
    )


def _gone(run_id: str) -> NotFoundError:
    return NotFoundError(f"There is no run {run_id[:64]!r}.", "Its thread was cleared or deleted meanwhile.")
