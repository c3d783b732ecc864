"""Delegation decisions for an answer, and the resulting sub-agent tasks.

The policy first decides as if no other sub-agent were running, which needs no store. Only if it would
delegate, it decides again with the state of the control table. Slots are acquired by compare-and-swap; if
that fails, the policy decides again. The delegating step stores the decision with its completion, so its
children start only after the step is committed.

A doc_reader reads one document in depth, so several documents are split between several doc_readers. Every
other profile runs as a single sub-agent on all of its documents.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from shared.answering.budget import CRASH_GRACE, Spent
from shared.answering.control import ControlView, grant, read_control
from shared.answering.metrics import note_decision
from shared.answering.policy import cost_left_usd, decide, decision_event, policy_failed, tokens_left
from shared.answering.policy_input import (
    MOST_DOCUMENTS,
    DelegationRequest,
    budget_of,
    describe,
    may_read_targets,
    spent_before,
    task_documents,
    with_documents,
)
from shared.answering.policy_models import (
    REASON_WORDS,
    BudgetAllocation,
    DelegationPolicyOutput,
    SubagentFacts,
)
from shared.answering.profiles import PROFILES, installed_profiles
from shared.answering.services import SubagentServices
from shared.answering.subagent_models import Delegation, SubagentStart, SubagentTask
from shared.platform.concurrency import run_in_background
from shared.platform.settings import Settings
from shared.platform.telemetry import get_logger
from shared.runs.events import DelegationStatus, TimedEvent
from shared.runs.journal import Journal
from shared.runs.models import ProfileName, ReasonCode
from shared.tools.base import ToolResult

_REFUSAL_HINTS: Mapping[ReasonCode, str] = {
    "FITS_WHOLE": "Read them with read_pages.",
    "TARGET_NOT_READABLE": "Use ids of documents that a search or a list returned.",
    "CONFIDENT_FACT_LOOKUP": "Answer from the passage that was found.",
}
_ADVISED: frozenset[ReasonCode] = frozenset(
    ("INTENT_DOC_SUMMARY", "INTENT_COMPARE_DOCS", "INTENT_EVIDENCE_TRACE", "FULL_DOCUMENT_REQUIRED")
)
_UNLOGGED = {*TimedEvent.model_fields, "state", "event", "reasons"}
_MOST_KNOWN = 50  # passages that can be read in one request
_TRIES = 3  # then slots are scarce, and the answer is written without sub-agents


@dataclass(frozen=True)
class DelegationOutcome:
    """Outcome of a delegation decision.

    Attributes:
        event: public event with the decision and its reasons.
        delegation, starts, until: the delegation stored with the step, the children to start, and the time at
            which running sub-agents are stopped. None and empty unless the decision was to delegate.
        defer_s: seconds until a deferred decision about the question is repeated.
        advice: text added to the prompt if a `delegate` decision is not binding; empty = none.
        refusal: tool result for a `delegate` call that started no sub-agent.
    """

    event: DelegationStatus
    delegation: Delegation | None = None
    starts: tuple[SubagentStart, ...] = ()
    until: datetime | None = None
    defer_s: float | None = None
    advice: str = ""
    refusal: ToolResult | None = None


async def decide_delegation(
    delegation_request: DelegationRequest,
    journal: Journal,
    services: SubagentServices,
) -> DelegationOutcome:
    """Decide, log, and return the outcome with the public event.

    Errors of the policy count as `no_delegate`. Before the first turn, the policy judges the question; after
    a turn that ends with a `delegate` call, it judges the call by the same gates and budgets. The children of
    a step have the same ids in every attempt.
    """
    run_id = journal.run_id
    try:
        decision, delegation = await _Decision(delegation_request, journal, services).run()
    except Exception as failed:  # noqa: BLE001  # no error of the policy may cost the answer
        get_logger().warning("delegation.failed", run_id=run_id, error_type=type(failed).__name__)
        decision, delegation = policy_failed(), None
    settings, step = services.settings, delegation_request.step
    run_in_background(note_decision(services.subagent_metrics, run_id, step, decision, datetime.now(UTC)))
    event = decision_event(run_id, decision, settings)
    get_logger().info(event.event, **event.model_dump(mode="json", exclude=_UNLOGGED))
    if delegation is None:
        if delegation_request.call is not None:
            return DelegationOutcome(event, refusal=_refusal(decision))
        defer_s = settings.subagents.child_retry_backoff_ms / 1000 if decision.decision == "defer" else None
        return DelegationOutcome(event, defer_s=defer_s, advice=_advice(decision))
    return DelegationOutcome(
        event,
        delegation,
        starts_of(delegation.tasks),
        # Sub-agents stop at their deadline, which is extended if their worker crashed.
        max(task.deadline for task in delegation.tasks) + CRASH_GRACE,
    )


def _advice(decision: DelegationPolicyOutput) -> str:
    """Return advice if the question needs more reading than a few searches; otherwise an empty string."""
    reasons = " ".join(REASON_WORDS[code] for code in decision.reason_codes if code in _ADVISED)
    if decision.decision != "delegate" or not reasons:
        return ""
    return f"{reasons} If a few searches don't settle it, delegate to {decision.selected_profile}."


def _refusal(decision: DelegationPolicyOutput) -> ToolResult:
    codes = decision.reason_codes
    hints = [_REFUSAL_HINTS[code] for code in codes if code in _REFUSAL_HINTS]
    return {
        "success": False,
        "error": " ".join(REASON_WORDS[code] for code in codes if code != "MODEL_REQUESTED"),
        "type": "DocumentNotFoundError" if "TARGET_NOT_READABLE" in codes else "BudgetExceededError",
        "reason_codes": list(codes),
        "hints": hints or ["Answer with what has been found, or look further with the other tools."],
    }


@dataclass
class _Decision:
    """A decision and its inputs."""

    asked: DelegationRequest
    journal: Journal
    services: SubagentServices

    async def run(self) -> tuple[DelegationPolicyOutput, Delegation | None]:
        return await self._decide(
            *await spent_before(self.asked, self.journal),
            await may_read_targets(self.asked, self.services),
        )

    async def _decide(
        self, started: int, spent: Spent, readable: bool
    ) -> tuple[DelegationPolicyOutput, Delegation | None]:
        """Delegate if the policy decides so with and without the state of the control table.

        Slots acquired by an earlier attempt at the step count as free, because the children have the same
        ids.
        """
        control, limits = self.services.subagent_control, self.services.settings.subagents
        own = _ids(self.asked)
        installed = installed_profiles(has_web_search=self.services.web_search is not None)
        facts = SubagentFacts(
            installed_profiles=installed,
            # The search tools have just worked. The web search isn't probed: if it fails, the sub-agent falls
            # back to a simpler profile.
            healthy_tools=tuple(dict.fromkeys(tool for name in installed for tool in PROFILES[name].tools)),
            targets_readable=readable and not self.asked.stored.names_only_missing,
            web_allowed=self.asked.web_allowed and self.services.web_search is not None,
            started=started,
            spent_usd=spent.cost_usd,
            requested_profile=self.asked.call.profile if self.asked.call else None,
        )
        if limits.enabled:
            self.asked = await with_documents(self.asked, self.services)
        decided, _ = self._ask(facts, spent, ControlView(free=limits.max_active))
        for _ in range(_TRIES):
            if decided.decision != "delegate" or not decided.binding:
                return decided, None
            decided, tasks = self._ask(facts, spent, await read_control(self.services.settings, control, own))
            now = datetime.now(UTC)
            if tasks and await grant(self.services.settings, control, _deadlines(tasks), now):
                asked = self.asked
                delegation = Delegation(
                    step=asked.step,
                    decided=decided,
                    tasks=tasks,
                    decided_at=now,
                    asker=asked.stored.asker,
                    language=asked.stored.plan.language,
                )
                return decided, delegation
        # Other instances won every race: decide as if no slot were free.
        return self._ask(facts, spent, ControlView(active=limits.max_active))[0], None

    def _ask(
        self, facts: SubagentFacts, spent: Spent, control: ControlView
    ) -> tuple[DelegationPolicyOutput, tuple[SubagentTask, ...]]:
        """Return the decision as of now and its tasks."""
        # Read the clock last, because the lookups took time.
        now, settings = datetime.now(UTC), self.services.settings
        budget = budget_of(self.asked, settings, spent, now)
        policy_input = describe(self.asked, settings, budget, control)
        facts = facts.model_copy(update={"circuit_closed": control.circuit_closed})
        room = Room(
            children=min(settings.subagents.max_per_request - facts.started, control.free),
            tokens=tokens_left(policy_input) - settings.subagents.reserve_tokens,
            cost_usd=cost_left_usd(policy_input, facts),
        )
        decision = decide(policy_input, facts, settings)
        return decision, tasks_of(self.asked, decision, room, settings, now)


def _ids(delegation_request: DelegationRequest) -> str:
    """Return the id prefix of the children that a step starts."""
    return f"{delegation_request.request.run_id}:s{delegation_request.step:03d}c"


def _deadlines(tasks: Sequence[SubagentTask]) -> dict[str, datetime]:
    return {task.child_id: task.deadline for task in tasks}


@dataclass(frozen=True)
class Room:
    """Limits shared by all sub-agents of one decision."""

    children: int
    tokens: int
    cost_usd: float


def tasks_of(
    delegation_request: DelegationRequest,
    decided: DelegationPolicyOutput,
    room: Room,
    settings: Settings,
    now: datetime,
) -> tuple[SubagentTask, ...]:
    """Return one task per sub-agent; empty unless the decision is to delegate."""
    if decided.decision != "delegate" or decided.selected_profile is None:
        return ()
    profile = decided.selected_profile
    documents = task_documents(delegation_request, compared=profile == "comparator")
    count = _count(profile, documents, room, settings)
    budget = _share(decided.budget_allocation, room, count)
    request = delegation_request.request
    return tuple(
        SubagentTask(
            child_id=f"{_ids(delegation_request)}{index}",
            run_id=request.run_id,
            step=delegation_request.step,
            index=index,
            profile=profile,
            question=delegation_request.question,
            phrasings=() if delegation_request.call else delegation_request.stored.plan.search_queries,
            known_blocks=tuple(hit.block_id for hit in delegation_request.evidence.hits[:_MOST_KNOWN]),
            doc_ids=documents[index::count][:MOST_DOCUMENTS],
            project_id=request.project_id,
            tools=decided.tool_scope,
            budget=budget,
            deadline=now + timedelta(milliseconds=budget.max_child_latency_ms),
        )
        for index in range(count)
    )


def starts_of(tasks: Sequence[SubagentTask]) -> tuple[SubagentStart, ...]:
    """Return what the script knows of each task's sub-agent."""
    return tuple(
        SubagentStart(
            run_id=task.run_id,
            path=task.place.path,
            profile=task.profile,
            max_tokens=task.budget.max_child_tokens,
        )
        for task in tasks
    )


def _count(profile: ProfileName, documents: Sequence[str], room: Room, settings: Settings) -> int:
    """Return the number of sub-agents: as many as can each get the minimum budget, and at least one."""
    if profile != "doc_reader":
        return 1
    budgets = settings.budgets
    least_tokens = max(budgets.min_remaining_tokens_to_delegate - settings.subagents.reserve_tokens, 1)
    most = min(len(documents), room.children, room.tokens // least_tokens)
    if budgets.min_remaining_cost_to_delegate_usd > 0:
        most = min(most, int(room.cost_usd / budgets.min_remaining_cost_to_delegate_usd))
    return max(most, 1)


def _share(whole: BudgetAllocation, room: Room, count: int) -> BudgetAllocation:
    """Divide tokens and money between `count` concurrent sub-agents; each gets the full time."""
    return whole.model_copy(
        update={
            "max_child_tokens": min(whole.max_child_tokens, room.tokens // count),
            "max_child_cost_usd": min(whole.max_child_cost_usd, room.cost_usd / count),
        }
    )
