"""Tests for the summary of sub-agent records: shares and percentiles by chosen profile."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from shared.quality.measures import percentile
from shared.quality.models import AnswerRecord, ChildFacts, DecisionFacts
from shared.quality.subagent_measures import ProfileMetrics, by_profile

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def decision(**values: Any) -> AnswerRecord:
    facts = DecisionFacts(**{"decision": "delegate", "profile": "comparator", **values})
    return AnswerRecord(key="k", at=AT, outcome="answered", decisions=(facts,))


def child(**values: Any) -> AnswerRecord:
    usual = {"selected": "comparator", "profile": "comparator", "status": "done", "timed_out": False}
    facts = ChildFacts(**{**usual, **values})
    return AnswerRecord(key="k", at=AT, outcome="answered", children=(facts,))


def comparator(*records: AnswerRecord) -> ProfileMetrics:
    (profile,) = by_profile(records)
    assert profile.profile == "comparator"
    return profile


def test_nothing_ran() -> None:
    assert by_profile([]) == ()
    assert by_profile([decision(decision="no_delegate", profile=None)]) == ()


def test_how_often_a_profile_is_chosen() -> None:
    others = (
        decision(decision="no_delegate", profile=None),
        decision(decision="defer", profile=None),
        decision(profile="doc_reader"),
    )
    profiles = by_profile([decision(), *others])
    assert [(one.profile, one.delegations, one.delegate_rate) for one in profiles] == [
        ("doc_reader", 1, 0.25),
        ("comparator", 1, 0.25),
    ]


def test_a_profile_without_children_has_no_shares() -> None:
    profile = comparator(decision())
    assert profile.children == 0
    assert profile.success_rate is None
    assert profile.timeout_rate is None
    assert profile.latency_p50_ms is None
    assert profile.citation_coverage is None


def test_how_children_ended() -> None:
    profile = comparator(
        child(status="done", claims=1),
        child(status="partial", timed_out=True, claims=1),
        child(status="late", timed_out=True, claims=1),
        child(status="failed"),
    )
    assert (profile.children, profile.success_rate, profile.timeout_rate) == (4, 0.5, 0.5)
    assert profile.fallbacks_main_agent == 1


def test_a_smaller_profile_counts_for_the_one_that_was_chosen() -> None:
    profile = comparator(child(profile="doc_reader", claims=1), child(claims=1))
    assert (profile.fallbacks_reduced_profile, profile.fallbacks_main_agent) == (1, 0)


def test_what_was_used_and_what_was_proved() -> None:
    profile = comparator(
        child(tokens=100, cost_usd=0.1, claims=3, proved=3), child(tokens=50, cost_usd=0.2, claims=1)
    )
    assert (profile.tokens, profile.cost_usd) == (150, 0.3)
    assert (profile.claims, profile.proved, profile.citation_coverage) == (4, 3, 0.75)


def test_latencies_are_of_children_that_began() -> None:
    profile = comparator(*(child(latency_ms=number) for number in range(1, 101)), child(latency_ms=None))
    assert (profile.latency_p50_ms, profile.latency_p95_ms) == (50, 95)


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([], 0.5, None),
        ([7], 0.5, 7),
        ([7], 0.95, 7),
        ([3, 1, 2], 0.5, 2),
        ([1, 2], 0.5, 1),
        ([1, 2], 0.95, 2),
    ],
)
def test_percentiles_are_values_that_were_measured(
    values: Sequence[int], share: float, expected: int | None
) -> None:
    assert percentile(values, share) == expected
