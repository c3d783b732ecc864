"""What all instances share about sub-agents at work: one row, changed by compare-and-swap."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from shared.models.base import Model

Count = Annotated[int, Field(ge=0)]
Circuit = Literal["closed", "open", "half_open"]


class Lease(Model):
    """A slot that one sub-agent holds until it is settled, at the longest until it expires.

    Attributes:
        begun: it is at work; until then it waits for its first turn.
        is_probe: it was let through a paused circuit, to see whether sub-agents work again.
    """

    child_id: str
    expires_at: datetime
    begun: bool = False
    is_probe: bool = False


class ControlState(Model):
    """The row.

    Attributes:
        outcomes: of the newest sub-agents since the circuit was last closed, oldest first; True = it worked.
        opened_at: since when the circuit is open; None = closed.
        revision: the store's; None = there is no row yet.
    """

    leases: tuple[Lease, ...] = ()
    outcomes: tuple[bool, ...] = ()
    opened_at: datetime | None = None
    revision: str | None = None


class ControlRules(Model):
    """Limits, from the settings of the same names.

    Attributes:
        failure_share: from this share of failures on the circuit opens, over `window` outcomes at most.
        cooldown_s: how long it is open before one sub-agent is tried.
        max_active: slots.
    """

    failure_share: float
    window: int
    cooldown_s: float
    max_active: int


class ControlView(Model):
    """What the policy is told.

    Attributes:
        circuit_closed: sub-agents may be started; also after the pause, for the one that is tried.
        active, waiting: slots whose sub-agent has begun, and those whose has not.
        free: how many more may be granted now: at most 1 while the circuit is tried.
    """

    circuit_closed: bool
    active: Count
    waiting: Count
    free: Count


class ControlReport(Model):
    """What an operator is told.

    Attributes:
        circuit: `open` = paused; `half_open` = one is tried, or the next one will be.
        outcomes, failures: of the window.
    """

    circuit: Circuit
    opened_at: datetime | None
    outcomes: Count
    failures: Count
    active: Count
    waiting: Count
    max_active: Count
