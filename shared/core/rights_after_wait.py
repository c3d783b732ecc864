"""As whom a run goes on that waited for a person. Pure; fails closed.

It may have waited for days, and whoever asked may have left their groups since, or the organisation.
"""

from datetime import datetime, timedelta

from shared.models.clarification import Choice
from shared.models.identity import UserContext
from shared.models.runs import RunRequest

# As long as an identity provider's token tells the same groups: Entra ID's end after 60 to 90 minutes.
RIGHTS_HOLD = timedelta(hours=1)


def asker_after_wait(request: RunRequest, choice: Choice, now: datetime) -> UserContext | None:
    """Whoever answered; without an answer for long, the same person with no group, as none is known any more.

    None = as the question came: nobody answered, and it is not long ago.
    """
    if choice.asker is not None or now - request.created_at <= RIGHTS_HOLD:
        return choice.asker
    return UserContext(user_id=request.user.user_id, name=request.user.name)
