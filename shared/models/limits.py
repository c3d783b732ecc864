"""What one person has used up, and how much that may be."""

from datetime import datetime

from shared.models.base import Model


class Slot(Model):
    """Work of theirs that is going on: a run or a summary. Past `until` it counts no more, come what may."""

    work_id: str
    until: datetime


class UserLimits(Model):
    """The one row that all instances share about a person.

    Attributes:
        whole_at: when their allowance of calls is whole again; None = it is.
        revision: changes with every write; None before the first.
    """

    whole_at: datetime | None = None
    slots: tuple[Slot, ...] = ()
    revision: str | None = None


class LimitRules(Model):
    """How much it may be. 0 = without limit."""

    calls_per_minute: int
    concurrent_runs: int


class Allowance(Model):
    """What callers are told of their calls.

    Attributes:
        limit: calls in a minute.
        remaining: calls that could be made at once.
        reset_s: whole seconds until the allowance is whole again.
    """

    limit: int
    remaining: int
    reset_s: int
