"""Decides on delegation for an answer, and makes the tasks of the sub-agents.

First the policy is asked as if no other sub-agent were at work, which costs nothing. Only if it would
delegate, it is asked again with the state of the control table. Slots are taken by compare-and-swap: if that
fails, the policy decides again. The decision is stored before the children start, and the first one counts.

A doc_reader reads one document in depth, so several documents are shared out over several of them; every
other profile works on all of its documents at once, alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from shared.platform.concurrency import run_in_background
from shared.platform.telemetry import get_logger
from shared.runs.events import DelegationStatus
from shared.runs.models import ProfileName
from shared.runs.working_memory import WorkingMemory
from shared.subagents.artifacts import find_delegation, put_delegation
from shared.subagents.control import ControlView, grant, read_control
from shared.subagents.metrics import note_decision
from shared.subagents.models import Delegation, SubagentStart, SubagentTask
from shared.subagents.policy import cost_left_usd, decide, decision_event, policy_failed, tokens_left
from shared.subagents.policy_input import (
    DelegationRequest,
    FindDocuments,
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
    BudgetAllocation,
    DelegationPolicyOutput,
    DelegationRules,
    SubagentFacts,
)
from shared.subagents.profiles import PROFILES
from shared.subagents.services import SubagentServices

MOST_DOCUMENTS = 6  # of one task; with more each would get too little of 8,000 tokens; unmeasured
_TRIES = 3  # if slots are that scarce, the answer is written without sub-agents


@dataclass(frozen=True)
class DelegationOutcome:
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
    delegation_request: DelegationRequest,
    memory: WorkingMemory,
    services: SubagentServices,
    find: FindDocuments,
) -> DelegationOutcome:
    """Decide, store, log, and give the event for readers.

    Never raises for a policy that fails: contracts.md, section 4: any error is a no_delegate.
    """
    rules = rules_of(services.settings)
    try:
        decided, delegation = await _Decision(delegation_request, memory, services, rules).run(find)
    except Exception as failed:  # noqa: BLE001  # no error of the policy may cost the answer
        get_logger().warning("delegation.failed", run_id=memory.run_id, error_type=type(failed).__name__)
        decided, delegation = policy_failed(), None
    run_in_background(
        note_decision(
            services.subagent_metrics, memory.run_id, delegation_request.step, decided, datetime.now(UTC)
        )
    )
    told = _told(memory.run_id, decided, rules)
    if delegation is None:
        deferred = decided.decision == "defer"
        return DelegationOutcome(told, defer_s=rules.defer_wait_ms / 1000 if deferred else None)
    settings = services.settings
    return DelegationOutcome(
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
class _Decision:
    """One decision with what it is made from."""

    delegation_request: DelegationRequest
    memory: WorkingMemory
    services: SubagentServices
    rules: DelegationRules

    async def run(self, find: FindDocuments) -> tuple[DelegationPolicyOutput, Delegation | None]:
        run_id, step = self.memory.run_id, self.delegation_request.step
        if self.delegation_request.repeated:
            known = await find_delegation(self.services.blobs, run_id, step)
            if known is not None:
                return known.decided, known
        return await self._decide(
            await spent_before(self.delegation_request, self.services.blobs),
            await may_read_targets(self.delegation_request, find),
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
        if decided.selected_profile == "comparator" and not target_documents(self.delegation_request):
            series = await rest_of_series(self.delegation_request, self.services)
            self.delegation_request = replace(self.delegation_request, series=series)
        for _ in range(_TRIES):
            if decided.decision != "delegate":
                return decided, None
            decided, tasks = self._ask(
                facts, spent, await read_control(self.services.settings, self.services.subagent_control)
            )
            now = datetime.now(UTC)
            if tasks and await grant(self.services.settings, self.services.subagent_control, tasks, now):
                asker = self.delegation_request.stored.asker
                delegation = Delegation(
                    step=self.delegation_request.step,
                    decided=decided,
                    tasks=tasks,
                    decided_at=now,
                    asker=asker,
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
            self.delegation_request,
            budget_of(self.delegation_request, settings, spent, now),
            risk_of(self.delegation_request, settings),
            health_of(control, self.rules, degraded_mode=settings.subagents.degraded_mode),
        )
        facts = facts.model_copy(update={"circuit_closed": control.circuit_closed})
        room = Room(
            children=min(self.rules.max_per_request - spent.started, control.free),
            tokens=tokens_left(policy_input) - self.rules.reserve_tokens,
            cost_usd=cost_left_usd(policy_input, facts),
        )
        decided = decide(policy_input, facts, self.rules)
        return decided, tasks_of(self.delegation_request, decided, room, self.rules, now)


@dataclass(frozen=True)
class Room:
    """What all sub-agents of one decision may use together, and how many they may be."""

    children: int
    tokens: int
    cost_usd: float


def tasks_of(
    delegation_request: DelegationRequest,
    decided: DelegationPolicyOutput,
    room: Room,
    rules: DelegationRules,
    now: datetime,
) -> tuple[SubagentTask, ...]:
    """The tasks of a decision to delegate, one for each sub-agent; none of any other decision."""
    if decided.decision != "delegate" or decided.selected_profile is None:
        return ()
    profile, documents = decided.selected_profile, _documents(delegation_request, decided.selected_profile)
    count = _count(profile, documents, room, rules)
    budget = _share(decided.budget_allocation, room, count)
    request = delegation_request.request
    return tuple(
        SubagentTask(
            child_id=f"{request.run_id}:s{delegation_request.step:03d}c{index}",
            run_id=request.run_id,
            step=delegation_request.step,
            index=index,
            profile=profile,
            question=delegation_request.stored.plan.standalone_question or request.question,
            doc_ids=documents[index::count],
            project_id=request.project_id,
            tools=decided.tool_scope,
            budget=budget,
            deadline=now + timedelta(milliseconds=budget.max_child_latency_ms),
        )
        for index in range(count)
    )


def starts_of(
    tasks: Sequence[SubagentTask],
    installed: Sequence[ProfileName],
    retries: int,
    backoff_ms: int,
) -> tuple[SubagentStart, ...]:
    """What the children are started with."""
    return tuple(
        SubagentStart(
            child_id=task.child_id,
            run_id=task.run_id,
            step=task.step,
            index=task.index,
            deadline=task.deadline,
            max_turns=task.budget.max_child_turns,
            max_tokens=task.budget.max_child_tokens,
            retry_count=retries,
            retry_backoff_ms=backoff_ms,
            profiles=_profiles(task, installed),
        )
        for task in tasks
    )


def _profiles(task: SubagentTask, installed: Sequence[ProfileName]) -> tuple[ProfileName, ...]:
    """The task's own, then the smaller ones that its tools are enough for."""
    names: list[ProfileName] = [task.profile]
    smaller = PROFILES[task.profile].smaller
    while smaller is not None:
        if smaller in installed and set(PROFILES[smaller].required_tools) <= set(task.tools):
            names.append(smaller)
        smaller = PROFILES[smaller].smaller
    return tuple(names)


def _documents(delegation_request: DelegationRequest, profile: ProfileName) -> tuple[str, ...]:
    """Those that the question is about; of a comparison that names none, those that were found for it, and
    the others of their series.

    More than fit into one task are too many: the best of them, if evidence tells which these are.
    """
    found = tuple(dict.fromkeys(hit.doc_id for hit in delegation_request.evidence.hits))
    targets = target_documents(delegation_request)
    if not targets:
        return (*found, *delegation_request.series)[:MOST_DOCUMENTS] if profile == "comparator" else ()
    if len(targets) <= MOST_DOCUMENTS:
        return targets
    best = [doc_id for doc_id in found if doc_id in targets]
    return tuple(dict.fromkeys((*best, *targets)))[:MOST_DOCUMENTS]


def _count(profile: ProfileName, documents: Sequence[str], room: Room, rules: DelegationRules) -> int:
    """How many sub-agents: as many as get enough each to get anywhere, and one at least."""
    if profile != "doc_reader":
        return 1
    least_tokens = max(rules.min_remaining_tokens - rules.reserve_tokens, 1)
    most = min(len(documents), room.children, room.tokens // least_tokens)
    if rules.min_remaining_cost_usd > 0:
        most = min(most, int(room.cost_usd / rules.min_remaining_cost_usd))
    return max(most, 1)


def _share(whole: BudgetAllocation, room: Room, count: int) -> BudgetAllocation:
    """Of `count` at work side by side: the same time for each, and a share of the rest."""
    return whole.model_copy(
        update={
            "max_child_tokens": min(whole.max_child_tokens, room.tokens // count),
            "max_child_cost_usd": min(whole.max_child_cost_usd, room.cost_usd / count),
        }
    )
