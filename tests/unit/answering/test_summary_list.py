"""Tests for the list of a user's summaries: private, newest first, and without deleted summaries."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.access.models import UserContext
from shared.access.owner_ids import dated_id
from shared.answering.run_end import cancel_run
from shared.answering.summary_runs import begin_summary, list_summaries
from shared.platform.errors import CallerError
from shared.runs.models import SummaryOrder
from shared.wiring import Services
from tests.fakes.services import fake_services

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
ANNA, BEN = UserContext(user_id="anna"), UserContext(user_id="ben")


async def ordered(services: Services, user: UserContext, minute: int) -> str:
    key = services.settings.identity.owner_id_key
    summary_id = dated_id(user.user_id, key, NOW + timedelta(minutes=minute), f"{minute:08x}")
    order = SummaryOrder(doc_ids=("d1", "d2"))
    for _ in range(2):
        await begin_summary(order, user, services, summary_id)
    return summary_id


async def listed(services: Services, user: UserContext, limit: int = 50, cursor: str = "") -> list[str]:
    page = await list_summaries(user, services, limit, cursor)
    return [one.summary_id for one in page.summaries]


async def test_own_summaries_are_listed_newest_first_and_once() -> None:
    services = fake_services()
    oldest, middle, newest = [await ordered(services, ANNA, number) for number in range(3)]
    foreign = await ordered(services, BEN, 9)
    await cancel_run(newest, services)
    page = await list_summaries(ANNA, services, 2)
    assert [(one.summary_id, one.status, one.document_count) for one in page.summaries] == [
        (newest, "cancelled", 2),
        (middle, "running", 2),
    ]
    assert await listed(services, ANNA, cursor=page.cursor or "") == [oldest]
    assert (await list_summaries(ANNA, services, 3)).cursor is None
    assert await listed(services, BEN) == [foreign]


async def test_what_is_deleted_leaves_the_list() -> None:
    services = fake_services()
    first, second = await ordered(services, ANNA, 1), await ordered(services, ANNA, 2)
    await services.runs.delete(second)
    assert await listed(services, ANNA) == [first]


async def test_a_cursor_of_nobody_is_refused() -> None:
    services = fake_services()
    foreign = await ordered(services, BEN, 1)
    for cursor in ("x", "../", "0" * 37, foreign):
        with pytest.raises(CallerError, match="The cursor is invalid"):
            await listed(services, ANNA, cursor=cursor)
