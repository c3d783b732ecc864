"""Decides whether to delegate a question to sub-agents, and leases slots for them.

The policy first decides as if no other sub-agent were running, which needs no store. Only if it would
delegate, it decides again with the state of the control table. Slots are acquired by compare-and-swap; if
that fails, the policy decides again. The delegating step stores the decision with its completion, so its
children start only after the step is committed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from shared.answering.control import grant, read_control
from shared.answering.control_state import ControlView
from shared.answering.delegated_documents import (
    may_read_targets,
    with_documents,
)
from shared.answering.delegation_input import budget_of, collect_policy_input, used_before
from shared.answering.delegation_request import DelegationRequest
from shared.answering.delegation_tasks import child_prefix, starts_of, tasks_of
from shared.answering.policy import REASON_WORDS, decide, decision_after_error, decision_event
from shared.answering.policy_models import DelegationPolicyOutput, RuntimeBudget
from shared.answering.profiles import PROFILES, installed_profiles
from shared.answering.services import SubagentServices
from shared.answering.situation import Situation
from shared.answering.subagent_budget import CRASH_GRACE
from shared.answering.subagent_models import Delegation, SubagentStart, SubagentTask
from shared.platform.telemetry import get_logger
from shared.runs.events import DelegationStatus, TimedEvent
from shared.runs.journal import Journal
from shared.runs.models import ReasonCode
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
# Maximum number of attempts to acquire slots. After the last one, the question is answered without
# sub-agents.
_TRIES = 3


@dataclass(frozen=True)
class DelegationOutcome:
    """Result of a delegation decision: what starts now, or what the model is told instead.

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
    """Decide whether to delegate a question to sub-agents, and log the decision.

    Errors of the policy count as `no_delegate`. Before the first turn, the policy judges the question; after
    a turn that ends with a `delegate` call, it judges the call by the same gates and budgets. The children of
    a step have the same ids in every attempt.
    """
    run_id = journal.run_id
    try:
        decision, delegation = await _Decision(delegation_request, journal, services).run()
    except Exception as failed:  # noqa: BLE001  # an error in the policy must not prevent the answer
        get_logger().warning("delegation.failed", run_id=run_id, error_type=type(failed).__name__)
        decision, delegation = decision_after_error(), None
    settings = services.settings
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
        # Sub-agents stop at their deadline. The grace period covers a restart after a worker crash.
        max(task.deadline for task in delegation.tasks) + CRASH_GRACE,
    )


def _advice(decision: DelegationPolicyOutput) -> str:
    """Return advice that the model should delegate if the question needs extensive reading, or "" if it
    doesn't.
    """
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
    """A delegation decision in progress, with its inputs."""

    request: DelegationRequest
    journal: Journal
    services: SubagentServices

    async def run(self) -> tuple[DelegationPolicyOutput, Delegation | None]:
        """Return the decision of the policy, and the delegation if slots were acquired for all its tasks.

        The policy is asked first as if all slots were free, and then with the slots in the control table.

        Slots acquired by an earlier attempt at the step count as free, because the children have the same
        ids.
        """
        settings, control = self.services.settings, self.services.subagent_control
        started, tokens, cost_usd = await used_before(self.request, self.journal)
        readable = await may_read_targets(self.request, self.services)
        if settings.subagents.enabled:
            self.request = await with_documents(self.request, self.services)
        own = child_prefix(self.request)
        max_active = settings.subagents.max_active

        def ask(view: ControlView) -> tuple[DelegationPolicyOutput, tuple[SubagentTask, ...]]:
            # Read the clock here, because the lookups above took time.
            now = datetime.now(UTC)
            budget = budget_of(self.request, settings, tokens, now)
            situation = self._situation(budget, started, cost_usd, readable, view)
            decision = decide(situation)
            return decision, tasks_of(self.request, decision, situation, now)

        decided, _ = ask(ControlView(free=max_active))
        for _ in range(_TRIES):
            if decided.decision != "delegate" or not decided.binding:
                return decided, None
            decided, tasks = ask(await read_control(settings, control, own))
            now = datetime.now(UTC)
            if tasks and await grant(settings, control, _deadlines(tasks), now):
                request = self.request
                delegation = Delegation(
                    step=request.step,
                    decided=decided,
                    tasks=tasks,
                    decided_at=now,
                    asker=request.stored.asker,
                    language=request.stored.plan.language,
                )
                return decided, delegation
        # Other instances took the free slots each time, so decide as if none were free.
        return ask(ControlView(active=max_active))[0], None

    def _situation(
        self, budget: RuntimeBudget, started: int, spent_usd: float, readable: bool, control: ControlView
    ) -> Situation:
        request, settings = self.request, self.services.settings
        installed = installed_profiles(has_web_search=self.services.web_search is not None)
        return Situation(
            policy_input=collect_policy_input(request, settings, budget, control),
            settings=settings,
            installed_profiles=installed,
            # The search tools were just used successfully. The web search isn't tested: if it fails, the
            # sub-agent continues with a simpler profile.
            healthy_tools=tuple(dict.fromkeys(tool for name in installed for tool in PROFILES[name].tools)),
            targets_readable=readable and not request.stored.names_only_missing,
            circuit_closed=control.circuit_closed,
            web_allowed=request.web_allowed and self.services.web_search is not None,
            started=started,
            spent_usd=spent_usd,
            free_slots=control.free,
            requested_profile=request.call.profile if request.call else None,
        )


def _deadlines(tasks: Sequence[SubagentTask]) -> dict[str, datetime]:
    return {task.child_id: task.deadline for task in tasks}
