"""Settings of sub-agents: the contract's defaults, each overridable, and wrong ones refused by name."""

import pytest

from shared.platform.errors import ConfigurationError
from shared.platform.settings import Settings, load_settings
from shared.subagents.policy_input import rules_of
from tests.fakes.services import fake_settings
from tests.unit.platform.test_settings import COMPLETE

CONTRACT = {  # contracts.md, section 4
    "subagents_enabled": True,
    "subagents_max_per_request": 2,
    "subagents_max_recursion_depth": 1,
    "subagents_child_timeout_ms": 15_000,
    "subagents_child_max_turns": 3,
    "subagents_child_retry_count": 1,
    "subagents_child_retry_backoff_ms": 750,
    "circuit_breaker_failure_rate_threshold": 0.35,
    "circuit_breaker_window_requests": 50,
    "circuit_breaker_cooldown_seconds": 300,
    "low_retrieval_confidence_top_score": 0.62,
    "high_confidence_no_delegate_top_score": 0.78,
    "low_score_spread_ambiguity": 0.08,
    "high_score_spread_clarity": 0.15,
    "max_total_tokens_per_request": 24_000,
    "max_child_tokens": 8_000,
    "max_child_cost_usd": 0.03,
    "max_subagent_cost_usd": 0.08,
    "max_total_latency_ms": 25_000,
    "min_remaining_latency_to_delegate_ms": 12_000,
}


def values(settings: Settings) -> dict[str, object]:
    """The contract's settings by their variables in lower case."""
    groups = (settings.subagents, settings.thresholds, settings.budgets)
    by_alias = {
        name.lower(): value for group in groups for name, value in group.model_dump(by_alias=True).items()
    }
    return {name: by_alias[name] for name in CONTRACT}


def test_defaults_are_the_contracts() -> None:
    assert values(load_settings(COMPLETE)) == CONTRACT


def test_each_is_read_from_the_environment() -> None:
    changed = {
        name: not value
        if isinstance(value, bool)
        else value * 0.99
        if isinstance(value, float)
        else value + 1
        for name, value in CONTRACT.items()
    }
    text = {name.upper(): str(value) for name, value in changed.items()}
    assert values(load_settings({**COMPLETE, **text})) == changed


@pytest.mark.parametrize(
    ("lower", "upper", "value"),
    [
        ("LOW_RETRIEVAL_CONFIDENCE_TOP_SCORE", "HIGH_CONFIDENCE_NO_DELEGATE_TOP_SCORE", "0.78"),
        ("LOW_SCORE_SPREAD_AMBIGUITY", "HIGH_SCORE_SPREAD_CLARITY", "0.2"),
        ("SUBAGENTS_RESERVE_TOKENS", "MIN_REMAINING_TOKENS_TO_DELEGATE", "8000"),
        ("SUBAGENTS_RESERVE_LATENCY_MS", "MIN_REMAINING_LATENCY_TO_DELEGATE_MS", "12000"),
    ],
)
def test_thresholds_that_contradict_each_other_are_named(lower: str, upper: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"^{lower} .* must be less than {upper} "):
        load_settings({**COMPLETE, lower: value})


def test_a_reserve_must_fit_into_the_whole() -> None:
    with pytest.raises(ConfigurationError, match=r"^SUBAGENTS_RESERVE_LATENCY_MS .* MAX_TOTAL_LATENCY_MS"):
        load_settings({**COMPLETE, "MAX_TOTAL_LATENCY_MS": "5000"})


def test_a_share_over_one_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match=r"^HIGH_CONFIDENCE_NO_DELEGATE_TOP_SCORE: "):
        load_settings({**COMPLETE, "HIGH_CONFIDENCE_NO_DELEGATE_TOP_SCORE": "78"})


def test_a_tool_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"SUBAGENTS_RESTRICTED_TOOLS .*: delete_documents\."):
        load_settings({**COMPLETE, "SUBAGENTS_RESTRICTED_TOOLS": "retrieve_documents, delete_documents"})


def test_the_rules_are_the_settings() -> None:
    rules = rules_of(
        fake_settings(
            subagents_restricted_tools=" query_metadata ,retrieve_documents",
            low_retrieval_confidence_top_score=0.3,
            max_child_tokens=500,
        )
    )
    assert rules.restricted_tools == ("retrieve_documents", "query_metadata")
    assert (rules.low_top_score, rules.max_child_tokens) == (0.3, 500)


def test_departments_are_compared_in_any_case() -> None:
    settings = fake_settings(subagents_sensitive_departments="Human Resources, LEGAL,")
    assert settings.subagents.sensitive_department_names == ("human resources", "legal")
