"""What is counted of sub-agents: a record per decision and per child, and their summary. No content."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from shared.models.base import Model
from shared.models.delegation import Decision, ProfileName, ReasonCode
from shared.models.subagent_control import ControlReport
from shared.models.subagents import ChildStatus

Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


class DecisionRecord(Model):
    """One decision of the delegation policy.

    Attributes:
        key: the same for the same decision, so that it is counted once; a digest, which names no run.
        profile: None unless it was to delegate.
    """

    kind: Literal["decision"] = "decision"
    key: str
    at: datetime
    decision: Decision
    profile: ProfileName | None = None
    reason_codes: tuple[ReasonCode, ...] = ()


class ChildRecord(Model):
    """The end of one sub-agent.

    Attributes:
        key: as of a decision.
        at: when it was decided on.
        selected: the profile that it was set to work with; `profile` is the one that it ended with.
        timed_out: its time ended it, by its own clock or its parent's.
        latency_ms: from its first turn to its end, its deadline if there was none. None = it never began.
        claims, proved: statements that it brought, and those with a verified proof.
    """

    kind: Literal["child"] = "child"
    key: str
    at: datetime
    selected: ProfileName
    profile: ProfileName
    status: ChildStatus
    timed_out: bool
    latency_ms: Count | None = None
    turns: Count = 0
    tokens: Count = 0
    cost_usd: float = 0.0
    claims: Count = 0
    proved: Count = 0


MetricRecord = DecisionRecord | ChildRecord


class ProfileMetrics(Model):
    """How the sub-agents of one profile did; the profile is the one that the policy selected.

    Attributes:
        delegations: decisions that chose it.
        delegate_rate: their share of all decisions.
        success_rate: children that brought a whole report, or one that their budget cut short.
        timeout_rate: children that their time ended.
        latency_p50_ms, latency_p95_ms: of children that began, by the nearest rank.
        citation_coverage: proved statements as a share of all; None = none was made.
        fallbacks_reduced_profile: children that ended with a smaller profile.
        fallbacks_main_agent: children that brought nothing, so that the main agent wrote without them.
    """

    profile: ProfileName
    delegations: Count
    delegate_rate: Share
    children: Count
    success_rate: Share | None
    timeout_rate: Share | None
    latency_p50_ms: Count | None
    latency_p95_ms: Count | None
    tokens: Count
    cost_usd: float
    claims: Count
    proved: Count
    citation_coverage: Share | None
    fallbacks_reduced_profile: Count
    fallbacks_main_agent: Count


class SubagentMetrics(Model):
    """Body of GET /api/metrics/subagents.

    Attributes:
        since, until: the time that is covered; `complete` is False when `since` had to be later than asked.
        decisions, delegated, deferred: of the policy, of all profiles together.
        profiles: those that were chosen, or had a child, in this time.
        control: None when its state could not be read.
    """

    since: datetime
    until: datetime
    complete: bool
    decisions: Count
    delegated: Count
    deferred: Count
    profiles: tuple[ProfileMetrics, ...]
    control: ControlReport | None
