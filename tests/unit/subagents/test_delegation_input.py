"""Tests for the facts about a question that the delegation policy receives."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from shared.answering.control_state import ControlView
from shared.answering.delegated_documents import target_documents
from shared.answering.delegation_input import collect_policy_input, planning_tokens, retrieval_stats
from shared.answering.delegation_request import DelegationRequest
from shared.answering.policy_models import DelegationPolicyInput, DocScope, RetrievalStats, RuntimeBudget
from shared.retrieval.models import DocumentRecord, Hit
from shared.runs.evidence import Evidence, StoredPlan
from shared.runs.models import Conversation, ConversationTurn, RunRequest
from tests.fakes.services import fake_settings
from tests.world import ANNA, plan

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def hit(doc_id: str, score: float, content: str = "") -> Hit:
    return Hit(
        block_id=f"{doc_id}-{score}", doc_id=doc_id, filename=f"{doc_id}.pdf", content=content, score=score
    )


def record(doc_id: str, **changes: Any) -> DocumentRecord:
    return DocumentRecord(doc_id=doc_id, filename=f"{doc_id}.pdf", upload_date=NOW, **changes)


def request(**changes: Any) -> RunRequest:
    values = {"run_id": "run-1", "thread_id": "thread-1", "user": ANNA, "question": "?", "created_at": NOW}
    return RunRequest.model_validate({**values, **changes})


def delegation_request(
    evidence: Evidence, stored: StoredPlan | None = None, **request_changes: Any
) -> DelegationRequest:
    return DelegationRequest(request(**request_changes), stored or StoredPlan(plan=plan()), evidence)


def scope(delegation_request: DelegationRequest) -> DocScope:
    return policy_input_of(delegation_request).doc_scope


def test_scores_are_those_of_retrieval() -> None:
    scores = {"a": (0.9, 0.3), "b": (0.5, 0.2), "c": (0.4, 0.1)}
    hits = tuple(hit(doc_id, score) for doc_id, pair in scores.items() for score in pair)
    stats = retrieval_stats(Evidence(hits=hits))
    assert stats.top_score == 0.9
    assert stats.score_spread == pytest.approx(0.7)  # the lead over the fifth
    assert (stats.candidate_count, stats.docs_hit_count) == (6, 3)


def test_scores_past_the_scale_are_taken_for_its_ends() -> None:
    stats = retrieval_stats(Evidence(hits=(hit("a", 1.0000001), hit("a", -0.0000001))))
    assert (stats.top_score, stats.score_spread) == (1.0, 1.0)


def test_a_listing_is_right_or_empty() -> None:
    listed = retrieval_stats(Evidence(records=(record("a"), record("b"))))
    assert (listed.top_score, listed.candidate_count, listed.docs_hit_count) == (1.0, 2, 2)
    nothing = RetrievalStats(top_score=0, score_spread=0, candidate_count=0, docs_hit_count=0)
    assert retrieval_stats(Evidence()) == nothing


def test_documents_named_are_the_target_and_else_those_chosen() -> None:
    stored = StoredPlan(plan=plan(), doc_ids=("a", "b"))
    assert target_documents(delegation_request(Evidence(narrowed=True), stored, doc_ids=("c",))) == ("a", "b")
    assert target_documents(delegation_request(Evidence(), stored, doc_ids=("c", "c"))) == ("c",)
    assert target_documents(delegation_request(Evidence(), stored)) == ()


def test_a_summary_needs_its_document_whole() -> None:
    stored = StoredPlan(plan=plan(query_type="DOCUMENT_SUMMARY"), doc_ids=("a",))
    evidence = Evidence(
        hits=(hit("a", 0.5, "x" * 36),), records=(record("a", page_count=40), record("b")), narrowed=True
    )
    assert scope(delegation_request(evidence, stored)) == DocScope(
        target_doc_ids=("a",), estimated_tokens=10, requires_full_document=True
    )
    measured = replace(delegation_request(evidence, stored), document_tokens=20_000)
    assert scope(measured).estimated_tokens == 20_000


def test_a_question_about_a_detail_needs_what_was_found() -> None:
    evidence = Evidence(hits=(hit("a", 0.5, "x" * 36), hit("b", 0.4, "x" * 72)))
    assert scope(delegation_request(evidence)) == DocScope(estimated_tokens=30)


@pytest.mark.parametrize(
    ("query_type", "doc_ids", "narrowed", "several"),
    [
        ("COMPARISON", (), False, True),
        ("CONTENT_SEARCH", ("a", "b"), True, True),
        ("CONTENT_SEARCH", ("a", "b"), False, False),
        ("CONTENT_SEARCH", ("a",), True, False),
    ],
)
def test_several_documents_are_compared_or_named(
    query_type: str, doc_ids: tuple[str, ...], narrowed: bool, several: bool
) -> None:
    stored = StoredPlan(plan=plan(query_type=query_type), doc_ids=doc_ids)
    assert scope(delegation_request(Evidence(narrowed=narrowed), stored)).multi_document is several


def test_documents_that_the_caller_chose_make_no_question_about_several() -> None:
    assert not scope(delegation_request(Evidence(), doc_ids=("a", "b"))).multi_document


def policy_input_of(delegation_request: DelegationRequest, **settings: Any) -> DelegationPolicyInput:
    budget = RuntimeBudget(remaining_latency_ms=1, remaining_tokens=1)
    idle = ControlView(circuit_closed=True, active=0, waiting=0, free=1)
    return collect_policy_input(delegation_request, fake_settings(**settings), budget, idle)


def test_the_policy_is_told_who_asks_what() -> None:
    policy_input = policy_input_of(DelegationRequest(request(), StoredPlan(plan=plan()), Evidence()))
    assert (policy_input.request_id, policy_input.user_id, policy_input.thread_id) == (
        "run-1",
        "anna",
        "thread-1",
    )
    assert policy_input.query == plan().standalone_question


def test_a_document_of_a_sensitive_department_makes_the_question_sensitive() -> None:
    sensitive_request = delegation_request(
        Evidence(records=(record("a"), record("b", department="Human Resources")))
    )
    assert policy_input_of(
        sensitive_request, subagents_sensitive_departments="human resources"
    ).risk_flags.sensitive_domain
    assert not policy_input_of(
        sensitive_request, subagents_sensitive_departments="Legal"
    ).risk_flags.sensitive_domain
    assert not policy_input_of(sensitive_request).risk_flags.sensitive_domain


def test_what_was_said_before_counts_as_read() -> None:
    before = Conversation(summary="s" * 36, turns=(ConversationTurn(question="q" * 36, answer="a" * 72),))
    assert planning_tokens(request(conversation=before)) - planning_tokens(request()) == 40


@pytest.mark.parametrize(
    ("question", "doc_ids", "several"),
    [
        ("What do these reports say on lawsuits?", ("report 2022", "report 2023"), True),
        ("What do these reports say on lawsuits?", ("report 2022", "handbook"), False),
        ("What does the latest report say on lawsuits?", ("report 2022", "report 2023"), False),
    ],
)
def test_a_question_about_editions_is_about_several_documents(
    question: str, doc_ids: tuple[str, ...], several: bool
) -> None:
    stored = StoredPlan(plan=plan(standalone_question=question))
    evidence = Evidence(hits=tuple(hit(name, 0.7) for name in doc_ids))
    assert scope(delegation_request(evidence, stored)).multi_document is several
