"""Tests for the paged list of a user's runs: private and newest first."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.access.models import UserContext
from shared.conversations.models import RunList, Thread, ThreadTurn
from shared.conversations.run_list import list_runs
from shared.platform.errors import CallerError
from shared.runs.models import RunRecord
from tests.fakes.services import fake_services
from tests.fakes.stores import InMemoryRunStore, InMemoryThreadStore

ANNA, BEN = UserContext(user_id="anna"), UserContext(user_id="ben")
NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


class History:
    """Stored threads and runs of several users."""

    def __init__(self) -> None:
        self.threads, self.runs = InMemoryThreadStore(), InMemoryRunStore()
        self._services = fake_services(threads=self.threads, runs=self.runs)

    async def ask(self, owner: UserContext, thread_id: str, *minutes: int, **changes: object) -> None:
        """Store a thread with one question at each of these minutes."""
        thread = Thread(
            thread_id=thread_id,
            owner_id=owner.user_id,
            title="",
            created_at=NOW,
            updated_at=NOW,
            turn_count=len(minutes),
        )
        await self.threads.create(thread)
        for number, minute in enumerate(minutes, start=1):
            asked_at, run_id = NOW + timedelta(minutes=minute), f"{thread_id}-{minute}"
            turn = ThreadTurn(
                thread_id=thread_id, number=number, run_id=run_id, question="x?", asked_at=asked_at
            )
            stored = await self.threads.get(owner.user_id, thread_id)
            assert stored is not None
            await self.threads.replace(stored, stored, turn)
            record = RunRecord(
                run_id=run_id,
                thread_id=thread_id,
                owner_id=owner.user_id,
                question="x?",
                created_at=asked_at,
                turn=number,
            )
            await self.runs.create(record)
        if changes:
            stored = await self.threads.get(owner.user_id, thread_id)
            assert stored is not None
            await self.threads.replace(stored, stored.model_copy(update=changes))

    async def list(self, user: UserContext, limit: int = 50, cursor: str = "") -> RunList:
        return await list_runs(user, self._services, limit, cursor)


def ids(page: RunList) -> list[str]:
    return [run.run_id for run in page.runs]


async def test_runs_of_all_threads_are_listed_newest_first() -> None:
    history = History()
    await history.ask(ANNA, "a", 1, 4)
    await history.ask(ANNA, "b", 2, 3)
    await history.ask(BEN, "c", 5)
    page = await history.list(ANNA)
    assert ids(page) == ["a-4", "b-3", "b-2", "a-1"]
    assert (page.count, page.cursor) == (4, None)
    assert ids(await history.list(BEN)) == ["c-5"]


async def test_pages_follow_one_another_even_when_something_is_asked_in_between() -> None:
    history = History()
    await history.ask(ANNA, "a", 1, 2, 3)
    first = await history.list(ANNA, 2)
    await history.ask(ANNA, "b", 9)
    second = await history.list(ANNA, 2, first.cursor or "")
    assert (ids(first), ids(second), second.cursor) == (["a-3", "a-2"], ["a-1"], None)


async def test_deleted_threads_cleared_turns_and_erased_runs_are_left_out() -> None:
    history = History()
    await history.ask(ANNA, "a", 1, 2, cleared_count=1)
    await history.ask(ANNA, "b", 3, is_deleted=True)
    await history.ask(ANNA, "c", 4)
    await history.runs.delete("c-4")
    assert ids(await history.list(ANNA)) == ["a-2"]


@pytest.mark.parametrize("cursor", ["x", "%", "MjAyNg", "é", "YQ==" * 100])
async def test_a_cursor_of_nobody_is_refused(cursor: str) -> None:
    with pytest.raises(CallerError, match="The cursor is invalid"):
        await History().list(ANNA, cursor=cursor)
