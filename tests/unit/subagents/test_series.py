"""Tests for comparisons without named documents, which cover all readable documents of a series."""

from dataclasses import replace

import pytest

from shared.answering.delegation_request import DelegationRequest
from shared.platform.errors import CallTimeoutError
from shared.platform.search import SearchPage, SearchRequest
from shared.retrieval.models import Hit
from shared.wiring import Services
from tests.fakes.search_index import InMemorySearchIndex
from tests.fakes.services import fake_settings
from tests.unit.subagents.delegation_requests import decided, delegation_request
from tests.unit.subagents.delegation_requests import record as record_of
from tests.world import add_record, corpus_services


async def library(*filenames: str, readers: tuple[str, ...] = ("*",)) -> Services:
    """Return services with documents whose ids are their file names. Only `readers` may read the last one."""
    services = await corpus_services(settings=fake_settings(whole_documents_tokens=0))
    for filename in filenames:
        acl = readers if filename == filenames[-1] else ("*",)
        changes = {"filename": filename, "title": filename, "status": "ready", "access_control_list": acl}
        row = record_of(filename).model_copy(update=changes)
        await add_record(services, row)
    return services


def comparison(*filenames: str, **request_changes: object) -> DelegationRequest:
    """Return a request to compare documents that the question doesn't name, with one passage of each."""
    hits = tuple(Hit(block_id=name, doc_id=name, filename=name, score=0.5) for name in filenames)
    return delegation_request(
        plan_changes={"query_type": "COMPARISON", "intent": "compare_docs"},
        evidence_changes={"hits": hits, "records": ()},
        request_changes=request_changes,
    )


async def documents_of(request: DelegationRequest, services: Services) -> tuple[str, ...]:
    outcome = await decided(request, services)
    assert outcome.delegation is not None
    return outcome.delegation.tasks[0].doc_ids


async def test_the_one_of_which_nothing_was_found_belongs_to_it() -> None:
    services = await library("Q1 NVDA.pdf", "Q2 NVDA.pdf", "Q1 AMZN.pdf", "Q3 NVDA.pdf")
    doc_ids = await documents_of(comparison("Q1 NVDA.pdf", "Q2 NVDA.pdf"), services)
    assert doc_ids == ("Q1 NVDA.pdf", "Q2 NVDA.pdf", "Q3 NVDA.pdf")


async def test_what_the_asker_may_not_read_does_not() -> None:
    services = await library("Q1 NVDA.pdf", "Q2 NVDA.pdf", "Q3 NVDA.pdf", readers=("ben",))
    doc_ids = await documents_of(comparison("Q1 NVDA.pdf", "Q2 NVDA.pdf"), services)
    assert doc_ids == ("Q1 NVDA.pdf", "Q2 NVDA.pdf")


async def test_a_choice_of_the_caller_is_not_left() -> None:
    services = await library("Q1 NVDA.pdf", "Q2 NVDA.pdf", "Q3 NVDA.pdf")
    chosen = comparison("Q1 NVDA.pdf", "Q2 NVDA.pdf", project_id="another")
    assert await documents_of(chosen, services) == ("Q1 NVDA.pdf", "Q2 NVDA.pdf")


async def test_documents_that_are_no_editions_limit_no_search() -> None:
    services = await library("Q1 NVDA.pdf", "Q2 NVDA.pdf", "Q1 AMZN.pdf")
    doc_ids = await documents_of(comparison("Q1 NVDA.pdf", "Q1 AMZN.pdf"), services)
    assert doc_ids == ()


async def test_there_are_never_more_than_fit() -> None:
    services = await library(*(f"Q{n} NVDA.pdf" for n in range(9)))
    assert len(await documents_of(comparison("Q1 NVDA.pdf", "Q2 NVDA.pdf"), services)) == 6


async def test_a_look_up_that_fails_costs_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    services = await library("Q1 NVDA.pdf", "Q2 NVDA.pdf", "Q3 NVDA.pdf")

    async def away(index: InMemorySearchIndex, request: SearchRequest) -> SearchPage:
        raise CallTimeoutError("away")

    monkeypatch.setattr(InMemorySearchIndex, "search", away)
    doc_ids = await documents_of(comparison("Q1 NVDA.pdf", "Q2 NVDA.pdf"), services)
    assert doc_ids == ("Q1 NVDA.pdf", "Q2 NVDA.pdf")


async def test_a_series_that_only_fills_up_the_passages_limits_no_search() -> None:
    services = await library("pump.pdf", "Q1 NVDA.pdf", "Q2 NVDA.pdf", "Q3 NVDA.pdf")
    request = comparison("pump.pdf", "Q1 NVDA.pdf", "Q2 NVDA.pdf")
    best, *others = request.evidence.hits
    hits = (best, *(hit.model_copy(update={"score": 0.2}) for hit in others))
    evidence = request.evidence.model_copy(update={"hits": hits})
    assert await documents_of(replace(request, evidence=evidence), services) == ()
