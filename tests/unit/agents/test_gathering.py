"""Which documents and blocks an answer is written from."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.agents.agent import block_search
from shared.agents.gathering import gather_blocks, gather_documents
from shared.models.documents import DocumentRecord
from shared.models.plan import QuestionPlan
from shared.models.prompts import CallLimits
from shared.models.runs import RunRequest
from shared.models.working import Evidence
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.secured_index import SecuredIndex
from shared.services import Services
from tests.fakes.services import fake_services
from tests.unit.agents.world import ANNA, plan

DAY = datetime(2026, 1, 1, tzinfo=UTC)
REQUEST = RunRequest(run_id="r", thread_id="t", user=ANNA, question="q", created_at=DAY)


async def services_with(*names: str) -> Services:
    """A document for each name, the first the newest, with one block that everybody may read."""
    services = fake_services()
    (vector,) = await services.embedder.embed(["The pump runs."], CallLimits(timeout_s=1))
    for age, name in enumerate(names):
        record = DocumentRecord(
            doc_id=name,
            filename=name,
            title="",
            upload_date=DAY - timedelta(days=age),
            status="ready",
            access_control_list=("*",),
        )
        block: dict[str, Any] = {
            "block_id": f"{name}-1",
            "doc_id": name,
            "filename": name,
            "block_type": "text",
            "content": "The pump runs.",
            "content_vector": list(vector),
            "access_control_list": ["*"],
        }
        await services.documents_index.upload([record.model_dump(mode="json")])
        await services.content_index.upload([block])
    return services


def documents(services: Services) -> DocumentSearch:
    return DocumentSearch(SecuredIndex(services.documents_index, ANNA))


async def blocks_for(services: Services, wanted: QuestionPlan) -> Evidence:
    search = (block_search(services, ANNA), documents(services))
    return await gather_blocks(REQUEST, wanted, search, top_k=10, widened=False)


async def test_a_listing_tells_how_many_documents_there_are() -> None:
    services = await services_with(*(f"file-{number}.txt" for number in range(60)))
    found = await gather_documents(REQUEST, plan(query_type="LISTING"), documents(services))
    assert (len(found.records), found.total) == (50, 60)


@pytest.mark.parametrize(
    ("references", "narrowed"),
    [
        (("report-2022.pdf",), True),
        (("report 2022",), True),
        (("annual-report-2019.pdf",), False),
        (("", "  "), False),
    ],
)
async def test_only_a_document_that_is_really_named_narrows_the_search(
    references: tuple[str, ...], narrowed: bool
) -> None:
    services = await services_with("report-2022.pdf", "report-2023.pdf", "readme")
    found = await blocks_for(services, plan(document_references=references))
    assert found.narrowed is narrowed
    assert (len({hit.doc_id for hit in found.hits}) == 1) is narrowed


async def test_a_file_that_is_older_than_the_newest_hundred_is_found_by_its_name() -> None:
    services = await services_with(*(f"file-{number}.txt" for number in range(120)), "old.pdf")
    found = await blocks_for(services, plan(document_references=(" old.pdf ",)))
    assert {hit.doc_id for hit in found.hits} == {"old.pdf"}


async def test_a_name_that_fits_too_many_documents_narrows_nothing() -> None:
    services = await services_with(*(f"report-{letter}.pdf" for letter in "abcdefg"))
    found = await blocks_for(services, plan(document_references=("report",)))
    assert not found.narrowed
    assert len({hit.doc_id for hit in found.hits}) == 7
