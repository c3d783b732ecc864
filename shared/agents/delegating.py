"""Asking the delegation policy: once for each answer, on the evidence that it would be written from.

The decision is logged and told to readers. No profile is installed: no child orchestration exists that would
run one, so each decision says `SUBAGENTS_UNAVAILABLE`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, get_args

from shared.core.delegation import decide, decision_event, policy_failed
from shared.core.delegation_input import (
    Occasion,
    describe,
    is_sensitive,
    spent_tokens,
    target_documents,
)
from shared.models.delegation import (
    REASON_WORDS,
    DelegationPolicyOutput,
    DelegationRules,
    ProfileName,
    RiskFlags,
    RuntimeBudget,
    SubagentFacts,
    SubagentTool,
    SystemHealth,
)
from shared.models.documents import DocumentRecord
from shared.models.events import EventName
from shared.settings import Settings
from shared.telemetry import get_logger

INSTALLED_PROFILES: tuple[ProfileName, ...] = ()
# Evidence was gathered by them just now. Nothing here searches the web.
_HEALTHY_TOOLS: tuple[SubagentTool, ...] = ("retrieve_documents", "query_metadata")
_LOOKUP_TIMEOUT_S = 2.0  # an answer waits for it: rather no sub-agent than a long wait

FindDocuments = Callable[[list[str]], Awaitable[dict[str, DocumentRecord]]]
"""Those of some documents that the asker may read, by id."""


async def delegation_status(
    occasion: Occasion, settings: Settings, find: FindDocuments
) -> tuple[EventName, dict[str, Any]]:
    """Decide, log, and give the event for readers. Never raises: a policy that fails costs no answer."""
    rules = rules_of(settings)
    try:
        decided = await _decide(occasion, settings, rules, find)
    except Exception as failed:  # noqa: BLE001  # contracts.md, section 4: any error is a no_delegate
        get_logger().warning(
            "delegation.failed", run_id=occasion.request.run_id, error_type=type(failed).__name__
        )
        decided = policy_failed()
    event = decision_event(occasion.request.run_id, decided, rules).model_dump(mode="json")
    name = event.pop("event")
    get_logger().info(name, **event)
    reasons = [REASON_WORDS[code] for code in decided.reason_codes]
    return "STATUS", {"state": "delegation", "event": name, **event, "reasons": reasons}


def rules_of(settings: Settings) -> DelegationRules:
    """The policy's thresholds and limits, as this deployment sets them."""
    restricted = tuple(tool for tool in get_args(SubagentTool) if tool in settings.restricted_subagent_tools)
    return DelegationRules(
        enabled=settings.subagents_enabled,
        max_per_request=settings.subagents_max_per_request,
        max_recursion_depth=settings.subagents_max_recursion_depth,
        max_active=settings.subagents_max_active,
        max_queue_depth=settings.subagents_max_queue_depth,
        low_top_score=settings.low_retrieval_confidence_top_score,
        high_top_score=settings.high_confidence_no_delegate_top_score,
        low_score_spread=settings.low_score_spread_ambiguity,
        high_score_spread=settings.high_score_spread_clarity,
        min_remaining_latency_ms=settings.min_remaining_latency_to_delegate_ms,
        min_remaining_tokens=settings.min_remaining_tokens_to_delegate,
        min_remaining_cost_usd=settings.min_remaining_cost_to_delegate_usd,
        reserve_latency_ms=settings.subagents_reserve_latency_ms,
        reserve_tokens=settings.subagents_reserve_tokens,
        child_min_latency_ms=settings.subagents_child_min_latency_ms,
        child_timeout_ms=settings.subagents_child_timeout_ms,
        child_max_turns=settings.subagents_child_max_turns,
        max_child_tokens=settings.max_child_tokens,
        max_child_cost_usd=settings.max_child_cost_usd,
        defer_wait_ms=settings.subagents_child_retry_backoff_ms,
        restricted_tools=restricted,
    )


async def _decide(
    occasion: Occasion, settings: Settings, rules: DelegationRules, find: FindDocuments
) -> DelegationPolicyOutput:
    risk = RiskFlags(
        sensitive_domain=is_sensitive(occasion.evidence, settings.sensitive_departments),
        restricted_tools_only=settings.subagents_restricted_tools_only,
        compliance_mode=settings.subagents_compliance_mode,
    )
    facts = SubagentFacts(
        installed_profiles=INSTALLED_PROFILES,
        healthy_tools=_HEALTHY_TOOLS,
        targets_readable=await _may_read_targets(occasion, find),
    )
    # The time comes last: what was looked up took some of it.
    health = SystemHealth(degraded_mode=settings.subagents_degraded_mode)
    return decide(describe(occasion, _budget(occasion, settings), risk, health), facts, rules)


async def _may_read_targets(occasion: Occasion, find: FindDocuments) -> bool:
    """Evidence was searched for with the asker's rights; what it holds nothing of is looked up with them."""
    known = {record.doc_id for record in occasion.evidence.records}
    unknown = [doc_id for doc_id in target_documents(occasion) if doc_id not in known]
    if not unknown:
        return True
    async with asyncio.timeout(_LOOKUP_TIMEOUT_S):
        return set(unknown) <= (await find(unknown)).keys()


def _budget(occasion: Occasion, settings: Settings) -> RuntimeBudget:
    # The time that a person took to answer is not the run's.
    began = occasion.stored.resumed_at or occasion.request.created_at
    elapsed_ms = max(int((datetime.now(UTC) - began).total_seconds() * 1000), 0)
    max_tokens = settings.max_total_tokens_per_request
    return RuntimeBudget(
        max_total_latency_ms=settings.max_total_latency_ms,
        remaining_latency_ms=settings.max_total_latency_ms - elapsed_ms,
        max_total_tokens=max_tokens,
        remaining_tokens=max_tokens - spent_tokens(occasion.request),
        max_subagent_cost_usd=settings.max_subagent_cost_usd,
    )
