"""Token and cost budget of a run, a step or a sub-agent. Pure.

A model call starts only if the budget covers its prompt and a useful reply, and its reply may be as long as
the rest allows. Usage therefore exceeds a budget by at most one call, and only if a model ignores its output
limit.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

from shared.answering.subagent_models import WarningCode
from shared.platform.errors import BudgetExceededError
from shared.platform.language_models.models import ModelUsage
from shared.runs.events import DoneLine, ReservedLine, RunEvent

# Conservative estimate: English text has about 4 characters per token, JSON and German about 3.
LEAST_CHARS_PER_TOKEN = 3
# More tokens than any run can use.
NO_LIMIT = 10**12
# Tokens that the message format adds to each message of a prompt.
_MESSAGE_TOKENS = 8
_MILLION = 1_000_000


class BudgetSpentError(BudgetExceededError):
    """Raised when a budget is too small for another useful model call. `limit` names the exhausted part."""

    def __init__(self, limit: WarningCode = "TOKENS_SPENT") -> None:
        super().__init__("This request has used up its tokens.", "Ask for less at once.", "Ask again.")
        self.limit = limit


@dataclass(frozen=True)
class Prices:
    """Model prices in US dollars per million tokens. If `cached_usd` is None, cached input costs as much as
    other input.
    """

    input_usd: float = 0.0
    output_usd: float = 0.0
    cached_usd: float | None = None

    def cost_usd(self, usage: ModelUsage) -> float:
        """Return the cost of a model call in US dollars."""
        cached_usd = self.input_usd if self.cached_usd is None else self.cached_usd
        read = (usage.input_tokens - usage.cached_tokens) * self.input_usd + usage.cached_tokens * cached_usd
        return (read + usage.output_tokens * self.output_usd) / _MILLION


@dataclass
class Budget:
    """Limits on tokens and cost, with the usage so far and the tokens reserved for calls in progress.

    Attributes:
        max_tokens: limit on input and output tokens together.
        max_cost_usd: limit on the cost in US dollars.
        tokens, cost_usd: used so far.
        reserved_tokens: reserved for calls in progress, so that concurrent calls can't use them twice.
        prices: determine the cost of a call.
    """

    max_tokens: int = NO_LIMIT
    max_cost_usd: float = math.inf
    tokens: int = 0
    cost_usd: float = 0.0
    reserved_tokens: int = 0
    prices: Prices = Prices()

    @property
    def committed_tokens(self) -> int:
        """Tokens used so far, plus those reserved for calls in progress."""
        return self.tokens + self.reserved_tokens

    @property
    def tokens_left(self) -> int:
        """Tokens left for another call or a child; negative if the budget is overdrawn."""
        return self.max_tokens - self.committed_tokens

    @property
    def cost_left_usd(self) -> float:
        """US dollars left; negative if the budget is overdrawn."""
        return self.max_cost_usd - self.cost_usd

    def after(self, usage: ModelUsage) -> Self:
        """Return a copy of the budget that includes the tokens and the cost of one more model call."""
        tokens = self.tokens + usage.input_tokens + usage.output_tokens
        return replace(self, tokens=tokens, cost_usd=self.cost_usd + self.prices.cost_usd(usage))

    def reserve(self, tokens: int) -> None:
        """Reserve tokens for a call that is about to begin."""
        self.reserved_tokens += tokens

    def settle(self, reserved: int, used: int) -> None:
        """Replace the reservation of a finished call by its actual usage. Only the tokens are counted;
        `after` also adds the cost.
        """
        self.reserved_tokens -= reserved
        self.tokens += used

    def reply_tokens(self, prompt_tokens: int, *, wanted: int, least: int) -> int:
        """Return the maximum number of tokens in the reply to a prompt of `prompt_tokens`. It is at most
        `wanted`.

        Raises:
            BudgetSpentError: fewer than `least` tokens are left after the prompt, or can be paid for.
        """
        left = self.tokens_left - prompt_tokens
        if left < least:
            raise BudgetSpentError("TOKENS_SPENT")
        money_usd = self.cost_left_usd - prompt_tokens * self.prices.input_usd / _MILLION
        output_usd = self.prices.output_usd
        affordable = int(min(left, money_usd * _MILLION / output_usd)) if output_usd else left
        if money_usd < 0 or affordable < least:
            raise BudgetSpentError("COST_SPENT")
        return min(affordable, wanted)

    def share(self, count: int, *, least_tokens: int | None = None) -> Self:
        """Return the budget for each of `count` children, which get equal shares of the remaining tokens and
        money.

        Args:
            least_tokens: minimum tokens of a share, even if all shares together then exceed the budget; None
                = no minimum.
        """
        tokens = self.tokens_left // count
        if least_tokens is not None:
            tokens = max(tokens, least_tokens)
        return replace(
            self,
            max_tokens=tokens,
            max_cost_usd=self.cost_left_usd / count,
            tokens=0,
            cost_usd=0.0,
            reserved_tokens=0,
        )

    def max_shares(self, least_tokens: int, least_cost_usd: float) -> int:
        """Return into how many shares the rest of the budget can be divided so that each has at least these
        amounts.

        Args:
            least_cost_usd: 0 = the cost doesn't limit the number.
        """
        by_tokens = self.tokens_left // least_tokens
        if least_cost_usd <= 0 or math.isinf(self.max_cost_usd):
            return by_tokens
        return min(by_tokens, int(self.cost_left_usd / least_cost_usd))


def max_tokens_of(texts: Iterable[str]) -> int:
    """Return an upper bound on the number of prompt tokens that messages with these texts take."""
    return sum(-(-len(text) // LEAST_CHARS_PER_TOKEN) + _MESSAGE_TOKENS for text in texts)


def tokens_in(lines: Iterable[RunEvent]) -> int:
    """Return the number of tokens used according to journal lines. For a turn that never completed, the
    reserved tokens count as used.
    """
    used: dict[tuple[int, int | None, int | None], int] = {}
    for line in lines:
        if isinstance(line, ReservedLine):
            used[line.step, line.child, line.turn] = line.tokens
        elif isinstance(line, DoneLine):
            used[line.step, line.child, line.turn] = int(line.result.get("tokens", 0))
    return sum(used.values())
