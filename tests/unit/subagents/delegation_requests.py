"""Questions with their evidence, in the form in which a run decides about delegation."""

from datetime import UTC, datetime, timedelta
from typing import Any

from shared.answering.delegation import DelegationOutcome, decide_delegation
from shared.answering.delegation_request import DelegationRequest
from shared.retrieval.models import DocumentRecord, Hit
from shared.runs.evidence import Evidence, StoredPlan
from shared.runs.models import RunRequest
from shared.wiring import Services
from tests.fakes.services import fake_services, fake_settings
from tests.fakes.stores_subagents import InMemoryControlStore
from tests.unit.subagents.lines import journal_of, keep_delegation
from tests.world import ANNA, add_record, plan

RUN = "run-1"
STEP = 4


def record(doc_id: str, **changes: Any) -> DocumentRecord:
    return DocumentRecord(doc_id=doc_id, filename=f"{doc_id}.pdf", upload_date=datetime.now(UTC), **changes)


def long_record(doc_id: str) -> DocumentRecord:
    """Return the record of a document that is too long for a prompt."""
    return record(doc_id, page_count=100)


def hit(doc_id: str, place: int = 0, score: float = 0.5, content: str = "") -> Hit:
    return Hit(
        block_id=f"{doc_id}-{place}", doc_id=doc_id, filename=f"{doc_id}.pdf", score=score, content=content
    )


def request(**changes: Any) -> RunRequest:
    values: dict[str, Any] = {
        "run_id": RUN,
        "thread_id": "thread-1",
        "user": ANNA,
        "question": "Which secret pump?",
        "created_at": datetime.now(UTC),
    }
    return RunRequest(**{**values, **changes})


def delegation_request(
    *,
    asked_s_ago: float = 0,
    resumed_s_ago: float | None = None,
    plan_changes: dict[str, Any] | None = None,
    doc_ids: tuple[str, ...] = (),
    evidence_changes: dict[str, Any] | None = None,
    request_changes: dict[str, Any] | None = None,
    **changes: Any,
) -> DelegationRequest:
    """Return a request for a decision on a deep question asked just now, with five equally scored passages of
    one document.
    """
    now = datetime.now(UTC)
    began = None if resumed_s_ago is None else now - timedelta(seconds=resumed_s_ago)
    hits = tuple(hit("manual", place) for place in range(5))
    evidence = {
        "hits": hits,
        "records": (record("manual"),),
        "narrowed": bool(doc_ids),
        **(evidence_changes or {}),
    }
    return DelegationRequest(
        request(created_at=now - timedelta(seconds=asked_s_ago), **{"deep": True, **(request_changes or {})}),
        StoredPlan(plan=plan(**(plan_changes or {})), doc_ids=doc_ids),
        Evidence.model_validate(evidence),
        step=STEP,
        began=began,
        **{"web_allowed": True, **changes},
    )


def comparison(
    *documents: str, names_documents: bool = True, language: str = "en", **changes: Any
) -> DelegationRequest:
    """Return a request for a comparison of long documents, with two passages of each."""
    hits = tuple(hit(doc_id, place) for place in range(2) for doc_id in documents)
    return delegation_request(
        plan_changes={"query_type": "COMPARISON", "intent": "compare_docs", "language": language},
        doc_ids=documents if names_documents else (),
        evidence_changes={"hits": hits, "records": tuple(map(long_record, documents))},
        **changes,
    )


def summary(*documents: str, **changes: Any) -> DelegationRequest:
    """Return a request for a summary of long documents that the question names."""
    return delegation_request(
        plan_changes={"query_type": "DOCUMENT_SUMMARY", "intent": "doc_summary"},
        doc_ids=documents,
        evidence_changes={"hits": tuple(map(hit, documents)), "records": tuple(map(long_record, documents))},
        **changes,
    )


def services_with(control: InMemoryControlStore | None = None, **settings: Any) -> Services:
    """Return services with the given delegation settings and state of sub-agents."""
    replaced = {"subagent_control": control} if control else {}
    return fake_services(settings=fake_settings(**settings), **replaced)


async def library(services: Services, *doc_ids: str) -> Services:
    """Add documents that everybody may read, and return the services."""
    for doc_id in doc_ids:
        row = record(doc_id, status="ready", access_control_list=("*",))
        await add_record(services, row)
    return services


async def decided(
    delegation_request: DelegationRequest, services: Services, *, completed: bool = True
) -> DelegationOutcome:
    """Decide whether to delegate. If `completed`, also store the delegation, as a completed step does."""
    run_id = delegation_request.request.run_id
    outcome = await decide_delegation(delegation_request, await journal_of(services, run_id), services)
    if completed and outcome.delegation is not None:
        await keep_delegation(services, run_id, outcome.delegation)
    return outcome
