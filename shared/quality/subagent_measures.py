"""Metrics of sub-agents per profile, computed from the quality records of runs. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import get_args

from pydantic import Field

from shared.platform.models import Model
from shared.quality.measures import percentile
from shared.quality.models import AnswerRecord, ChildFacts, Share
from shared.runs.models import Count, ProfileName, counts_as_success


class ProfileMetrics(Model):
    """Metrics of the sub-agents with one profile, as selected by the policy.

    Attributes:
        delegations: decisions that selected the profile.
        delegate_rate: delegations as a share of all decisions.
        success_rate: share of children with a complete report, or a report cut short by the budget.
        timeout_rate: share of children that ended by a time limit.
        latency_p50_ms, latency_p95_ms: percentiles (nearest rank) of the children that started.
        citation_coverage: proved statements as a share of all; None = there were no statements.
        fallbacks_reduced_profile: children that ended with a smaller profile.
        fallbacks_main_agent: children without findings, so that the main agent answered without them.
    """

    profile: ProfileName = Field(description="Kind of sub-agent.")
    delegations: Count
    delegate_rate: Share
    children: Count = Field(description="Number of sub-agents.")
    success_rate: Share | None
    timeout_rate: Share | None
    latency_p50_ms: Count | None = Field(description="Median latency, in milliseconds.")
    latency_p95_ms: Count | None = Field(description="95th percentile of the latency, in milliseconds.")
    tokens: Count = Field(description="Tokens used by their model calls.")
    cost_usd: float = Field(description="Cost of their model calls, in US dollars.")
    claims: Count = Field(description="Statements in their findings.")
    proved: Count = Field(description="Statements with a verified quotation.")
    citation_coverage: Share | None
    fallbacks_reduced_profile: Count
    fallbacks_main_agent: Count


def by_profile(runs: Sequence[AnswerRecord]) -> tuple[ProfileMetrics, ...]:
    """Return the metrics of profiles that were selected or had a child, in the policy's order."""
    decisions = [decision for run in runs for decision in run.decisions]
    chosen = Counter(decision.profile for decision in decisions if decision.decision == "delegate")
    children: defaultdict[ProfileName, list[ChildFacts]] = defaultdict(list)
    for run in runs:
        for child in run.children:
            children[child.selected].append(child)
    return tuple(
        _profile(profile, chosen[profile], len(decisions), children[profile])
        for profile in get_args(ProfileName)
        if chosen[profile] or children[profile]
    )


def _profile(
    profile: ProfileName, delegations: int, decisions: int, children: Sequence[ChildFacts]
) -> ProfileMetrics:
    latencies = [child.latency_ms for child in children if child.latency_ms is not None]
    claims, proved = sum(child.claims for child in children), sum(child.proved for child in children)
    return ProfileMetrics(
        profile=profile,
        delegations=delegations,
        delegate_rate=delegations / decisions if decisions else 0.0,
        children=len(children),
        success_rate=_share(counts_as_success(child.status) for child in children),
        timeout_rate=_share(child.timed_out for child in children),
        latency_p50_ms=percentile(latencies, 0.50),
        latency_p95_ms=percentile(latencies, 0.95),
        tokens=sum(child.tokens for child in children),
        cost_usd=round(sum(child.cost_usd for child in children), 6),
        claims=claims,
        proved=proved,
        citation_coverage=min(1.0, proved / claims) if claims else None,
        fallbacks_reduced_profile=sum(child.profile != child.selected for child in children),
        fallbacks_main_agent=sum(not child.claims for child in children),
    )


def _share(flags: Iterable[bool]) -> float | None:
    values = list(flags)
    return sum(values) / len(values) if values else None
