"""Metrics of sub-agents: each decision and each child's end, as a record and in OpenTelemetry.

Recording inserts one row into a table, has a time limit and may run concurrently. It never raises, and
recording the same occasion twice counts once. Records contain names, numbers and times, but no user, run or
text.
"""

# Deferred annotations, so that starting the app doesn't build every model.
from __future__ import annotations

import asyncio
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Literal, get_args

from pydantic import Field

from shared.answering.children import Child
from shared.answering.control import ControlStore, ControlView, read_control, succeeded
from shared.answering.policy_models import Decision, DelegationPolicyOutput
from shared.answering.subagent_models import Delegation
from shared.platform import meters
from shared.platform.concurrency import run_together
from shared.platform.errors import GroundworkError
from shared.platform.models import HourRecord, Model
from shared.platform.settings import Settings
from shared.platform.tables import HourRecords, Table
from shared.platform.telemetry import get_logger
from shared.quality.measures import percentile
from shared.runs.models import ChildStatus, Count, ProfileName, ReasonCode

Share = Annotated[float, Field(ge=0, le=1)]


class DecisionRecord(HourRecord):
    """A decision of the delegation policy.

    Attributes:
        key: digest of run and step, so that a decision counts once.
        profile: None unless the decision was to delegate.
    """

    kind: Literal["decision"] = "decision"
    decision: Decision
    profile: ProfileName | None = None
    reason_codes: tuple[ReasonCode, ...] = ()


class ChildRecord(HourRecord):
    """The end of a sub-agent.

    Attributes:
        key: digest of run, step and child, so that an end counts once.
        at: time of the decision to delegate.
        selected: the profile at the start; `profile` is the profile at the end.
        timed_out: whether its own or its parent's time limit ended it.
        latency_ms: time from its first turn to its end, or to its deadline. None = it never started.
        claims, proved: number of all statements, and of statements with a verified proof.
    """

    kind: Literal["child"] = "child"
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


class SubagentMetrics(Model):
    """Body of GET /api/metrics/subagents.

    Attributes:
        since, until: the covered period; `complete` is False if it is shorter than requested.
        decisions, delegated, deferred: decisions of the policy for all profiles.
        profiles: profiles that were selected or had a child in this period.
        control: None if the control state could not be read.
    """

    since: datetime
    until: datetime
    complete: bool = Field(
        description="Whether the whole period is covered; false if it has too many records."
    )
    decisions: Count
    delegated: Count
    deferred: Count
    profiles: tuple[ProfileMetrics, ...]
    control: ControlView | None


def by_profile(records: Sequence[MetricRecord]) -> tuple[ProfileMetrics, ...]:
    """Return the metrics of profiles that were selected or had a child, in the policy's order."""
    decisions = [record for record in records if isinstance(record, DecisionRecord)]
    chosen = Counter(record.profile for record in decisions if record.decision == "delegate")
    children: defaultdict[ProfileName, list[ChildRecord]] = defaultdict(list)
    for record in records:
        if isinstance(record, ChildRecord):
            children[record.selected].append(record)
    return tuple(
        _profile(profile, chosen[profile], len(decisions), children[profile])
        for profile in get_args(ProfileName)
        if chosen[profile] or children[profile]
    )


def _profile(
    profile: ProfileName, delegations: int, decisions: int, children: Sequence[ChildRecord]
) -> ProfileMetrics:
    latencies = [child.latency_ms for child in children if child.latency_ms is not None]
    claims, proved = sum(child.claims for child in children), sum(child.proved for child in children)
    return ProfileMetrics(
        profile=profile,
        delegations=delegations,
        delegate_rate=delegations / decisions if decisions else 0.0,
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


def _share(flags: Iterable[bool]) -> float | None:
    values = list(flags)
    return sum(values) / len(values) if values else None


class MetricStore(HourRecords[MetricRecord]):
    """Store of decision and sub-agent records."""

    def __init__(self, table: Table) -> None:
        super().__init__(table, (DecisionRecord, ChildRecord))


METER = "groundwork.subagents"


def _count(record: MetricRecord) -> None:
    """Add a record to the OpenTelemetry metrics listed in docs/internals/delegation.md."""
    counter, histogram = partial(meters.counter, METER), partial(meters.histogram, METER)
    if isinstance(record, DecisionRecord):
        decided = {"decision": record.decision, "profile": record.profile or "none"}
        counter("groundwork.subagent.decisions", "{decision}", "Decisions of the delegation policy").add(
            1, decided
        )
        return
    profile = {"profile": record.selected}
    reduced = record.profile != record.selected
    ended = {**profile, "status": record.status, "timed_out": record.timed_out, "reduced": reduced}
    counter("groundwork.subagent.ends", "{subagent}", "Sub-agents that ended").add(1, ended)
    if record.latency_ms is not None:
        duration = histogram("groundwork.subagent.duration", "s", "Duration of a sub-agent")
        duration.record(record.latency_ms / 1000, profile)
    histogram("groundwork.subagent.tokens", "{token}", "Tokens used by a sub-agent").record(
        record.tokens, profile
    )
    histogram("groundwork.subagent.cost", "{USD}", "Cost of a sub-agent in US dollars").record(
        record.cost_usd, profile
    )
    claims = counter("groundwork.subagent.claims", "{claim}", "Statements of sub-agents")
    claims.add(record.proved, {**profile, "proved": True})
    claims.add(max(0, record.claims - record.proved), {**profile, "proved": False})


_NOTE_LIMIT_S = 10.0  # usually a few milliseconds; no caller waits, and a busy host may stall
_HOUR = timedelta(hours=1)
MOST_RECORDS = 100_000  # per request: about 10 s and 100 MB; unmeasured


async def note_decision(
    subagent_metrics: MetricStore, run_id: str, step: int, decided: DelegationPolicyOutput, at: datetime
) -> None:
    """Record a decision of the policy; `step` is the step that requested it."""
    record = DecisionRecord(
        key=_key(run_id, step),
        at=at,
        decision=decided.decision,
        profile=decided.selected_profile,
        reason_codes=decided.reason_codes,
    )
    await _note(subagent_metrics, record)


async def note_ends(
    subagent_metrics: MetricStore, delegation: Delegation, ended: Sequence[tuple[Child, ChildStatus]]
) -> None:
    """Record the ends of a delegation's children."""
    await run_together(
        *(_note(subagent_metrics, _child_record(delegation, child, status)) for child, status in ended)
    )


async def subagent_metrics(
    settings: Settings,
    subagent_control: ControlStore,
    subagent_metrics: MetricStore,
    now: datetime,
    hours: int,
) -> SubagentMetrics:
    """Return the metrics of the last `hours`.

    Raises:
        GroundworkError: the records can't be read.
    """
    since = now - timedelta(hours=hours)
    records: list[MetricRecord] = []
    covered = now
    hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    # Newest hour first, so that the limit drops the oldest records.
    while hour + _HOUR > since and len(records) < MOST_RECORDS:
        hour_records = subagent_metrics.between(hour, hour)
        records += [record async for record in hour_records if since <= record.at <= now]
        covered = max(hour, since)
        hour -= _HOUR
    decided = Counter(record.decision for record in records if isinstance(record, DecisionRecord))
    return SubagentMetrics(
        since=covered,
        until=now,
        complete=covered == since,
        decisions=decided.total(),
        delegated=decided["delegate"],
        deferred=decided["defer"],
        profiles=by_profile(records),
        control=await _control(settings, subagent_control),
    )


async def purge_old_metrics(
    now: datetime, settings: Settings, subagent_metrics: MetricStore, most: int = 10_000
) -> int:
    """Delete at most `most` records older than RUN_RETENTION_DAYS; return the number of deleted records."""
    limit = now - timedelta(days=settings.conversations.run_retention_days)
    return await subagent_metrics.delete_before(limit, most)


async def _control(settings: Settings, subagent_control: ControlStore) -> ControlView | None:
    try:
        return await read_control(settings, subagent_control)
    except GroundworkError:
        return None


async def _note(subagent_metrics: MetricStore, record: MetricRecord) -> None:
    try:
        async with asyncio.timeout(_NOTE_LIMIT_S):
            if not await subagent_metrics.add(record):
                return
    except (GroundworkError, TimeoutError) as failed:
        get_logger().warning("sub_agent.metrics_failed", kind=record.kind, error_type=type(failed).__name__)
    await asyncio.to_thread(_count, record)


def _child_record(delegation: Delegation, child: Child, status: ChildStatus) -> ChildRecord:
    task, state = child.task, child.state
    return ChildRecord(
        key=_key(task.run_id, task.step, task.index),
        at=delegation.decided_at,
        status=status,
        selected=task.profile,
        profile=state.profile,
        timed_out=status == "late" or "TIME_OUT" in state.warnings,
        latency_ms=_latency_ms(state.started_at, state.ended_at or task.deadline),
        turns=state.turns_ended,
        tokens=state.tokens,
        cost_usd=state.cost_usd,
        claims=len(state.findings),
        proved=sum(bool(finding.proofs) for finding in state.findings),
    )


def _latency_ms(started_at: datetime | None, ended_at: datetime) -> int | None:
    return None if started_at is None else max(0, round((ended_at - started_at) / timedelta(milliseconds=1)))


def _key(run_id: str, *place: int) -> str:
    """Return a deterministic key for an occasion.

    It is a digest, because records outlive runs and must not name them.
    """
    return hashlib.sha256(":".join([run_id, *map(str, place)]).encode()).hexdigest()[:32]
