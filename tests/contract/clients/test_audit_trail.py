"""The contract of the audit trail, in memory and with Azurite's tables."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.access.audit_trail import AuditFilter, AuditTrail
from shared.access.models import AuditEntry
from shared.platform.tables import Table
from shared.platform.telemetry import pseudonym

pytestmark = pytest.mark.attack("audit trail")

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ALL = AuditFilter(NOON - 1000 * HOUR, NOON + 1000 * HOUR)


@pytest.fixture
def trail(table: Table) -> AuditTrail:
    return AuditTrail(table)


def entry(at: datetime = NOON, **fields: Any) -> AuditEntry:
    return AuditEntry(**{"user_id": "anna", "action": "page", "doc_ids": ("d1",), **fields, "at": at})


async def test_nothing_was_recorded_yet(trail: AuditTrail) -> None:
    page = await trail.page(ALL, 10)
    assert (page.entries, page.cursor) == ((), None)
    assert await trail.pseudonymise("anna") == 0


async def test_entries_come_newest_first_page_by_page(trail: AuditTrail) -> None:
    entries = [entry(NOON + index * HOUR / 2, origin="::1") for index in range(5)]
    for one in entries:
        await trail.add(one)
    paged_entries: list[AuditEntry] = []
    cursor = ""
    while True:
        page = await trail.page(ALL, 2, cursor)
        paged_entries += page.entries
        if page.cursor is None:
            break
        cursor = page.cursor
    assert paged_entries == entries[::-1]


async def test_a_filter_narrows_to_time_person_document_and_action(trail: AuditTrail) -> None:
    matching_entry = entry(NOON, user_id="o'neill", action="delete", doc_ids=("d1", "d2"))
    for one in (matching_entry, entry(NOON - HOUR), entry(NOON + HOUR), entry(NOON + HOUR, doc_ids=("d3",))):
        await trail.add(one)
    hour = AuditFilter(NOON, NOON + HOUR)
    for audit_filter in (
        hour,
        AuditFilter(ALL.since, ALL.until, user_id="o'neill"),
        AuditFilter(ALL.since, ALL.until, doc_id="d2"),
        AuditFilter(ALL.since, ALL.until, action="delete"),
    ):
        assert (await trail.page(audit_filter, 10)).entries == (matching_entry,)


async def test_a_commit_that_is_repeated_leaves_one_entry(trail: AuditTrail) -> None:
    answer = entry(action="answer", run_id="r1")
    await trail.add(answer)
    await trail.add(answer)
    assert (await trail.page(ALL, 10)).entries == (answer,)


async def test_an_erased_person_is_a_pseudonym_without_address(trail: AuditTrail) -> None:
    await trail.add(entry(user_id="o'neill", origin="192.0.2.1"))
    await trail.add(entry(user_id="ben", origin="192.0.2.2"))
    assert await trail.pseudonymise("o'neill") == 1
    identities = {(one.user_id, one.origin) for one in (await trail.page(ALL, 10)).entries}
    assert identities == {(pseudonym("o'neill"), ""), ("ben", "192.0.2.2")}


async def test_old_entries_go(trail: AuditTrail) -> None:
    for hours in (0, 1, 2, 30):
        await trail.add(entry(NOON - hours * HOUR))
    assert await trail.delete_before(NOON - HOUR) == 2
    assert len((await trail.page(ALL, 10)).entries) == 2
