"""Divides a sub-agent's budget and time between work turns, tool results and the report. Pure.

Every work turn leaves enough for a report, because only the report counts.
"""

from datetime import timedelta

from shared.answering.budget import Budget, BudgetSpentError
from shared.platform.language_models.models import CallLimits, ModelUsage

# Maximum extension of a sub-agent's deadline after a worker crash. Workers restart within 2 to 8 s.
CRASH_GRACE = timedelta(seconds=20)
# Seconds before the deadline that are needed to store the report and notify the parent.
MARGIN_S = 0.5
# Minimum time for a model call. Not measured.
LEAST_CALL_S = 0.6
# Expected output of a work turn. Three tool calls need about 150 tokens.
WORK_TOKENS = 400
# Maximum output of a work turn, with room for hidden reasoning tokens, which some models count as output.
MOST_WORK_TOKENS = 1500
# Expected output of a report. Ten claims with quotations need about 1,200 tokens.
REPORT_TOKENS = 1800
# Maximum output of a report, with room for hidden reasoning tokens, which some models count as output.
MOST_REPORT_TOKENS = 4000
# Minimum output of a report, enough for two claims.
LEAST_REPORT_TOKENS = 250
# Output tokens that work turns must leave for the report.
FAIR_REPORT_TOKENS = 1000
# Minimum size of a tool result, enough for one passage.
LEAST_RESULT_TOKENS = 300
# Maximum size of the tool results of one turn. With a budget of 30,000 tokens, two more searches are then
# possible.
MOST_RESULT_TOKENS = 2500
# Maximum size of the initial passages, unless the report is written immediately.
MOST_OPENING_TOKENS = 5000
# Share of the remaining time that is reserved for the report. Not measured.
_REPORT_SHARE_OF_TIME = 0.5
_TOOL_SHARE_OF_TIME = 0.4


def work_limits(budget: Budget, prompt_tokens: int, remaining_s: float) -> CallLimits:
    """Return the limits of a work turn's model call. They leave enough tokens and time for tool results and
    the report.

    Args:
        prompt_tokens: size of the turn's prompt; the report's prompt is assumed to have the same size.
        remaining_s: seconds until the deadline.

    Raises:
        BudgetSpentError: only a report is still possible.
    """
    timeout_s = _call_s((remaining_s - MARGIN_S) * (1 - _REPORT_SHARE_OF_TIME))
    reserved = prompt_tokens + LEAST_RESULT_TOKENS
    after = budget.after(ModelUsage(input_tokens=prompt_tokens, output_tokens=WORK_TOKENS))
    after.reply_tokens(reserved, wanted=FAIR_REPORT_TOKENS, least=FAIR_REPORT_TOKENS)
    left = budget.tokens_left - prompt_tokens - reserved - FAIR_REPORT_TOKENS
    target = max(min(left, MOST_WORK_TOKENS), WORK_TOKENS)
    output_tokens = budget.reply_tokens(prompt_tokens, wanted=target, least=1)
    return CallLimits(timeout_s=timeout_s, max_retries=0, max_output_tokens=output_tokens)


def report_limits(budget: Budget, prompt_tokens: int, remaining_s: float) -> CallLimits:
    """Return the limits of the model call that writes the report.

    Args:
        remaining_s: seconds until the deadline.

    Raises:
        BudgetSpentError: too few tokens, too little money or too little time is left.
    """
    output_tokens = budget.reply_tokens(prompt_tokens, wanted=MOST_REPORT_TOKENS, least=LEAST_REPORT_TOKENS)
    timeout_s = _call_s(remaining_s - MARGIN_S)
    return CallLimits(timeout_s=timeout_s, max_retries=0, max_output_tokens=output_tokens)


def report_passage_tokens(budget: Budget, bare_prompt_tokens: int) -> int:
    """Return the number of tokens that evidence may take in the prompt of the report.

    Args:
        bare_prompt_tokens: size of the prompt without evidence.
    """
    left = budget.tokens_left - bare_prompt_tokens
    # Reserve output for an average report. If little is left, evidence takes precedence over a long report.
    reserved = FAIR_REPORT_TOKENS if left > 2 * FAIR_REPORT_TOKENS else LEAST_REPORT_TOKENS
    return max(left - reserved, 0)


def result_tokens(budget: Budget, report_tokens: int) -> int:
    """Return the number of tokens available for the tool results of one turn, or 0 if not even one passage
    would fit.

    Args:
        report_tokens: size of the report's prompt without these results.
    """
    left = budget.tokens_left - report_tokens - FAIR_REPORT_TOKENS
    return min(left, MOST_RESULT_TOKENS) if left >= LEAST_RESULT_TOKENS else 0


def opening_tokens(max_tokens: int, prompt_tokens: int, *, closing: bool) -> int:
    """Return the number of tokens that the initial passages may take.

    Every call reads them: only the report if `closing`, otherwise a work turn and the report, which also need
    room for tool results.

    Args:
        max_tokens: limit of the sub-agent.
        prompt_tokens: size of a prompt without passages.
    """
    if closing:
        return max(max_tokens - prompt_tokens - REPORT_TOKENS, LEAST_RESULT_TOKENS)
    fixed = 2 * prompt_tokens + WORK_TOKENS + REPORT_TOKENS
    return min(max((max_tokens - fixed) // 3, LEAST_RESULT_TOKENS), MOST_OPENING_TOKENS)


def tool_limit_s(remaining_s: float, limit_s: float) -> float:
    """Return the time limit of a tool call in seconds, which is a share of the remaining time but at most
    `limit_s`.
    """
    return max(min(limit_s, (remaining_s - MARGIN_S) * _TOOL_SHARE_OF_TIME), 0.001)


def _call_s(timeout_s: float) -> float:
    """Return `timeout_s`, or raise `BudgetSpentError` if it is too short for a model call."""
    if timeout_s < LEAST_CALL_S:
        raise BudgetSpentError("TIME_OUT")
    return timeout_s
