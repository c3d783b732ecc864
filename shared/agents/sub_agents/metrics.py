"""What is counted of sub-agents: each decision and each child's end, as a record and in OpenTelemetry.

A record is one insert into a table, within a limit, and may run beside other work; it never raises, and what
is noted twice counts once. It holds names, numbers and times: no user, no run, no text.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from shared.agents.sub_agents.control import report_control
from shared.agents.sub_agents.instruments import count
from shared.agents.sub_agents.stored import Child
from shared.core.subagent_metrics import MetricSums
from shared.errors import GroundworkError
from shared.models.delegation import DelegationPolicyOutput
from shared.models.subagent_control import ControlReport
from shared.models.subagent_metrics import ChildRecord, DecisionRecord, MetricRecord, SubagentMetrics
from shared.models.subagents import ChildStatus, Delegation
from shared.services import Services
from shared.telemetry import get_logger

_NOTE_LIMIT_S = 10.0  # some milliseconds are usual; nobody waits, and a starved machine stands still
_HOUR = timedelta(hours=1)
MOST_RECORDS = 100_000  # of one summary: some 10 s, and 100 MB; unmeasured


async def note_decision(
    services: Services, run_id: str, step: int, decided: DelegationPolicyOutput, at: datetime
) -> None:
    """Count one decision of the policy; `step` is the one that asked for it."""
    record = DecisionRecord(
        key=_key(run_id, step),
        at=at,
        decision=decided.decision,
        profile=decided.selected_profile,
        reason_codes=decided.reason_codes,
    )
    await _note(services, record)


async def note_ends(
    services: Services, delegation: Delegation, ended: Sequence[tuple[Child, ChildStatus]]
) -> None:
    """Count the ends of a delegation's children."""
    await asyncio.gather(
        *(_note(services, _child_record(delegation, child, status)) for child, status in ended)
    )


async def subagent_metrics(services: Services, now: datetime, hours: int) -> SubagentMetrics:
    """How sub-agents did in the last `hours`. GroundworkError when the records cannot be read."""
    since = now - timedelta(hours=hours)
    sums, seen, covered = MetricSums(), 0, now
    hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    # The newest first: what does not fit is what is old.
    while hour + _HOUR > since and seen < MOST_RECORDS:
        async for record in services.subagent_metrics.of_hour(hour):
            if since <= record.at <= now:
                sums.add(record)
                seen += 1
        covered = max(hour, since)
        hour -= _HOUR
    return SubagentMetrics(
        since=covered,
        until=now,
        complete=covered == since,
        decisions=sums.decisions,
        delegated=sums.delegated,
        deferred=sums.deferred,
        profiles=sums.by_profile(),
        control=await _control(services),
    )


async def purge_old_metrics(now: datetime, services: Services, most: int = 10_000) -> int:
    """Take away records older than RUN_RETENTION_DAYS; how many, at most `most`. The next call goes on."""
    limit = now - timedelta(days=services.settings.run_retention_days)
    return await services.subagent_metrics.delete_before(limit, most)


async def _control(services: Services) -> ControlReport | None:
    try:
        return await report_control(services)
    except GroundworkError:
        return None


async def _note(services: Services, record: MetricRecord) -> None:
    try:
        async with asyncio.timeout(_NOTE_LIMIT_S):
            if not await services.subagent_metrics.add(record):
                return
    except (GroundworkError, TimeoutError) as failed:
        get_logger().warning("subagent_metrics.failed", kind=record.kind, error_type=type(failed).__name__)
    await count(record)


def _child_record(delegation: Delegation, child: Child, status: ChildStatus) -> ChildRecord:
    task, state = child.task, child.state
    facts = {"key": _key(task.run_id, task.step, task.index), "at": delegation.decided_at, "status": status}
    if state is None:
        return ChildRecord(**facts, selected=task.profile, profile=task.profile, timed_out=status == "late")
    return ChildRecord(
        **facts,
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
    """The same for the same occasion. A digest: records outlive runs, and are not to name them."""
    return hashlib.sha256(":".join([run_id, *map(str, place)]).encode()).hexdigest()[:32]
