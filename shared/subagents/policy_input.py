"""The input of the delegation policy: rules, installed profiles, remaining budget, load.

Whether the circuit is closed and how busy sub-agents are is known to one row in a table; it is asked for it
only when the answer without it is to delegate (`delegation`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import get_args

from shared.platform.blobs import BlobStore
from shared.platform.concurrency import run_together
from shared.platform.errors import GroundworkError
from shared.platform.settings import Settings
from shared.platform.telemetry import get_logger
from shared.platform.tokens import CHARS_PER_TOKEN
from shared.retrieval.document_names import repeated_series, series_of, speaks_of_editions, words_of
from shared.retrieval.fusion import score_spread, top_score
from shared.retrieval.models import DocumentRecord
from shared.runs.models import Conversation, ProfileName, RunRequest, SubagentTool
from shared.runs.working_memory import Evidence, StoredPlan
from shared.subagents.artifacts import children_of, delegations_of
from shared.subagents.control import ControlView
from shared.subagents.policy_models import (
    ConversationState,
    DelegationPolicyInput,
    DelegationRules,
    DocScope,
    RetrievalStats,
    RiskFlags,
    RuntimeBudget,
    SystemHealth,
)
from shared.subagents.services import SubagentServices
from shared.tools.searches import StepSearches, caller_limits
from shared.tools.web_search import WebSearch

_PAGE_TOKENS = 500  # of prose; unmeasured
_PLANNING_TOKENS = 1_000  # its instructions (some 450) and the plan; unmeasured with a real model


@dataclass(frozen=True)
class DelegationRequest:
    """A question with what was gathered for it, before its answer is written.

    Attributes:
        failures: answers to it so far that there is none.
        series: further documents of the series that evidence for a comparison is from.
        step: that writes it, or delegates first.
        repeated: an earlier attempt at that step began, and may have decided.
        tokens: that the run has used so far, earlier sub-agents included; 0 = nobody counted.
    """

    request: RunRequest
    stored: StoredPlan
    evidence: Evidence
    failures: int = 0
    series: tuple[str, ...] = ()
    step: int = 0
    repeated: bool = False
    tokens: int = 0


def describe(
    delegation_request: DelegationRequest, budget: RuntimeBudget, risk: RiskFlags, health: SystemHealth
) -> DelegationPolicyInput:
    """The policy's input."""
    request = delegation_request.request
    return DelegationPolicyInput(
        request_id=request.run_id,
        user_id=request.user.user_id,
        thread_id=request.thread_id,
        query=delegation_request.stored.plan.standalone_question,
        query_intent=delegation_request.stored.plan.intent,
        retrieval_stats=retrieval_stats(delegation_request.evidence),
        doc_scope=_doc_scope(delegation_request),
        conversation_state=ConversationState(
            attempt_index=delegation_request.failures,
            prior_failures=delegation_request.failures,
            user_requested_deep_mode=request.deep,
        ),
        runtime_budget=budget,
        risk_flags=risk,
        system_health=health,
    )


def retrieval_stats(evidence: Evidence) -> RetrievalStats:
    """How sure evidence is. Scores that rounding carried past 0 or 1 are taken for these."""
    if not evidence.hits:
        listed = len(evidence.records)
        exact = 1.0 if listed else 0.0
        return RetrievalStats(
            top_score=exact, score_spread=exact, candidate_count=listed, docs_hit_count=listed
        )
    scores = [min(max(hit.score, 0.0), 1.0) for hit in evidence.hits]
    return RetrievalStats(
        top_score=top_score(scores),
        score_spread=score_spread(scores),
        candidate_count=len(evidence.hits),
        docs_hit_count=len({hit.doc_id for hit in evidence.hits}),
    )


def target_documents(delegation_request: DelegationRequest) -> tuple[str, ...]:
    """Ids of the documents that the question names, else of those that the caller chose; may be none.

    Documents named are no target when the evidence was looked for elsewhere, too.
    """
    named = delegation_request.stored.doc_ids if delegation_request.evidence.narrowed else ()
    return tuple(dict.fromkeys(named or delegation_request.request.doc_ids))


def is_sensitive(evidence: Evidence, departments: Collection[str]) -> bool:
    """Whether any of the documents found belongs to one of the departments (in lower case)."""
    return any((record.department or "").casefold() in departments for record in evidence.records)


def spent_tokens(request: RunRequest) -> int:
    """About what planning the question took: models do not always tell what they used."""
    return _PLANNING_TOKENS + _tokens(request.question) + _conversation_tokens(request.conversation)


def _doc_scope(delegation_request: DelegationRequest) -> DocScope:
    plan = delegation_request.stored.plan
    targets = target_documents(delegation_request)
    is_whole = plan.query_type == "DOCUMENT_SUMMARY"
    found = sum(_tokens(hit.content or hit.image_caption or "") for hit in delegation_request.evidence.hits)
    pages = sum(
        record.page_count or 1 for record in delegation_request.evidence.records if record.doc_id in targets
    )
    return DocScope(
        target_doc_ids=targets,
        estimated_tokens=max(found, pages * _PAGE_TOKENS) if is_whole else found,
        requires_full_document=is_whole,
        multi_document=plan.query_type == "COMPARISON"
        or _names_several(delegation_request)
        or _is_about_editions(delegation_request),
    )


def _names_several(delegation_request: DelegationRequest) -> bool:
    """Documents that the caller chose limit the search; only those named are what the question is about."""
    return delegation_request.evidence.narrowed and len(set(delegation_request.stored.doc_ids)) > 1


def _is_about_editions(delegation_request: DelegationRequest) -> bool:
    """ "In these filings", "in each period": and what was found is from several of a series."""
    if not speaks_of_editions(
        delegation_request.stored.plan.standalone_question or delegation_request.request.question
    ):
        return False
    return bool(repeated_series(hit.filename for hit in delegation_request.evidence.hits))


def _conversation_tokens(conversation: Conversation) -> int:
    turns = sum(_tokens(turn.question) + _tokens(turn.answer) for turn in conversation.turns)
    return turns + _tokens(conversation.summary)


def _tokens(text: str) -> int:
    return int(len(text) / CHARS_PER_TOKEN)


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
    restricted = tuple(
        tool for tool in get_args(SubagentTool) if tool in settings.subagents.restricted_tool_names
    )
    return DelegationRules(
        enabled=settings.subagents.enabled,
        max_per_request=settings.subagents.max_per_request,
        max_recursion_depth=settings.subagents.max_recursion_depth,
        max_active=settings.subagents.max_active,
        max_queue_depth=settings.subagents.max_queue_depth,
        low_top_score=settings.thresholds.low_retrieval_confidence_top_score,
        high_top_score=settings.thresholds.high_confidence_no_delegate_top_score,
        low_score_spread=settings.thresholds.low_score_spread_ambiguity,
        high_score_spread=settings.thresholds.high_score_spread_clarity,
        min_remaining_latency_ms=settings.budgets.min_remaining_latency_to_delegate_ms,
        min_remaining_tokens=settings.budgets.min_remaining_tokens_to_delegate,
        min_remaining_cost_usd=settings.budgets.min_remaining_cost_to_delegate_usd,
        reserve_latency_ms=settings.subagents.reserve_latency_ms,
        reserve_tokens=settings.subagents.reserve_tokens,
        child_min_latency_ms=settings.subagents.child_min_latency_ms,
        child_timeout_ms=settings.subagents.child_timeout_ms,
        child_max_turns=settings.subagents.child_max_turns,
        max_child_tokens=settings.budgets.max_child_tokens,
        max_child_cost_usd=settings.budgets.max_child_cost_usd,
        defer_wait_ms=settings.subagents.child_retry_backoff_ms,
        restricted_tools=restricted,
    )


def installed_profiles(web_search: WebSearch | None) -> tuple[ProfileName, ...]:
    """Profiles that there is a sub-agent for; that of the web where a search of the web is configured."""
    return _ON_DOCUMENTS if web_search is None else (*_ON_DOCUMENTS, "web_verifier")


def healthy_tools(web_search: WebSearch | None) -> tuple[SubagentTool, ...]:
    """Tools that work now: evidence was gathered just now by those that search documents.

    Whether the web can be searched is not tried beforehand: who cannot gives way to a simpler sub-agent.
    """
    return _CORPUS if web_search is None else (*_CORPUS, "web_search")


def risk_of(delegation_request: DelegationRequest, settings: Settings) -> RiskFlags:
    """What limits the tools of a sub-agent for this question."""
    return RiskFlags(
        sensitive_domain=is_sensitive(
            delegation_request.evidence, settings.subagents.sensitive_department_names
        ),
        restricted_tools_only=settings.subagents.restricted_tools_only,
        compliance_mode=settings.subagents.compliance_mode,
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


def budget_of(
    delegation_request: DelegationRequest, settings: Settings, spent: Spent, now: datetime
) -> RuntimeBudget:
    """What the question may use in all, and what is left of it."""
    # The time that a person took to answer is not the run's.
    began = delegation_request.stored.resumed_at or delegation_request.request.created_at
    elapsed_ms = max(int((now - began).total_seconds() * 1000), 0)
    max_tokens = settings.budgets.max_total_tokens_per_request
    return RuntimeBudget(
        max_total_latency_ms=settings.budgets.max_total_latency_ms,
        remaining_latency_ms=settings.budgets.max_total_latency_ms - elapsed_ms,
        max_total_tokens=max_tokens,
        remaining_tokens=max_tokens
        - max(delegation_request.tokens, spent_tokens(delegation_request.request) + spent.tokens),
        max_subagent_cost_usd=settings.budgets.max_subagent_cost_usd,
    )


async def may_read_targets(delegation_request: DelegationRequest, find: FindDocuments) -> bool:
    """Evidence was searched for with the asker's rights; what it holds nothing of is looked up with them."""
    known = {record.doc_id for record in delegation_request.evidence.records}
    unknown = [doc_id for doc_id in target_documents(delegation_request) if doc_id not in known]
    if not unknown:
        return True
    async with asyncio.timeout(_LOOKUP_TIMEOUT_S):
        return set(unknown) <= (await find(unknown)).keys()


async def rest_of_series(
    delegation_request: DelegationRequest, services: SubagentServices
) -> tuple[str, ...]:
    """Documents of the series that the evidence has several of; those that the asker may read.

    "How did it change over the quarters?" is about all of them; the best passages are from some. That they
    cannot be looked up costs nothing: a comparison can do without.
    """
    known = {hit.doc_id: hit.filename for hit in delegation_request.evidence.hits}
    series = repeated_series(known.values())[:_MOST_SERIES]
    documents = StepSearches(services).documents(delegation_request.request)
    try:
        async with asyncio.timeout(_LOOKUP_TIMEOUT_S):
            alike = await run_together(
                *(
                    documents.find_named(words_of(one), caller_limits(delegation_request.request))
                    for one in series
                )
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


async def spent_before(delegation_request: DelegationRequest, blobs: BlobStore) -> Spent:
    """What sub-agents of earlier steps have used: a first answer has none before it, and asks nobody.

    Of one that stored nothing nobody knows what it used: its whole budget counts.
    """
    if not delegation_request.failures:
        return Spent()
    async with asyncio.timeout(_LOOKUP_TIMEOUT_S):
        delegations = await delegations_of(blobs, delegation_request.request.run_id)
        children = await children_of(
            blobs, [past for past in delegations if past.step != delegation_request.step]
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
