"""Budget checks for a sub-agent's calls: how much time, how many tokens and how much money remain.

A call starts only if the budget covers its longest possible reply. Usage therefore exceeds a budget by at
most one call, and only if a model ignores its output limit.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from shared.answering.policy_models import BudgetAllocation
from shared.answering.subagent_models import WarningCode
from shared.platform.language_models.models import ModelUsage

# Maximum extension of a sub-agent's deadline after a worker crash. Workers restart within 2 to 8 s.
CRASH_GRACE = timedelta(seconds=20)
CHARS_PER_TOKEN = 3  # conservative: English has about 4, JSON and German about 3
MARGIN_S = 0.5  # before the deadline, to store the report and notify the parent
LEAST_CALL_S = 0.6  # minimum for a model call (unmeasured)
WORK_TOKENS = 400  # expected output of a work turn; three tool calls need about 150
MOST_WORK_TOKENS = 1500  # maximum, for models whose hidden reasoning tokens count
REPORT_TOKENS = 1800  # expected; ten claims with quotations need about 1,200
MOST_REPORT_TOKENS = 4000  # maximum, for the same reason
LEAST_REPORT_TOKENS = 250  # two claims
FAIR_REPORT_TOKENS = 1000  # reserved for the report during work turns
LEAST_RESULT_TOKENS = 300  # per tool result: one passage
MOST_RESULT_TOKENS = 2500  # per turn; a budget of 30,000 tokens then allows two more searches
MOST_OPENING_TOKENS = 5000  # for the first passages, unless the report follows at once
_REPORT_SHARE_OF_TIME = 0.5  # share of the remaining time, reserved for the report (unmeasured)
_TOOL_SHARE_OF_TIME = 0.4
_MESSAGE_TOKENS = 8  # overhead of each message in a prompt


@dataclass(frozen=True)
class Prices:
    """Model prices in US dollars per million tokens. If `cached_usd` is None, cached input costs as much as
    other input.
    """

    input_usd: float
    output_usd: float
    cached_usd: float | None = None

    def cost_usd(self, usage: ModelUsage) -> float:
        """Return the cost of a model call in US dollars."""
        cached_usd = self.input_usd if self.cached_usd is None else self.cached_usd
        read = (usage.input_tokens - usage.cached_tokens) * self.input_usd + usage.cached_tokens * cached_usd
        return (read + usage.output_tokens * self.output_usd) / 1_000_000


@dataclass(frozen=True)
class Spent:
    """Tokens and money that a sub-agent has used so far."""

    tokens: int = 0
    cost_usd: float = 0.0

    def plus(self, usage: ModelUsage, prices: Prices) -> "Spent":
        """Return the total usage including one more model call."""
        tokens = self.tokens + usage.input_tokens + usage.output_tokens
        return Spent(tokens, self.cost_usd + prices.cost_usd(usage))


@dataclass(frozen=True)
class Allowed:
    """Maximum length of a model reply in tokens. If it is 0, `limit` names the exhausted budget."""

    output_tokens: int
    limit: WarningCode | None = None


def tokens_of(texts: Iterable[str]) -> int:
    """Return an upper bound on the number of prompt tokens for these messages."""
    return sum(-(-len(text) // CHARS_PER_TOKEN) + _MESSAGE_TOKENS for text in texts)


def allowed_output(
    budget: BudgetAllocation, spent: Spent, prompt_tokens: int, prices: Prices, *, wanted: int, least: int
) -> Allowed:
    """Return the number of output tokens that the budget allows, at most `wanted`, or 0 if it allows fewer
    than `least`.
    """
    left = budget.max_child_tokens - spent.tokens - prompt_tokens
    if left < least:
        return Allowed(0, "TOKENS_SPENT")
    money = budget.max_child_cost_usd - spent.cost_usd - prompt_tokens * prices.input_usd / 1_000_000
    affordable = min(left, int(money * 1_000_000 / prices.output_usd)) if prices.output_usd else left
    if money < 0 or affordable < least:
        return Allowed(0, "COST_SPENT")
    return Allowed(min(affordable, wanted))


def allowed_work(budget: BudgetAllocation, spent: Spent, prompt_tokens: int, prices: Prices) -> Allowed:
    """Return the number of output tokens allowed for a work turn, after reserving tokens for tool results and
    the report.

    Args:
        prompt_tokens: size of the turn's prompt; the report's prompt is assumed to have the same size.
    """
    reserved = prompt_tokens + LEAST_RESULT_TOKENS
    after = spent.plus(ModelUsage(input_tokens=prompt_tokens, output_tokens=WORK_TOKENS), prices)
    report = allowed_output(
        budget, after, reserved, prices, wanted=FAIR_REPORT_TOKENS, least=FAIR_REPORT_TOKENS
    )
    if report.limit is not None:
        return report
    left = budget.max_child_tokens - spent.tokens - prompt_tokens - reserved - FAIR_REPORT_TOKENS
    wanted = max(min(left, MOST_WORK_TOKENS), WORK_TOKENS)
    return allowed_output(budget, spent, prompt_tokens, prices, wanted=wanted, least=1)


def result_tokens(budget: BudgetAllocation, spent: Spent, report_tokens: int) -> int:
    """Return the number of tokens available for the tool results of one turn, or 0 if not even one passage
    fits.
    """
    left = budget.max_child_tokens - spent.tokens - report_tokens - FAIR_REPORT_TOKENS
    return min(left, MOST_RESULT_TOKENS) if left >= LEAST_RESULT_TOKENS else 0


def opening_tokens(budget: BudgetAllocation, prompt_tokens: int, *, closing: bool) -> int:
    """Return the number of tokens available for the initial passages.

    Every call reads them: only the report if `closing`, otherwise a work turn and the report, which also need
    room for tool results.

    Args:
        prompt_tokens: size of a prompt without passages.
    """
    if closing:
        return max(budget.max_child_tokens - prompt_tokens - REPORT_TOKENS, LEAST_RESULT_TOKENS)
    fixed = 2 * prompt_tokens + WORK_TOKENS + REPORT_TOKENS
    return min(max((budget.max_child_tokens - fixed) // 3, LEAST_RESULT_TOKENS), MOST_OPENING_TOKENS)


def work_limit_s(remaining_s: float) -> float:
    """Return the time limit of a work turn in seconds, or 0 if there is only time for the report."""
    limit_s = (remaining_s - MARGIN_S) * (1 - _REPORT_SHARE_OF_TIME)
    return limit_s if limit_s >= LEAST_CALL_S else 0.0


def report_limit_s(remaining_s: float) -> float:
    """Return the time limit of the report in seconds, or 0 if too little time remains to write one."""
    limit_s = remaining_s - MARGIN_S
    return limit_s if limit_s >= LEAST_CALL_S else 0.0


def tool_limit_s(remaining_s: float, limit_s: float) -> float:
    """Return the time limit of a tool call in seconds: a share of the remaining time, at most `limit_s`."""
    return max(min(limit_s, (remaining_s - MARGIN_S) * _TOOL_SHARE_OF_TIME), 0.001)
