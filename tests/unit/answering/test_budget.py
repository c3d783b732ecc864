"""Tests for budgets: consumption, the remainder, and the share given to a sub-agent."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.answering.budget import NO_LIMIT, Budget, BudgetSpentError, Prices, max_tokens_of, tokens_in
from shared.platform.language_models.models import ModelUsage
from shared.runs.events import DoneLine, ReservedLine

PRICES = Prices(input_usd=0.4, output_usd=1.6)


def budget(tokens: int = 0, cost_usd: float = 0.0) -> Budget:
    """Return a budget of 8,000 tokens and 3 cents that is already partly used."""
    return Budget(8000, 0.03, tokens=tokens, cost_usd=cost_usd, prices=PRICES)


def exhausted_part(spent: Budget, prompt_tokens: int, least: int) -> str:
    with pytest.raises(BudgetSpentError) as error:
        spent.reply_tokens(prompt_tokens, wanted=1800, least=least)
    return error.value.limit


@pytest.mark.parametrize(("cached_usd", "cost_usd"), [(None, 0.72), (0.1, 0.54)])
def test_cached_tokens_have_a_separate_price(cached_usd: float | None, cost_usd: float) -> None:
    usage = ModelUsage(input_tokens=1_000_000, output_tokens=200_000, cached_tokens=600_000)
    assert Prices(0.4, 1.6, cached_usd).cost_usd(usage) == pytest.approx(cost_usd)


def test_reply_is_as_long_as_wanted_or_as_tokens_allow() -> None:
    assert budget().reply_tokens(2000, wanted=1800, least=250) == 1800
    assert budget(tokens=5000).reply_tokens(2500, wanted=1800, least=250) == 500
    assert exhausted_part(budget(tokens=5751), 2000, 250) == "TOKENS_SPENT"


def test_money_limits_a_reply_like_tokens() -> None:
    spent = budget(cost_usd=0.03 - 2000 * 0.4e-6 - 300 * 1.6e-6)
    assert 299 <= spent.reply_tokens(2000, wanted=1800, least=250) <= 300
    assert exhausted_part(spent, 2100, 300) == "COST_SPENT"
    assert exhausted_part(budget(cost_usd=0.04), 10, 1) == "COST_SPENT"


def test_model_without_a_price_is_limited_by_tokens_only() -> None:
    assert Budget(8000, 0.0).reply_tokens(1000, wanted=500, least=1) == 500


def test_budget_without_limits_grants_every_reply() -> None:
    unlimited = Budget(prices=PRICES)
    assert unlimited.reply_tokens(10**6, wanted=10**6, least=1) == 10**6
    assert (unlimited.tokens_left, unlimited.cost_left_usd) == (NO_LIMIT, math.inf)


@given(
    tokens=st.integers(0, 12_000),
    cost_usd=st.floats(0, 0.06),
    prompt_tokens=st.integers(0, 12_000),
    desired_tokens=st.integers(1, 4000),
    least=st.integers(1, 500),
)
def test_call_within_its_limit_never_exceeds_the_budget(
    tokens: int, cost_usd: float, prompt_tokens: int, desired_tokens: int, least: int
) -> None:
    before = budget(tokens, cost_usd)
    try:
        output_tokens = before.reply_tokens(prompt_tokens, wanted=desired_tokens, least=least)
    except BudgetSpentError:
        return
    after = before.after(ModelUsage(input_tokens=prompt_tokens, output_tokens=output_tokens))
    assert after.tokens_left >= 0
    assert after.cost_left_usd >= -1e-9
    assert (before.tokens, before.cost_usd) == (tokens, cost_usd)


def test_reservation_counts_until_it_is_settled() -> None:
    running = budget(tokens=1000)
    running.reserve(3000)
    assert (running.committed_tokens, running.tokens_left) == (4000, 4000)
    running.settle(3000, used=500)
    assert (running.tokens, running.committed_tokens, running.tokens_left) == (1500, 1500, 6500)


@given(tokens=st.integers(0, 8000), cost_usd=st.floats(0, 0.03), count=st.integers(1, 9))
def test_shares_together_stay_within_the_rest(tokens: int, cost_usd: float, count: int) -> None:
    whole = budget(tokens, cost_usd)
    share = whole.share(count)
    assert (share.tokens, share.cost_usd) == (0, 0.0)
    assert share.tokens_left * count <= whole.tokens_left
    assert share.cost_left_usd * count <= whole.cost_left_usd + 1e-9


def test_share_has_at_least_the_minimum() -> None:
    assert budget().share(4, least_tokens=1500).max_tokens == 2000
    assert budget().share(8, least_tokens=1500).max_tokens == 1500


def test_number_of_shares_depends_on_tokens_and_money() -> None:
    assert budget(tokens=1000).max_shares(2000, 0.0) == 3
    assert budget(tokens=1000).max_shares(2000, 0.02) == 1


def test_prompt_size_is_never_underestimated() -> None:
    assert max_tokens_of(["a" * 301]) > 100
    assert max_tokens_of([]) == 0


def test_journal_counts_reservations_of_turns_that_did_not_complete() -> None:
    lines = [
        ReservedLine(tokens=700, step=1),
        DoneLine(result={"tokens": 300}, step=1),
        ReservedLine(tokens=500, step=2, child=0, turn=1),
        ReservedLine(tokens=900, step=2, child=0, turn=1),
        DoneLine(result={}, step=2, child=1),
    ]
    assert tokens_in(lines) == 300 + 900
