"""The contract of `QualityStore`, in memory and with Azurite's tables."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from shared.platform.errors import DependencyError
from shared.platform.tables import Table
from shared.quality.models import AnswerRecord, OpeningRecord, QualityRecord, RatingRecord
from shared.quality.store import QualityStore
from tests.contract.clients.conftest import NOWHERE, Connect

if TYPE_CHECKING:
    pass

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def store(table: Table) -> QualityStore:
    return QualityStore(table)


def answer(key: str = "a", at: datetime = NOON) -> AnswerRecord:
    return AnswerRecord(key=key, at=at, outcome="answered", project_id="pumps", citations=2, latency_ms=900)


def rating(number: int, at: datetime = NOON) -> RatingRecord:
    return RatingRecord(key="a", at=at, rating=number, thumb="up", reasons=("helpful",))


def opening(n: int = 1, at: datetime = NOON) -> OpeningRecord:
    return OpeningRecord(key="a", at=at, n=n)


async def records_between(
    store: QualityStore, first: datetime = NOON, last: datetime = NOON
) -> list[QualityRecord]:
    return sorted([record async for record in store.between(first, last)], key=str)


async def test_nothing_was_recorded_yet(store: QualityStore) -> None:
    assert await records_between(store) == []
    await store.remove_rating(NOON, "a")
    assert await store.delete_before(NOON, 10) == 0


async def test_all_that_is_known_of_an_answer_comes_back(store: QualityStore) -> None:
    records: list[QualityRecord] = [answer(), opening(1), opening(2)]
    for record in records:
        assert await store.add(record)
    await store.put_rating(rating(4))
    assert await records_between(store) == sorted([*records, rating(4)], key=str)


async def test_what_is_recorded_twice_counts_once(store: QualityStore) -> None:
    assert await store.add(answer())
    assert not await store.add(answer().model_copy(update={"outcome": "failed"}))
    assert await records_between(store) == [answer()]


async def test_the_first_of_all_may_be_a_rating_and_the_last_one_counts(store: QualityStore) -> None:
    for number in (1, 5):
        await store.put_rating(rating(number))
    assert await records_between(store) == [rating(5)]
    await store.remove_rating(NOON, "a")
    assert await records_between(store) == []


async def test_time_is_read_by_whole_hours_over_the_turn_of_a_day(store: QualityStore) -> None:
    midnight = datetime(2026, 3, 2, tzinfo=UTC)
    for hours in (-3, -2, -1, 0, 1):
        await store.add(answer(f"{hours}", midnight + hours * HOUR + timedelta(minutes=59)))
    keys = [record.key for record in await records_between(store, midnight - 2 * HOUR, midnight)]
    assert sorted(keys) == ["-1", "-2", "0"]


async def test_old_hours_go_as_many_as_asked_for(store: QualityStore) -> None:
    for n in range(120):  # more than the maximum of a table transaction
        await store.add(opening(n))
    await store.add(answer("young", NOON + HOUR))
    assert await store.delete_before(NOON + HOUR, 110) == 110
    assert await store.delete_before(NOON + HOUR, 110) == 10
    assert [record.key for record in await records_between(store, NOON, NOON + HOUR)] == ["young"]


@pytest.mark.contract
async def test_what_a_later_version_wrote_is_passed_over(table: Table) -> None:
    store = QualityStore(table)
    await store.add(answer())
    for row_key, content in (("answer-b", '{"kind":"answer","new":1}'), ("surprise-c", "{}")):
        await table.insert({"PartitionKey": "2026030112", "RowKey": row_key, "content": content})
    assert await records_between(store) == [answer()]


@pytest.mark.contract
async def test_a_storage_that_is_away_is_said_to_be(connect: Connect) -> None:
    away = f"DefaultEndpointsProtocol=http;AccountName=a;AccountKey=aaaa;TableEndpoint={NOWHERE}/a"
    store = QualityStore(Table(connect(DocumentsStorage=away).tables, "quality", timeout_s=1))
    with pytest.raises(DependencyError):
        await store.add(answer())
