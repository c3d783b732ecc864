"""What the records of a span of time say of sub-agents, by profile. Pure."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, get_args

from shared.core.subagent_control import succeeded
from shared.models.delegation import ProfileName
from shared.models.subagent_metrics import ChildRecord, DecisionRecord, MetricRecord, ProfileMetrics

Number = TypeVar("Number", int, float)


@dataclass
class MetricSums:
    """What records say together: they are added one by one, in any order."""

    decisions: int = 0
    delegated: int = 0
    deferred: int = 0
    chosen: dict[ProfileName, int] = field(default_factory=dict)
    children: dict[ProfileName, list[ChildRecord]] = field(default_factory=dict)

    def add(self, record: MetricRecord) -> None:
        """Count it."""
        if isinstance(record, ChildRecord):
            self.children.setdefault(record.selected, []).append(record)
        else:
            self._decide(record)

    def by_profile(self) -> tuple[ProfileMetrics, ...]:
        """The profiles that were chosen or had a child, in the policy's order."""
        return tuple(
            self._profile(profile)
            for profile in get_args(ProfileName)
            if profile in self.chosen or profile in self.children
        )

    def _decide(self, record: DecisionRecord) -> None:
        self.decisions += 1
        self.delegated += record.decision == "delegate"
        self.deferred += record.decision == "defer"
        if record.decision == "delegate" and record.profile is not None:
            self.chosen[record.profile] = self.chosen.get(record.profile, 0) + 1

    def _profile(self, profile: ProfileName) -> ProfileMetrics:
        delegations, children = self.chosen.get(profile, 0), self.children.get(profile, [])
        latencies = [child.latency_ms for child in children if child.latency_ms is not None]
        claims, proved = sum(child.claims for child in children), sum(child.proved for child in children)
        return ProfileMetrics(
            profile=profile,
            delegations=delegations,
            delegate_rate=delegations / self.decisions if self.decisions else 0.0,
            children=len(children),
            success_rate=_share(succeeded(child.status) for child in children),
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


def percentile(values: Sequence[Number], share: float) -> Number | None:
    """The value that this share of all does not exceed, by the nearest rank; None of no values."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def _share(met: Iterable[bool]) -> float | None:
    answers = list(met)
    return sum(answers) / len(answers) if answers else None
