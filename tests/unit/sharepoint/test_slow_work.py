"""Tests for slow, stuck or concurrent runs: revoked access ends within a day, without rereading much."""

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from shared.platform.errors import ConflictError
from shared.sharepoint import synchronisation
from tests.fakes.sharepoint_server import Fault, user
from tests.unit.sharepoint.tenant import ANNA, BEN, Tenant, tenant

DAY = timedelta(days=1)
pytestmark = pytest.mark.attack("access")


@pytest.fixture(autouse=True)
def steps_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """End every step after one piece of work, as with slow services."""
    monkeypatch.setattr(synchronisation, "STEP_S", 0.0)


async def test_pass_over_the_permissions_that_takes_too_long_hides_the_library() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        files = [t.server.file(drive, f"{n}.md", permissions=[user(ANNA), user(BEN)]) for n in range(350)]
        await t.run()
        for file in files:
            t.server.share(drive, file, [user(ANNA)], reported=False)
        narrowed_at, exposed = t.now, []

        def read_slowly(target: str) -> None:
            if target.endswith("/permissions"):
                t.now += timedelta(seconds=8)  # some 26 minutes per batch
            if t.now - narrowed_at > DAY + timedelta(minutes=30):
                exposed.extend(t.exposed(drive))

        t.server.on_request = read_slowly
        await t.run(after=timedelta(hours=22, minutes=55))
        while t.now - narrowed_at < DAY + timedelta(minutes=30):
            await t.run()
        assert exposed == []


async def test_changes_that_take_longer_than_a_day_hide_the_library() -> None:
    async with tenant() as t:
        t.server.page_size = 1
        drive = t.server.drive()
        file = t.server.file(drive, "plan.md", permissions=[user(ANNA), user(BEN)])
        await t.run()
        t.server.share(drive, file, [user(ANNA)], reported=False)
        for number in range(26):
            t.server.folder(drive, str(number))
        _take_time(t, timedelta(hours=1), "/delta")
        narrowed_at = t.now
        reply = await t.step("slow")
        while reply.following == "more":
            reply = await t.step("slow")
            assert t.now - narrowed_at < DAY + timedelta(hours=2) or t.exposed(drive) == []


async def test_first_synchronisation_of_many_files_hides_nothing_while_it_is_quick() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        for number in range(120):
            t.server.file(drive, f"{number}.md", permissions=[user(ANNA)])
        _take_time(t, timedelta(minutes=10), "/delta")
        await t.run()
        assert all(t.acl(name) == [ANNA] for name in t.names())


async def test_closing_takes_steps_that_each_end_soon() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        for number in range(100):
            t.server.file(drive, f"{number}.md", permissions=[user(ANNA)])
        await t.run()
        t.server.faults = [Fault("/delta", 403, times=1000)]
        t.now += DAY + timedelta(minutes=10)
        hidden, is_done = [0], False
        while not is_done:
            is_done = (await t.step("refused")).following == "done"
            hidden.append(sum(t.acl(name) == [] for name in t.names()))
        assert hidden[-1] == 100
        assert max(later - earlier for earlier, later in pairwise(hidden)) < 30


async def test_conflict_that_never_ends_is_reported_and_hides_the_library_after_a_day() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        file = t.server.file(drive, "plan.md", permissions=[user(ANNA), user(BEN)])
        await t.run()
        save = t.store.save_item

        async def refuse(*arguments: Any) -> str:
            if arguments[1].kind == "file":
                raise ConflictError("The record changed.")
            return await save(*arguments)

        t.store.save_item = refuse  # type: ignore[method-assign, assignment]
        t.server.write(drive, file, b"new")
        await t.run()
        assert (await t.library()).error == ConflictError.code
        await t.run(after=DAY)
        assert t.acl("plan.md") == []


async def test_grant_that_ends_has_only_its_document_read_again() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        ends = (t.now + timedelta(hours=2)).isoformat()
        for number in range(30):
            t.server.file(drive, f"{number}.md", permissions=[user(ANNA)])
        offer = t.server.file(drive, "offer.md", permissions=[user(ANNA), user(BEN, expirationDateTime=ends)])
        await t.run()
        reads: list[str] = []
        t.server.on_request = reads.append
        await t.run(after=timedelta(hours=3))
        assert t.acl("offer.md") == [ANNA]
        read = {request.split("/")[-2] for request in reads if request.endswith("/permissions")}
        assert read == {"root", offer}
        reads.clear()
        await t.run()
        assert [request for request in reads if offer in request] == []


async def test_file_listed_before_its_new_folder_is_part_of_the_configured_folder() -> None:
    async with tenant("/sites/hr/Documents/Manuals") as t:
        t.server.page_size = 1
        drive = t.server.drive()
        manuals = t.server.folder(drive, "Manuals", permissions=[user(ANNA)])
        await t.run()
        new = t.server.folder(drive, "New", parent=manuals)
        t.server.file(drive, "plan.md", parent=new)
        drive.log[-2:] = reversed(drive.log[-2:])
        await t.run()
        assert t.names() == ["plan.md"]


async def test_file_listed_before_its_new_folder_follows_the_folder_when_it_is_narrowed_meanwhile() -> None:
    async with tenant() as t:
        t.server.page_size = 1
        drive = t.server.drive()
        await t.run()
        new = t.server.folder(drive, "New", permissions=[user(ANNA), user(BEN)])
        t.server.file(drive, "plan.md", parent=new)
        drive.log[-2:] = reversed(drive.log[-2:])

        def narrow(target: str) -> None:
            if "delta?token=2-" in target:  # the second page
                drive.items[new].permissions = [user(ANNA)]
                t.server.touch(drive, new)

        t.server.on_request = narrow
        await t.run()
        await t.run()
        assert t.acl("plan.md") == [ANNA]


async def test_the_tenant_compares_the_end_of_a_grant_with_its_own_clock() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        ends = (t.now + timedelta(hours=2)).isoformat()
        file = t.server.file(drive, "offer.md", permissions=[user(BEN, expirationDateTime=ends)])
        assert t.server.readers(drive, file) == {BEN}
        t.now += timedelta(hours=3)
        assert t.server.readers(drive, file) == set()


def _take_time(t: Tenant, duration: timedelta, part: str) -> None:
    """Advance the clock by `duration` at each request whose address contains `part`."""

    def pass_time(target: str) -> None:
        if part in target:
            t.now += duration

    t.server.on_request = pass_time
