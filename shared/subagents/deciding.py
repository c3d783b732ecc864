"""Asking the delegation policy: once for each answer, on the evidence that it would be written from.

First the policy is asked as if no other sub-agent were at work, which costs nothing; only if that would be to
delegate, once more with what the table of sub-agents says. So a question that gets no sub-agent pays for no
look at it. Slots are taken by compare-and-swap: who is refused decides anew with what is known then. What was
decided is stored before the children start, and the first to be stored counts.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from shared.platform.concurrency import run_in_background
from shared.platform.telemetry import get_logger
from shared.runs.events import DelegationStatus
from shared.runs.working_memory import WorkingMemory
from shared.subagents.artifacts import find_delegation, put_delegation
from shared.subagents.control import ControlView, grant, read_control
from shared.subagents.metrics import note_decision
from shared.subagents.models import Delegation, SubagentStart, SubagentTask
from shared.subagents.policy import cost_left_usd, decide, decision_event, policy_failed, tokens_left
from shared.subagents.policy_input import (
    FindDocuments,
    Occasion,
    Spent,
    budget_of,
    describe,
    health_of,
    healthy_tools,
    installed_profiles,
    may_read_targets,
    rest_of_series,
    risk_of,
    rules_of,
    spent_before,
    target_documents,
)
from shared.subagents.policy_models import (
    REASON_WORDS,
    DelegationPolicyOutput,
    DelegationRules,
    SubagentFacts,
)
from shared.subagents.services import SubagentServices
from shared.subagents.tasks import Room, starts_of, tasks_of

_TRIES = 3  # with slots as scarce as that, an answer had better be written


@dataclass(frozen=True)
class DelegationDecided:
    """What was decided for an answer.

    Attributes:
        event: of readers: it tells the decision and its reasons.
        delegation, starts, until: of a decision to delegate: what is stored, the children to start, and the
            instant at which whoever has not ended is ended. None and empty of any other.
        defer_s: of a deferred decision: seconds after which it is made anew.
    """

    event: DelegationStatus
    delegation: Delegation | None = None
    starts: tuple[SubagentStart, ...] = ()
    until: datetime | None = None
    defer_s: float | None = None


async def decide_delegation(
    occasion: Occasion, memory: WorkingMemory, services: SubagentServices, find: FindDocuments
) -> DelegationDecided:
    """Decide, store, log, and give the event for readers.

    Never raises for a policy that fails: contracts.md, section 4: any error is a no_delegate.
    """
    rules = rules_of(services.settings)
    try:
        decided, delegation = await _Deciding(occasion, memory, services, rules).run(find)
    except Exception as failed:  # noqa: BLE001  # no error of the policy may cost the answer
        get_logger().warning("delegation.failed", run_id=memory.run_id, error_type=type(failed).__name__)
        decided, delegation = policy_failed(), None
    run_in_background(
        note_decision(services.subagent_metrics, memory.run_id, occasion.step, decided, datetime.now(UTC))
    )
    told = _told(memory.run_id, decided, rules)
    if delegation is None:
        deferred = decided.decision == "defer"
        return DelegationDecided(told, defer_s=rules.defer_wait_ms / 1000 if deferred else None)
    settings = services.settings
    return DelegationDecided(
        told,
        delegation,
        starts_of(
            delegation.tasks,
            installed_profiles(services.web_search),
            settings.subagents.child_retry_count,
            settings.subagents.child_retry_backoff_ms,
        ),
        max(task.deadline for task in delegation.tasks),
    )


def _told(run_id: str, decided: DelegationPolicyOutput, rules: DelegationRules) -> DelegationStatus:
    """Log the decision, and give its event."""
    event = decision_event(run_id, decided, rules)
    get_logger().info(event.event, **event.model_dump(mode="json", exclude={"event"}))
    reasons = tuple(REASON_WORDS[code] for code in decided.reason_codes)
    return DelegationStatus(**event.model_dump(), reasons=reasons)


@dataclass
class _Deciding:
    """One decision with what it is made from."""

    occasion: Occasion
    memory: WorkingMemory
    services: SubagentServices
    rules: DelegationRules

    async def run(self, find: FindDocuments) -> tuple[DelegationPolicyOutput, Delegation | None]:
        run_id, step = self.memory.run_id, self.occasion.step
        if self.occasion.repeated:
            known = await find_delegation(self.services.blobs, run_id, step)
            if known is not None:
                return known.decided, known
        return await self._decide(
            await spent_before(self.occasion, self.services.blobs),
            await may_read_targets(self.occasion, find),
        )

    async def _decide(self, spent: Spent, readable: bool) -> tuple[DelegationPolicyOutput, Delegation | None]:
        """Delegate if the policy says so, and still does with what the table of sub-agents says.

        A slot that is taken for the first attempt at a step is that of the second one, too: both give their
        children the same ids.
        """
        facts = SubagentFacts(
            installed_profiles=installed_profiles(self.services.web_search),
            healthy_tools=healthy_tools(self.services.web_search),
            targets_readable=readable,
            web_allowed=self.services.web_search is not None,
            started=spent.started,
            spent_usd=spent.cost_usd,
        )
        idle = ControlView(circuit_closed=True, active=0, waiting=0, free=self.rules.max_active)
        decided, _ = self._ask(facts, spent, idle)
        if decided.selected_profile == "comparator" and not target_documents(self.occasion):
            series = await rest_of_series(self.occasion, self.services)
            self.occasion = replace(self.occasion, series=series)
        for _ in range(_TRIES):
            if decided.decision != "delegate":
                return decided, None
            decided, tasks = self._ask(
                facts, spent, await read_control(self.services.settings, self.services.subagent_control)
            )
            now = datetime.now(UTC)
            if tasks and await grant(self.services.settings, self.services.subagent_control, tasks, now):
                asker = self.occasion.stored.asker
                delegation = Delegation(
                    step=self.occasion.step, decided=decided, tasks=tasks, decided_at=now, asker=asker
                )
                kept = await put_delegation(self.services.blobs, self.memory.run_id, delegation)
                return kept.decided, kept
        # Others were quicker each time: whatever is free is gone before it can be taken.
        full = ControlView(circuit_closed=True, active=self.rules.max_active, waiting=0, free=0)
        return self._ask(facts, spent, full)[0], None

    def _ask(
        self, facts: SubagentFacts, spent: Spent, control: ControlView
    ) -> tuple[DelegationPolicyOutput, tuple[SubagentTask, ...]]:
        """The decision as of now, and the tasks that it leads to."""
        # The time comes last: what was looked up took some of it.
        now, settings = datetime.now(UTC), self.services.settings
        policy_input = describe(
            self.occasion,
            budget_of(self.occasion, settings, spent, now),
            risk_of(self.occasion, settings),
            health_of(control, self.rules, degraded_mode=settings.subagents.degraded_mode),
        )
        facts = facts.model_copy(update={"circuit_closed": control.circuit_closed})
        room = Room(
            children=min(self.rules.max_per_request - spent.started, control.free),
            tokens=tokens_left(policy_input) - self.rules.reserve_tokens,
            cost_usd=cost_left_usd(policy_input, facts),
        )
        decided = decide(policy_input, facts, self.rules)
        return decided, tasks_of(self.occasion, decided, room, self.rules, now)
