"""Listings by the filters of a plan, over a search service, return exactly the matching documents."""

from datetime import UTC, datetime
from typing import Any

import pytest

from shared.access.models import UserContext
from shared.answering.listing import gather_documents
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.secured_index import SecuredIndex
from shared.runs.evidence import Evidence, StoredPlan
from shared.runs.models import RunRequest
from shared.runs.plan import PlanFilter
from tests.contract.tools.conftest import World
from tests.contract.tools.corpus import ANNA, BEN
from tests.world import plan

pytestmark = pytest.mark.contract


async def listed(
    world: World, *filters: tuple[str, tuple[str, ...]], user: UserContext = ANNA, **request: Any
) -> Evidence:
    """Return the result of a listing with these filters."""
    listing_plan = plan(
        query_type="LISTING",
        standalone_question="Which of these do we have?",
        search_queries=(),
        filters=tuple(
            PlanFilter.model_validate({"field": field, "values": values}) for field, values in filters
        ),
    )
    run_request = RunRequest(
        run_id="r",
        thread_id="t",
        user=user,
        question="q",
        created_at=request.pop("at", datetime(2025, 1, 15, 12, tzinfo=UTC)),
        **request,
    )
    documents = DocumentSearch(
        SecuredIndex(world.services().documents_index, user, world.services().documents)
    )
    return await gather_documents(run_request, StoredPlan(plan=listing_plan), documents)


def ids(evidence: Evidence) -> set[str]:
    return {record.doc_id for record in evidence.records}


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([("file_type", ("xlsx", "csv"))], {"report-2023"}),
        ([("file_type", (".PDF",))], {"manual", "report-2024"}),
        ([("language", ("de-DE",))], {"report-2024"}),
        ([("document_type", ("reports",))], {"report-2023", "report-2024"}),
        ([("department", ("Finance",)), ("language", ("en",))], {"report-2023"}),
        ([("tags", ("safety",)), ("document_type", ("manual",))], {"manual"}),
        ([("author", ("Writer",))], {"manual"}),
        ([("author", ("aw",))], {"manual"}),
        ([("upload_date", ("2024-01-01", "2024-12-31"))], {"manual", "report-2023"}),
        ([("upload_date", ("2025-01-15", "2025-01-15"))], {"report-2024"}),
        ([("upload_date", ("2025-01-15",))], {"report-2024"}),
        ([("upload_date", ("", "2024-02-01"))], {"report-2023"}),
        ([("document_date", ("2023-12-31", "2023-12-31"))], {"report-2023"}),
    ],
)
async def test_a_listing_holds_what_meets_the_filters_and_no_more(
    world: World, filters: list[tuple[str, tuple[str, ...]]], expected: set[str]
) -> None:
    evidence = await listed(world, *filters)
    assert ids(evidence) == expected
    assert (evidence.total, evidence.unmatched) == (len(expected), "")
    assert all(field.replace("_", " ") in evidence.filters for field, _ in filters)


async def test_a_day_is_the_one_of_the_asker(world: World) -> None:
    # report-2024 was uploaded at midnight UTC, which was still the previous day in New York.
    for timezone, day in (("UTC", "2025-01-15"), ("America/New_York", "2025-01-14")):
        assert ids(await listed(world, ("upload_date", (day, day)), timezone=timezone)) == {"report-2024"}
    assert ids(await listed(world, ("upload_date", ("2025-01-15",)), timezone="America/New_York")) == set()


async def test_what_no_document_has_is_reported(world: World) -> None:
    by_author = await listed(world, ("author", ("Nobody Known",)), ("language", ("en",)))
    assert (by_author.unmatched, by_author.filters) == ("author: Nobody Known", "language: en")
    assert ids(by_author) == {"manual", "report-2023"}
    none = await listed(world, ("file_type", ("vtt",)))
    assert (none.records, none.total, none.filters) == ((), 0, "file type: vtt")
    no_day = await listed(world, ("upload_date", ("last spring",)))
    assert no_day.unmatched == "upload date: last spring"


async def test_a_filter_shows_nobody_what_is_not_theirs(world: World) -> None:
    secret = await listed(world, ("document_type", ("secret",)))
    assert secret.unmatched == "document type: secret"
    assert "payroll" not in ids(secret)
    assert ids(await listed(world, ("document_type", ("secret",)), user=BEN)) == {"payroll"}
