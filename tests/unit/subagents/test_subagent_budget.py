"""What a sub-agent may still use: no call beyond its time, tokens and money."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.answering.budget import (
    LEAST_CALL_S,
    LEAST_REPORT_TOKENS,
    MARGIN_S,
    REPORT_TOKENS,
    Prices,
    Spent,
    allowed_output,
    allowed_work,
    opening_tokens,
    report_limit_s,
    result_tokens,
    tokens_of,
    tool_limit_s,
    work_limit_s,
)
from shared.answering.policy_models import BudgetAllocation
from shared.platform.language_models.models import ModelUsage

PRICES = Prices(input_usd=0.4, output_usd=1.6)


@pytest.mark.parametrize(("cached_usd", "cost_usd"), [(None, 0.72), (0.1, 0.54)])
def test_cached_tokens_cost_their_own_price(cached_usd: float | None, cost_usd: float) -> None:
    usage = ModelUsage(input_tokens=1_000_000, output_tokens=200_000, cached_tokens=600_000)
    assert Prices(0.4, 1.6, cached_usd).cost_usd(usage) == pytest.approx(cost_usd)


BUDGET = BudgetAllocation(max_child_tokens=8000, max_child_cost_usd=0.03)


def test_a_reply_is_as_long_as_wanted_where_there_is_room() -> None:
    allowed = allowed_output(BUDGET, Spent(), 2000, PRICES, wanted=REPORT_TOKENS, least=250)
    assert (allowed.output_tokens, allowed.limit) == (REPORT_TOKENS, None)


def test_a_reply_is_shrunk_to_what_remains() -> None:
    allowed = allowed_output(BUDGET, Spent(tokens=5000), 2500, PRICES, wanted=1800, least=250)
    assert allowed.output_tokens == 500


def test_no_call_below_a_useful_minimum() -> None:
    spent = Spent(tokens=8000 - 2000 - LEAST_REPORT_TOKENS + 1)
    assert allowed_output(BUDGET, spent, 2000, PRICES, wanted=1800, least=250).limit == "TOKENS_SPENT"


def test_money_limits_as_tokens_do() -> None:
    spent = Spent(tokens=0, cost_usd=0.03 - 2000 * 0.4e-6 - 300 * 1.6e-6)
    assert 299 <= allowed_output(BUDGET, spent, 2000, PRICES, wanted=1800, least=250).output_tokens <= 300
    assert allowed_output(BUDGET, spent, 2100, PRICES, wanted=1800, least=300).limit == "COST_SPENT"
    overdrawn = Spent(cost_usd=0.04)
    assert allowed_output(BUDGET, overdrawn, 10, PRICES, wanted=1, least=1).limit == "COST_SPENT"


def test_a_model_that_costs_nothing_is_limited_by_tokens_alone() -> None:
    free = BudgetAllocation(max_child_tokens=8000, max_child_cost_usd=0.0)
    assert allowed_output(free, Spent(), 1000, Prices(0, 0), wanted=500, least=1).output_tokens == 500


@given(
    tokens=st.integers(0, 12_000),
    cost=st.floats(0, 0.06),
    prompt=st.integers(0, 12_000),
    wanted=st.integers(1, 4000),
    least=st.integers(1, 500),
)
def test_a_call_that_keeps_to_its_limit_never_passes_the_budget(
    tokens: int, cost: float, prompt: int, wanted: int, least: int
) -> None:
    spent = Spent(tokens, cost)
    allowed = allowed_output(BUDGET, spent, prompt, PRICES, wanted=wanted, least=least)
    if allowed.limit is not None:
        assert allowed.output_tokens == 0
        return
    after = spent.plus(ModelUsage(input_tokens=prompt, output_tokens=allowed.output_tokens), PRICES)
    assert after.tokens <= BUDGET.max_child_tokens
    assert after.cost_usd <= BUDGET.max_child_cost_usd + 1e-9


def test_more_is_looked_for_only_while_a_fair_report_remains() -> None:
    assert allowed_work(BUDGET, Spent(), 2500, PRICES).limit is None
    assert allowed_work(BUDGET, Spent(tokens=2000), 2500, PRICES).limit == "TOKENS_SPENT"
    poor = BudgetAllocation(max_child_tokens=8000, max_child_cost_usd=0.002)
    assert allowed_work(poor, Spent(), 2500, PRICES).limit == "COST_SPENT"


def test_results_get_what_the_report_leaves() -> None:
    assert result_tokens(BUDGET, Spent(tokens=3000), 3000) == 1000
    assert result_tokens(BUDGET, Spent(tokens=4000), 3000) == 0


def test_first_passages_are_fewer_when_they_are_read_twice() -> None:
    assert opening_tokens(BUDGET, 900, closing=True) > 2 * opening_tokens(BUDGET, 900, closing=False) > 1000
    assert opening_tokens(BudgetAllocation(max_child_tokens=1500), 900, closing=False) > 0


@pytest.mark.parametrize("remaining_s", [-5.0, 0.0, 0.4, 1.0, 1.5, 3.0, 15.0])
def test_no_call_lasts_to_the_deadline(remaining_s: float) -> None:
    for limit_s in (work_limit_s(remaining_s), report_limit_s(remaining_s)):
        assert limit_s == 0 or LEAST_CALL_S <= limit_s <= remaining_s - MARGIN_S
    assert 0 < tool_limit_s(remaining_s, 20) <= max(remaining_s, 0.001)


def test_half_of_the_time_is_kept_for_the_report() -> None:
    assert work_limit_s(15.5) == pytest.approx(7.5)
    assert tool_limit_s(15.5, 5) == 5


def test_tokens_are_never_guessed_too_low() -> None:
    assert tokens_of(["a" * 301]) > 100
    assert tokens_of([]) == 0
