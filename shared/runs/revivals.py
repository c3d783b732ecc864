"""How often an orchestration may be begun again that its host lost. Pure.

The host ends an orchestration as `Failed` when its worker dies at the wrong moment. Begun again with the same
id, it has an empty history; the steps that were done give their stored results at once.
"""

from datetime import datetime, timedelta
from typing import Literal

from shared.platform.models import Model

MAX_REVIVALS = 3
REVIVAL_WINDOW = timedelta(minutes=10)  # who asked longer ago has asked again, or gone
_SETTLING = timedelta(seconds=10)  # another one counted it, and begins it again at this moment

Verdict = Literal["revive", "wait", "give_up"]


class RevivalCount(Model):
    """What is kept of an instance that was revived."""

    count: int
    revived_at: datetime


def judge(counted: RevivalCount | None, asked_at: datetime | None, now: datetime) -> Verdict:
    """Whether to begin a failed instance again.

    Args:
        counted: None = it was not revived yet.
        asked_at: when the work was asked for; None = however long ago.
    """
    if counted is not None:
        if now - counted.revived_at < _SETTLING:
            return "wait"
        if counted.count >= MAX_REVIVALS:
            return "give_up"
    began = asked_at or now
    return "revive" if now - began < REVIVAL_WINDOW else "give_up"


def counted_again(counted: RevivalCount | None, now: datetime) -> RevivalCount:
    """The count with one more."""
    return RevivalCount(count=1 + (counted.count if counted else 0), revived_at=now)
