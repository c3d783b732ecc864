"""What the delegation policy is told beside the question: rules, what is installed, what is left to use.

Whether the circuit is closed and how busy sub-agents are is known to one row in a table; it is asked for it
only when an answer without it would be to delegate (`deciding`).
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import get_args

from shared.agents.gathering import caller_limits
from shared.agents.step_searches import StepSearches
from shared.agents.sub_agents.stored import children_of, delegations_of
from shared.core.delegation_input import Occasion, is_sensitive, spent_tokens, target_documents
from shared.core.document_series import repeated_series, series_of, words_of
from shared.errors import GroundworkError
from shared.models.delegation import (
    DelegationRules,
    ProfileName,
    RiskFlags,
    RuntimeBudget,
    SubagentTool,
    SystemHealth,
)
from shared.models.documents import DocumentRecord
from shared.models.subagent_control import ControlView
from shared.retrieval.together import together
from shared.services import Services
from shared.settings import Settings
from shared.telemetry import get_logger

_LOOKUP_TIMEOUT_S = 2.0  # an answer waits for it: rather no sub-agent than a long wait
_MOST_SERIES = 2  # a comparison of more is none of editions
_CORPUS: tuple[SubagentTool, ...] = ("retrieve_documents", "query_metadata")
_ON_DOCUMENTS: tuple[ProfileName, ...] = ("doc_reader", "comparator", "evidence_builder")

FindDocuments = Callable[[list[str]], Awaitable[dict[str, DocumentRecord]]]
"""Those of some documents that the asker may read, by id."""


@dataclass(frozen=True)
class Spent:
    """What sub-agents of a question have used before this decision."""

    started: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


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


def installed_profiles(services: Services) -> tuple[ProfileName, ...]:
    """Profiles that there is a sub-agent for; that of the web where a search of the web is configured."""
    return _ON_DOCUMENTS if services.web_search is None else (*_ON_DOCUMENTS, "web_verifier")


def healthy_tools(services: Services) -> tuple[SubagentTool, ...]:
    """Tools that work now: evidence was gathered just now by those that search documents.

    Whether the web can be searched is not tried beforehand: who cannot gives way to a simpler sub-agent.
    """
    return _CORPUS if services.web_search is None else (*_CORPUS, "web_search")


def risk_of(occasion: Occasion, settings: Settings) -> RiskFlags:
    """What limits the tools of a sub-agent for this question."""
    return RiskFlags(
        sensitive_domain=is_sensitive(occasion.evidence, settings.sensitive_departments),
        restricted_tools_only=settings.subagents_restricted_tools_only,
        compliance_mode=settings.subagents_compliance_mode,
    )


def health_of(control: ControlView, rules: DelegationRules, *, degraded_mode: bool) -> SystemHealth:
    """How busy sub-agents are.

    Where every slot is taken, also by those that have not begun yet, as many are at work as may be; but if
    these fill the queue, it is the queue that is waited for.
    """
    is_full = control.circuit_closed and not control.free and control.waiting < rules.max_queue_depth
    return SystemHealth(
        degraded_mode=degraded_mode,
        subagent_queue_depth=control.waiting,
        active_subagents=max(control.active, rules.max_active) if is_full else control.active,
    )


def budget_of(occasion: Occasion, settings: Settings, spent: Spent, now: datetime) -> RuntimeBudget:
    """What the question may use in all, and what is left of it."""
    # The time that a person took to answer is not the run's.
    began = occasion.stored.resumed_at or occasion.request.created_at
    elapsed_ms = max(int((now - began).total_seconds() * 1000), 0)
    max_tokens = settings.max_total_tokens_per_request
    return RuntimeBudget(
        max_total_latency_ms=settings.max_total_latency_ms,
        remaining_latency_ms=settings.max_total_latency_ms - elapsed_ms,
        max_total_tokens=max_tokens,
        remaining_tokens=max_tokens - max(occasion.tokens, spent_tokens(occasion.request) + spent.tokens),
        max_subagent_cost_usd=settings.max_subagent_cost_usd,
    )


async def may_read_targets(occasion: Occasion, find: FindDocuments) -> bool:
    """Evidence was searched for with the asker's rights; what it holds nothing of is looked up with them."""
    known = {record.doc_id for record in occasion.evidence.records}
    unknown = [doc_id for doc_id in target_documents(occasion) if doc_id not in known]
    if not unknown:
        return True
    async with asyncio.timeout(_LOOKUP_TIMEOUT_S):
        return set(unknown) <= (await find(unknown)).keys()


async def rest_of_series(occasion: Occasion, services: Services) -> tuple[str, ...]:
    """Documents of the series that the evidence has several of; those that the asker may read.

    "How did it change over the quarters?" is about all of them; the best passages are from some. That they
    cannot be looked up costs nothing: a comparison can do without.
    """
    known = {hit.doc_id: hit.filename for hit in occasion.evidence.hits}
    series = repeated_series(known.values())[:_MOST_SERIES]
    documents = StepSearches(services).documents(occasion.request)
    try:
        async with asyncio.timeout(_LOOKUP_TIMEOUT_S):
            alike = await together(
                documents.find_named(words_of(one), caller_limits(occasion.request)) for one in series
            )
    except (GroundworkError, TimeoutError) as failed:
        get_logger().warning("delegation.series", error_type=type(failed).__name__)
        return ()
    return tuple(
        record.doc_id
        for one, records in zip(series, alike, strict=True)
        for record in sorted(records, key=lambda record: record.filename, reverse=True)
        if series_of(record.filename) == one and record.doc_id not in known
    )


async def spent_before(occasion: Occasion, services: Services) -> Spent:
    """What sub-agents of earlier steps have used: a first answer has none before it, and asks nobody.

    Of one that stored nothing nobody knows what it used: its whole budget counts.
    """
    if not occasion.failures:
        return Spent()
    async with asyncio.timeout(_LOOKUP_TIMEOUT_S):
        delegations = await delegations_of(services.blobs, occasion.request.run_id)
        children = await children_of(
            services.blobs, [past for past in delegations if past.step != occasion.step]
        )
    return Spent(
        started=len(children),
        tokens=sum(
            child.state.tokens if child.state else child.task.budget.max_child_tokens for child in children
        ),
        cost_usd=sum(
            child.state.cost_usd if child.state else child.task.budget.max_child_cost_usd
            for child in children
        ),
    )
