"""The list of a person's summaries: theirs alone, newest first, gone with what it lists."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.access.models import UserContext
from shared.platform.errors import CallerError
from shared.platform.names import WORK
from shared.summaries.models import SummaryEnd, SummaryOrder, SummaryRequest
from shared.summaries.own_list import add_to_list, forget_list, list_summaries, remove_from_list
from shared.summaries.store import SummaryStore
from tests.fakes.blob_store import InMemoryBlobStore

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
ANNA, BEN = UserContext(user_id="anna"), UserContext(user_id="ben")


async def ordered(
    blobs: InMemoryBlobStore, user: UserContext, summary_id: str, minute: int
) -> SummaryRequest:
    at = NOW + timedelta(minutes=minute)
    request = SummaryRequest(
        summary_id=summary_id,
        user=user,
        order=SummaryOrder(doc_ids=("d1", "d2")),
        created_at=at,
        map_until=at,
        children_until=at,
        deadline=at,
    )
    await SummaryStore(blobs, summary_id).keep_request(request)
    await add_to_list(request, blobs)
    await add_to_list(request, blobs)
    return request


async def listed(blobs: InMemoryBlobStore, user: UserContext, limit: int = 50, cursor: str = "") -> list[str]:
    page = await list_summaries(user, blobs, limit, cursor)
    return [one.summary_id for one in page.summaries]


async def test_own_summaries_are_listed_newest_first_and_once() -> None:
    blobs = InMemoryBlobStore()
    for number in range(3):
        await ordered(blobs, ANNA, f"s{number}", number)
    await ordered(blobs, BEN, "s9", 9)
    end = SummaryEnd(status="failed", finished_at=NOW, error="It failed.", error_type="TimeoutError")
    await SummaryStore(blobs, "s2").put_end(end)
    page = await list_summaries(ANNA, blobs, 2)
    assert [(one.summary_id, one.status, one.document_count) for one in page.summaries] == [
        ("s2", "failed", 2),
        ("s1", "running", 2),
    ]
    assert await listed(blobs, ANNA, cursor=page.cursor or "") == ["s0"]
    assert await listed(blobs, BEN) == ["s9"]


async def test_what_is_deleted_leaves_the_list() -> None:
    blobs = InMemoryBlobStore()
    first, _ = await ordered(blobs, ANNA, "s1", 1), await ordered(blobs, ANNA, "s2", 2)
    await SummaryStore(blobs, "s2").delete()  # as far as a deletion that broke off came
    assert await listed(blobs, ANNA) == ["s1"]
    await remove_from_list(first, blobs)
    assert await listed(blobs, ANNA) == []
    await ordered(blobs, BEN, "s3", 3)
    await forget_list("anna", blobs)
    assert [blob.name async for blob in blobs.list_blobs(WORK, "summary-lists/")] != []
    await forget_list("ben", blobs)
    assert [blob.name async for blob in blobs.list_blobs(WORK, "summary-lists/")] == []


@pytest.mark.parametrize("cursor", ["x", "../", "1-s", "9" * 14])
async def test_a_cursor_of_nobody_is_refused(cursor: str) -> None:
    with pytest.raises(CallerError, match="Invalid cursor"):
        await listed(InMemoryBlobStore(), ANNA, cursor=cursor)
