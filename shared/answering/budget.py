"""What a sub-agent may still use, asked before every call: time, tokens, money. Pure.

No call begins that its budget does not cover with the longest reply it allows: so counters pass a budget by
one call at most, and only when a model writes more than it is told to.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from shared.answering.policy_models import BudgetAllocation
from shared.answering.subagent_models import WarningCode
from shared.platform.language_models.models import ModelUsage

# Of the time lost with a worker, a sub-agent gets back this much at most. A worker is back within 2 to 8 s.
CRASH_GRACE = timedelta(seconds=20)
CHARS_PER_TOKEN = 3  # errs to the safe side: English has about 4, JSON and German about 3
MARGIN_S = 0.5  # between the end of the last call and the deadline: to store, and to be heard by the parent
LEAST_CALL_S = 0.6  # less time is not worth a call of a model (unmeasured)
WORK_TOKENS = 400  # counted on for a turn of work: three calls of tools have about 150
MOST_WORK_TOKENS = 1500  # allowed where there is room, for models whose hidden reasoning counts as well
REPORT_TOKENS = 1800  # counted on for a report: ten claims with quotations have about 1,200
MOST_REPORT_TOKENS = 4000  # allowed, as above
LEAST_REPORT_TOKENS = 250  # two claims
FAIR_REPORT_TOKENS = 1000  # kept for the report while more is looked for
LEAST_RESULT_TOKENS = 300  # of a tool's result: one passage
MOST_RESULT_TOKENS = 2500  # of the results of one turn: with 30,000 tokens two turns look further
MOST_OPENING_TOKENS = 5000  # of the first passages, unless a report follows at once
_REPORT_SHARE_OF_TIME = 0.5  # of what remains, kept for the report while more is looked for (unmeasured)
_TOOL_SHARE_OF_TIME = 0.4
_MESSAGE_TOKENS = 8  # what frames a message


@dataclass(frozen=True)
class Prices:
    """US dollars per million tokens; cached input costs as other input unless it has a price."""

    input_usd: float
    output_usd: float
    cached_usd: float | None = None

    def cost_usd(self, usage: ModelUsage) -> float:
        """What a call cost."""
        cached_usd = self.input_usd if self.cached_usd is None else self.cached_usd
        read = (usage.input_tokens - usage.cached_tokens) * self.input_usd + usage.cached_tokens * cached_usd
        return (read + usage.output_tokens * self.output_usd) / 1_000_000


@dataclass(frozen=True)
class Spent:
    """What a sub-agent has used so far."""

    tokens: int = 0
    cost_usd: float = 0.0

    def plus(self, usage: ModelUsage, prices: Prices) -> "Spent":
        """With one call more."""
        tokens = self.tokens + usage.input_tokens + usage.output_tokens
        return Spent(tokens, self.cost_usd + prices.cost_usd(usage))


@dataclass(frozen=True)
class Allowed:
    """How long a reply may be; 0 when there must be no call, and then why."""

    output_tokens: int
    limit: WarningCode | None = None


def tokens_of(texts: Iterable[str]) -> int:
    """How many tokens some messages have, at the most."""
    return sum(-(-len(text) // CHARS_PER_TOKEN) + _MESSAGE_TOKENS for text in texts)


def allowed_output(
    budget: BudgetAllocation, spent: Spent, prompt_tokens: int, prices: Prices, *, wanted: int, least: int
) -> Allowed:
    """The length of a reply that tokens and money are left for, at most `wanted`; none below `least`."""
    left = budget.max_child_tokens - spent.tokens - prompt_tokens
    if left < least:
        return Allowed(0, "TOKENS_SPENT")
    money = budget.max_child_cost_usd - spent.cost_usd - prompt_tokens * prices.input_usd / 1_000_000
    affordable = min(left, int(money * 1_000_000 / prices.output_usd)) if prices.output_usd else left
    if money < 0 or affordable < least:
        return Allowed(0, "COST_SPENT")
    return Allowed(min(affordable, wanted))


def allowed_work(budget: BudgetAllocation, spent: Spent, prompt_tokens: int, prices: Prices) -> Allowed:
    """The length of a turn of work that leaves enough for results of tools and a fair report.

    Args:
        prompt_tokens: of the turn's prompt, and as many of the report's as it is now.
    """
    kept = prompt_tokens + LEAST_RESULT_TOKENS
    after = spent.plus(ModelUsage(input_tokens=prompt_tokens, output_tokens=WORK_TOKENS), prices)
    report = allowed_output(budget, after, kept, prices, wanted=FAIR_REPORT_TOKENS, least=FAIR_REPORT_TOKENS)
    if report.limit is not None:
        return report
    left = budget.max_child_tokens - spent.tokens - prompt_tokens - kept - FAIR_REPORT_TOKENS
    wanted = max(min(left, MOST_WORK_TOKENS), WORK_TOKENS)
    return allowed_output(budget, spent, prompt_tokens, prices, wanted=wanted, least=1)


def result_tokens(budget: BudgetAllocation, spent: Spent, report_tokens: int) -> int:
    """Tokens for the results of one turn's calls; 0 when there is no room for any."""
    left = budget.max_child_tokens - spent.tokens - report_tokens - FAIR_REPORT_TOKENS
    return min(left, MOST_RESULT_TOKENS) if left >= LEAST_RESULT_TOKENS else 0


def opening_tokens(budget: BudgetAllocation, prompt_tokens: int, *, closing: bool) -> int:
    """Tokens for the first passages.

    They are read by every call: by the report alone if it follows at once, else by one of work before it,
    and what tools bring has to fit beside them.

    Args:
        prompt_tokens: of a prompt without passages.
    """
    if closing:
        return max(budget.max_child_tokens - prompt_tokens - REPORT_TOKENS, LEAST_RESULT_TOKENS)
    fixed = 2 * prompt_tokens + WORK_TOKENS + REPORT_TOKENS
    return min(max((budget.max_child_tokens - fixed) // 3, LEAST_RESULT_TOKENS), MOST_OPENING_TOKENS)


def work_limit_s(remaining_s: float) -> float:
    """Seconds for a turn of work, of those that remain until the deadline; 0 when only a report fits."""
    limit_s = (remaining_s - MARGIN_S) * (1 - _REPORT_SHARE_OF_TIME)
    return limit_s if limit_s >= LEAST_CALL_S else 0.0


def report_limit_s(remaining_s: float) -> float:
    """Seconds for the report; 0 when none can be written any more."""
    limit_s = remaining_s - MARGIN_S
    return limit_s if limit_s >= LEAST_CALL_S else 0.0


def tool_limit_s(remaining_s: float, limit_s: float) -> float:
    """Seconds for a search; `limit_s` is what it may take at all."""
    return max(min(limit_s, (remaining_s - MARGIN_S) * _TOOL_SHARE_OF_TIME), 0.001)
