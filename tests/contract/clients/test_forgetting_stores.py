"""Erasure of a person in each store, in memory and with Azurite: it deletes all of the person's rows, and no
others.
"""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from shared.access.idempotency import Claim, IdempotencyStore
from shared.access.user_limit_store import UserLimits, UserLimitStore
from shared.conversations.models import Thread, ThreadTurn
from shared.conversations.thread_store import ThreadStore
from shared.platform.tables import Table
from shared.quality.models import AnswerRecord, OpeningRecord, RatingRecord
from shared.quality.store import QualityStore
from shared.runs.models import RunRecord
from shared.runs.run_store import RunStore

if TYPE_CHECKING:
    pass

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
# Contains characters that table keys can't contain, and a quote, which ends an OData string.
ODD = "an'na/\\#?% Ünïcode"


async def test_all_runs_of_a_person_are_found(table: Table) -> None:
    runs = RunStore(table)
    for number, owner_id in enumerate((ODD, "ben", ODD)):
        record = RunRecord(
            run_id=f"{'ab'[owner_id == 'ben']}{number}",
            thread_id="t",
            owner_id=owner_id,
            question="Why?",
            created_at=NOW,
        )
        await runs.create(record)
    assert {one.run_id async for one in runs.of_owner(ODD, "a")} == {"a0", "a2"}
    assert [one.run_id async for one in runs.of_owner("nobody", "a")] == []
    assert [one.run_id async for one in runs.of_owner(ODD, "b")] == []


async def test_threads_of_a_person_are_found_and_every_row_goes(table: Table) -> None:
    threads = ThreadStore(table)
    for owner_id in (ODD, "ben"):
        thread = Thread(thread_id="t1", owner_id=owner_id, created_at=NOW, updated_at=NOW, turn_count=1)
        turn = ThreadTurn(thread_id="t1", number=1, run_id="r", question="Why?", asked_at=NOW)
        stored = await threads.create(thread, [turn])
        await threads.create(thread.model_copy(update={"thread_id": "t2"}))
        await threads.replace(stored, stored.model_copy(update={"is_deleted": True}))
        await threads.forget_before(owner_id, NOW)
        await threads.switch_memory(owner_id, is_on=False)
    assert {one.thread_id async for one in threads.of_owner(ODD)} == {"t1", "t2"}
    await threads.remove_owner(ODD)
    await threads.remove_owner("nobody")
    assert [one async for one in threads.of_owner(ODD)] == []
    assert await threads.turns(ODD, "t1", 10) == []
    assert await threads.forgotten_until(ODD) is None
    assert await threads.is_memory_on(ODD)
    assert not await threads.is_memory_on("ben")
    assert (await threads.page(ODD, 10)).threads == ()
    assert {one.thread_id async for one in threads.of_owner("ben")} == {"t1", "t2"}
    assert len(await threads.turns("ben", "t1", 10)) == 1
    assert await threads.forgotten_until("ben") == NOW


async def test_keys_of_a_person_are_forgotten(table: Table) -> None:
    keys = IdempotencyStore(table)
    claim = Claim(route="POST /chat", body="digest", resource_id="r", created_at=NOW)
    for user_id, key in ((ODD, "1"), (ODD, "2"), ("ben", "1")):
        await keys.write(user_id, key, claim)
    assert await keys.forget(ODD) == 2
    assert await keys.forget(ODD) == 0
    assert await keys.get(ODD, "1") is None
    assert await keys.get("ben", "1") is not None


async def test_limits_of_a_person_are_forgotten(table: Table) -> None:
    limits = UserLimitStore(table)
    for user_id in (ODD, "ben"):
        await limits.write(user_id, UserLimits())
    assert (await limits.forget(ODD), await limits.forget(ODD)) == (1, 0)
    assert (await limits.read(ODD)).revision is None
    assert (await limits.read("ben")).revision is not None


async def test_all_that_is_recorded_of_one_answer_is_forgotten(table: Table) -> None:
    quality = QualityStore(table)
    for key in ("a" * 32, "a" * 31 + "b"):
        await quality.add(AnswerRecord(key=key, at=NOW, outcome="answered"))
        await quality.put_rating(RatingRecord(key=key, at=NOW, rating=2))
        for n in (1, 12):
            await quality.add(OpeningRecord(key=key, at=NOW, n=n))
    assert await quality.forget(NOW + timedelta(hours=1), "a" * 32) == 0
    assert await quality.forget(NOW, "a" * 32) == 4
    left = [one.kind async for one in quality.between(NOW, NOW)]
    assert sorted(left) == ["answer", "opening", "opening", "rating"]
