"""Tests for dividing a sub-agent's budget and time: every work turn leaves enough for a report."""

from contextlib import suppress

import pytest

from shared.answering.budget import Budget, BudgetSpentError, Prices
from shared.answering.subagent_budget import (
    FAIR_REPORT_TOKENS,
    LEAST_CALL_S,
    LEAST_REPORT_TOKENS,
    MARGIN_S,
    MOST_REPORT_TOKENS,
    opening_tokens,
    report_limits,
    report_passage_tokens,
    result_tokens,
    tool_limit_s,
    work_limits,
)

PRICES = Prices(input_usd=0.4, output_usd=1.6)
LONG_S = 60.0


def budget(tokens: int = 0, cost_usd: float = 0.0, max_cost_usd: float = 0.03) -> Budget:
    """Return a budget of 8,000 tokens that is already partly used."""
    return Budget(8000, max_cost_usd, tokens=tokens, cost_usd=cost_usd, prices=PRICES)


def test_work_continues_only_while_a_fair_report_remains() -> None:
    assert work_limits(budget(), 2500, LONG_S).max_output_tokens > 0
    with pytest.raises(BudgetSpentError) as spent:
        work_limits(budget(tokens=2000), 2500, LONG_S)
    assert spent.value.limit == "TOKENS_SPENT"
    with pytest.raises(BudgetSpentError) as spent:
        work_limits(budget(max_cost_usd=0.002), 2500, LONG_S)
    assert spent.value.limit == "COST_SPENT"


def test_report_may_use_all_that_is_left() -> None:
    assert report_limits(budget(), 2000, LONG_S).max_output_tokens == MOST_REPORT_TOKENS
    assert report_limits(budget(tokens=5000), 2500, LONG_S).max_output_tokens == 500
    with pytest.raises(BudgetSpentError) as spent:
        report_limits(budget(tokens=8000 - 2000 - LEAST_REPORT_TOKENS + 1), 2000, LONG_S)
    assert spent.value.limit == "TOKENS_SPENT"


def test_report_names_the_tokens_before_the_time() -> None:
    with pytest.raises(BudgetSpentError) as spent:
        report_limits(budget(), 2000, 0.5)
    assert spent.value.limit == "TIME_OUT"
    with pytest.raises(BudgetSpentError) as spent:
        report_limits(budget(tokens=7900), 2000, 0.5)
    assert spent.value.limit == "TOKENS_SPENT"


def test_evidence_takes_precedence_over_the_report_when_little_is_left() -> None:
    assert report_passage_tokens(budget(), 1000) == 7000 - FAIR_REPORT_TOKENS
    assert report_passage_tokens(budget(tokens=5500), 1000) == 1500 - LEAST_REPORT_TOKENS
    assert report_passage_tokens(budget(tokens=8000), 1000) == 0


def test_results_get_the_tokens_that_the_report_leaves() -> None:
    assert result_tokens(budget(tokens=3000), 3000) == 1000
    assert result_tokens(budget(tokens=4000), 3000) == 0


def test_first_passages_are_fewer_if_they_are_read_twice() -> None:
    assert opening_tokens(8000, 900, closing=True) > 2 * opening_tokens(8000, 900, closing=False) > 1000
    assert opening_tokens(1500, 900, closing=False) > 0


@pytest.mark.parametrize("remaining_s", [-5.0, 0.0, 0.4, 1.0, 1.5, 3.0, 15.0])
def test_no_call_lasts_to_the_deadline(remaining_s: float) -> None:
    for limits_of in (work_limits, report_limits):
        with suppress(BudgetSpentError):
            timeout_s = limits_of(budget(), 1000, remaining_s).timeout_s
            assert LEAST_CALL_S <= timeout_s <= remaining_s - MARGIN_S
    assert 0 < tool_limit_s(remaining_s, 20) <= max(remaining_s, 0.001)


def test_half_of_the_time_is_reserved_for_the_report() -> None:
    assert work_limits(budget(), 1000, 15.5).timeout_s == pytest.approx(7.5)
    assert tool_limit_s(15.5, 5) == 5
