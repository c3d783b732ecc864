"""Stored results of children, as their parent finds them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from shared.answering.delegation_request import DelegationRequest
from shared.answering.delegation_results import Collected, collect
from shared.answering.subagent_models import Delegation, Finding, FoundProof, SubagentState
from shared.retrieval.models import Hit
from shared.runs.run_files import RunFiles
from shared.wiring import Services
from tests.unit.subagents.delegation_requests import RUN, STEP, decided, record, request
from tests.unit.subagents.lines import journal_of, keep_delegation, keep_state

Kind = Literal["section", "claim", "similarity", "difference", "conflict", "web"]


def claim(text: str, *proved_by: Hit, kind: Kind = "claim", **changes: Any) -> Finding:
    """Return a finding of the given kind, with one proof from each of the given passages."""
    proofs = tuple(
        FoundProof(quote=hit.content, doc_id=hit.doc_id, block_id=hit.block_id) for hit in proved_by
    )
    return Finding(kind=kind, text=text, proofs=proofs, **changes)


def web_claim(text: str, *urls: str) -> Finding:
    proofs = tuple(FoundProof(quote="Q", url=url, title="T") for url in urls)
    return Finding(kind="web", text=text, proofs=proofs)


def state(hits: Sequence[Hit] = (), findings: Sequence[Finding] = (), **changes: Any) -> SubagentState:
    values: dict[str, Any] = {
        "child_id": f"{RUN}:s004c0",
        "profile": "comparator",
        "status": "done",
        "hits": tuple(hits),
        "records": tuple(record(doc_id) for doc_id in dict.fromkeys(hit.doc_id for hit in hits)),
        "findings": tuple(findings),
    }
    return SubagentState(**{**values, **changes})


async def delegated(delegation_request: DelegationRequest, services: Services) -> Delegation:
    """Store a request and delegate it to sub-agents. Return the stored delegation."""
    await RunFiles(services.blobs, RUN).put_request(request(question="Which pump?"))
    outcome = await decided(delegation_request, services)
    assert outcome.delegation is not None
    return outcome.delegation


async def leaves(services: Services, left: SubagentState, index: int = 0) -> None:
    await keep_state(services, RUN, STEP, left, index)


async def past_its_time(services: Services, delegation: Delegation) -> None:
    """Change the stored deadline of the children to a second ago."""
    over = datetime.now(UTC) - timedelta(seconds=1)
    tasks = tuple(task.model_copy(update={"deadline": over}) for task in delegation.tasks)
    late = delegation.model_copy(update={"tasks": tasks})
    journal = await journal_of(services, RUN)
    await services.run_log.delete(RUN)
    await keep_delegation(services, RUN, late)
    await services.run_log.append(RUN, [line for line in journal.events if line.child is not None])


async def collected(delegation_request: DelegationRequest, services: Services) -> Collected:
    return await collect(await journal_of(services, RUN), STEP, delegation_request.evidence, services)
