"""Rules for restarting an orchestration that failed because its worker died. Pure.

The host ends an orchestration as `Failed` if its worker dies at the wrong moment. Restarted with the same id,
it has an empty history, but completed steps return their stored results immediately.
"""

from datetime import datetime, timedelta
from typing import Literal

from shared.platform.models import Model

MAX_REVIVALS = 3
REVIVAL_WINDOW = timedelta(minutes=10)  # After that, users have left or repeated their question.
_SETTLING = timedelta(seconds=10)  # another process has just counted a restart and is performing it

Verdict = Literal["revive", "wait", "give_up"]


class RevivalCount(Model):
    """The number of times an orchestration instance has been restarted, and the time of the last restart."""

    count: int
    revived_at: datetime


def judge(counted: RevivalCount | None, asked_at: datetime | None, now: datetime) -> Verdict:
    """Decide whether to restart a failed instance, wait for another process to do so, or give up.

    Args:
        counted: earlier revivals; None = none.
        asked_at: when the work was requested; None = unknown, which counts as now.
    """
    if counted is not None:
        if now - counted.revived_at < _SETTLING:
            return "wait"
        if counted.count >= MAX_REVIVALS:
            return "give_up"
    began = asked_at or now
    return "revive" if now - began < REVIVAL_WINDOW else "give_up"


def increment(counted: RevivalCount | None, now: datetime) -> RevivalCount:
    """Return the restart count increased by one."""
    return RevivalCount(count=1 + (counted.count if counted else 0), revived_at=now)
