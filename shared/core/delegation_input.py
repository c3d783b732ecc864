"""What the delegation policy is told of a question: from its request, its plan and its evidence. Pure.

Scores are on the scale of `shared.core.confidence`: 0-1 whatever the engine returned. A listing is looked up
by metadata, and right or empty: it scores 1 or 0.
"""

from collections.abc import Collection
from dataclasses import dataclass

from shared.core.confidence import score_spread, top_score
from shared.core.document_series import repeated_series, speaks_of_editions
from shared.core.summary_windows import CHARS_PER_TOKEN
from shared.models.conversation import Conversation
from shared.models.delegation import (
    ConversationState,
    DelegationPolicyInput,
    DocScope,
    RetrievalStats,
    RiskFlags,
    RuntimeBudget,
    SystemHealth,
)
from shared.models.runs import RunRequest
from shared.models.working import Evidence, StoredPlan

_PAGE_TOKENS = 500  # of prose; unmeasured
_PLANNING_TOKENS = 1_000  # its instructions (some 450) and the plan; unmeasured with a real model


@dataclass(frozen=True)
class Occasion:
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
    occasion: Occasion, budget: RuntimeBudget, risk: RiskFlags, health: SystemHealth
) -> DelegationPolicyInput:
    """The policy's input."""
    request = occasion.request
    return DelegationPolicyInput(
        request_id=request.run_id,
        user_id=request.user.user_id,
        thread_id=request.thread_id,
        query=occasion.stored.plan.standalone_question,
        query_intent=occasion.stored.plan.intent,
        retrieval_stats=retrieval_stats(occasion.evidence),
        doc_scope=_doc_scope(occasion),
        conversation_state=ConversationState(
            attempt_index=occasion.failures,
            prior_failures=occasion.failures,
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


def target_documents(occasion: Occasion) -> tuple[str, ...]:
    """Ids of the documents that the question names, else of those that the caller chose; may be none.

    Documents named are no target when the evidence was looked for elsewhere, too.
    """
    named = occasion.stored.doc_ids if occasion.evidence.narrowed else ()
    return tuple(dict.fromkeys(named or occasion.request.doc_ids))


def is_sensitive(evidence: Evidence, departments: Collection[str]) -> bool:
    """Whether any of the documents found belongs to one of the departments (in lower case)."""
    return any((record.department or "").casefold() in departments for record in evidence.records)


def spent_tokens(request: RunRequest) -> int:
    """About what planning the question took: models do not always tell what they used."""
    return _PLANNING_TOKENS + _tokens(request.question) + _conversation_tokens(request.conversation)


def _doc_scope(occasion: Occasion) -> DocScope:
    plan = occasion.stored.plan
    targets = target_documents(occasion)
    is_whole = plan.query_type == "DOCUMENT_SUMMARY"
    found = sum(_tokens(hit.content or hit.image_caption or "") for hit in occasion.evidence.hits)
    pages = sum(record.page_count or 1 for record in occasion.evidence.records if record.doc_id in targets)
    return DocScope(
        target_doc_ids=targets,
        estimated_tokens=max(found, pages * _PAGE_TOKENS) if is_whole else found,
        requires_full_document=is_whole,
        multi_document=plan.query_type == "COMPARISON"
        or _names_several(occasion)
        or _is_about_editions(occasion),
    )


def _names_several(occasion: Occasion) -> bool:
    """Documents that the caller chose limit the search; only those named are what the question is about."""
    return occasion.evidence.narrowed and len(set(occasion.stored.doc_ids)) > 1


def _is_about_editions(occasion: Occasion) -> bool:
    """ "In these filings", "in each period": and what was found is from several of a series."""
    if not speaks_of_editions(occasion.stored.plan.standalone_question or occasion.request.question):
        return False
    return bool(repeated_series(hit.filename for hit in occasion.evidence.hits))


def _conversation_tokens(conversation: Conversation) -> int:
    turns = sum(_tokens(turn.question) + _tokens(turn.answer) for turn in conversation.turns)
    return turns + _tokens(conversation.summary)


def _tokens(text: str) -> int:
    return int(len(text) / CHARS_PER_TOKEN)
