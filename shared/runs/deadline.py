"""A run's time as its steps see it: settings cut by what remains, at the moment when it is asked for."""

from dataclasses import dataclass
from typing import Literal

Part = Literal["plan", "resolve", "gather", "embed", "write", "repair"]

# Shares of what remains when the part begins; those of models that hang add up, so that with both planning
# and embedding hanging more than half is left for writing. Unmeasured with real models.
SHARES: dict[Part, float] = {
    "plan": 0.3,  # a plan takes a real model 1-3 s; 7 of 25 s
    "resolve": 0.3,
    "gather": 0.4,  # searches take 0.2 s
    "embed": 0.2,  # a part of gathering: words alone find enough to continue
    "write": 1.0,
    "repair": 0.25,  # of a quotation, while the answer waits; three at most
}

# For the end: the answer is shown (0.05 s locally) and committed (0.06 s); ten times that on a busy machine.
_KEPT_S = 1.5
_KEPT_SHARE = 0.25  # of budgets so short that this would be most of them
_CLOSING_S = 0.25  # between the model's last word and the stored answer: marks, conflicts, one append
_LEAST_S = 0.05  # a limit of 0 would be refused by some clients; nothing answers in less
_HURRY_S = 8.0  # with less nothing optional is begun: search again, put in order; unmeasured
_HURRY_SHARE = 0.3  # of budgets so short that this would be most of them
_SEARCH_LEAST_S = 2.0  # an answer without any search would be a lie: a run that is late searches all the same
_SEARCHES: frozenset[Part] = frozenset({"resolve", "gather"})

# With all of this and no answer a search service is down or hangs; with less, its run was late. A starved
# machine took 2 to 4 s where 0.2 are usual.
_FAIR_S = 5.0
_FAIR_SHARE = 0.2  # of budgets so short that this would be most of them

# Seconds that a further try of a step must have, with all that follows it; else the run continues without.
_NEEDED_S: dict[str, float] = {"prepare": 8.0, "turn": 3.0}
_NEEDED_OTHERWISE_S = 2.0


@dataclass(frozen=True)
class TimeLeft:
    """What is left of a run's time at one moment, in seconds. Below 0 the deadline has passed.

    Attributes:
        remaining_s: until the run's deadline.
        total_s: from its beginning to its deadline.
    """

    remaining_s: float
    total_s: float

    @property
    def usable_s(self) -> float:
        """Without what is kept for the end."""
        return self.remaining_s - min(_KEPT_S, self.total_s * _KEPT_SHARE)

    @property
    def is_short(self) -> bool:
        """Whether nothing optional is to be begun."""
        return self.remaining_s < min(_HURRY_S, self.total_s * _HURRY_SHARE)

    @property
    def fair_search_s(self) -> float:
        """So much is enough for the searches of a step, on a busy machine, too."""
        return min(_FAIR_S, self.total_s * _FAIR_SHARE)

    def allowed_s(self, part: Part, limit_s: float) -> float:
        """How long a part that begins now may take; `limit_s` is its setting."""
        closing_s = _CLOSING_S if part == "write" else 0.0
        share_s = (self.usable_s - closing_s) * SHARES[part]
        least_s = _SEARCH_LEAST_S if part in _SEARCHES else _LEAST_S
        if part == "gather":  # without evidence the time behind it is worth nothing
            least_s = max(least_s, min(self.fair_search_s, self.usable_s))
        return min(limit_s, max(share_s, least_s))

    @property
    def may_write(self) -> bool:
        """Whether there is time to ask a model for anything more."""
        return self.usable_s > _CLOSING_S + _LEAST_S


def has_time_for_retry(phase: str, delay_s: float, remaining_s: float | None) -> bool:
    """Whether a step that failed may be tried again after `delay_s`; None = the time is unknown."""
    needed_s = _NEEDED_S.get(phase, _NEEDED_OTHERWISE_S)
    return remaining_s is None or remaining_s - delay_s >= needed_s
