"""Tests for crashes, outages and defects: access is denied rather than left open, and every failure ends."""

from datetime import timedelta

import pytest

from shared.platform.names import DOCUMENTS
from shared.sharepoint.models import SyncStep
from shared.sharepoint.synchronisation import MAX_PENDING_FOLDERS, MAX_RESYNCS
from tests.fakes.dying import Death, Died
from tests.fakes.sharepoint_server import Fault, user
from tests.unit.sharepoint.tenant import ANNA, BEN, tenant

DAY = timedelta(days=1)
pytestmark = pytest.mark.attack("access")


async def test_a_grant_that_is_undone_after_a_crash_between_sidecar_and_row_is_closed() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        file = t.server.file(drive, "plan.md", permissions=[user(ANNA)])
        await t.run()
        t.server.share(drive, file, [user(ANNA), user(BEN)])
        try:
            await t.run(Death(0).mortal(t.services, {"libraries": ("save_item",)}))
        except* Died:
            pass
        assert t.acl("plan.md") == [ANNA, BEN]
        t.server.share(drive, file, [user(ANNA)])
        await t.run()
        assert t.acl("plan.md") == [ANNA]


async def test_a_renamed_file_that_cannot_be_downloaded_gets_its_narrowed_permissions() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        file = t.server.file(drive, "talk.vtt", b"WEBVTT\n", permissions=[user(ANNA), user(BEN)])
        await t.run()
        t.server.rename(drive, file, "other.vtt")
        t.server.share(drive, file, [user(ANNA)])
        t.server.faults = [Fault("/content", 403, times=100)]
        await t.run()
        assert t.acl("talk.vtt") == [ANNA]


async def test_a_file_renamed_back_after_a_crash_leaves_no_copy_behind() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        file = t.server.file(drive, "a.md", permissions=[user(ANNA), user(BEN)])
        await t.run()
        t.server.rename(drive, file, "b.md")
        try:  # the last write of the item, after its blobs were moved
            await t.run(Death(1).mortal(t.services, {"blobs": ("delete",)}))
        except* Died:
            pass
        assert t.names() == ["b.md"]
        t.server.rename(drive, file, "a.md")
        t.server.share(drive, file, [user(ANNA)])
        await t.run()
        assert t.names() == ["a.md"]
        assert t.acl("a.md") == [ANNA]


async def test_a_library_that_never_completed_a_run_is_hidden_after_a_day() -> None:
    async with tenant() as t:
        t.server.page_size = 2
        for name in ("a.md", "b.md"):
            t.server.file(t.server.drives.get("drive0") or t.server.drive(), name, permissions=[user(ANNA)])
        t.server.faults = [Fault("delta?token=2", 403, times=1000)]
        await t.run()
        assert t.acl("a.md") == [ANNA]
        await t.run(after=DAY)
        await t.run()
        assert t.acl("a.md") == []


async def test_a_file_whose_row_was_lost_in_a_crash_is_hidden_with_its_library() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        await t.run()
        t.server.file(drive, "plan.md", permissions=[user(ANNA)])
        try:
            await t.run(Death(0).mortal(t.services, {"libraries": ("save_item",)}))
        except* Died:
            pass
        if not t.names():  # killed at the row of the root; the next row is that of the file
            try:
                await t.run(Death(1).mortal(t.services, {"libraries": ("save_item",)}))
            except* Died:
                pass
        assert t.acl("plan.md") == [ANNA]
        t.server.faults = [Fault("/delta", 403, times=1000)]
        await t.run(after=DAY + timedelta(hours=1))
        assert t.acl("plan.md") == []


async def test_a_closed_library_that_reopens_in_part_is_closed_again() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        file = t.server.file(drive, "plan.md", permissions=[user(ANNA), user(BEN)])
        await t.run()
        t.server.faults = [Fault("/delta", 403, times=1000)]
        await t.run(after=DAY + timedelta(hours=1))
        assert t.acl("plan.md") == []
        t.server.page_size = 1
        t.server.touch(drive, file)
        t.server.touch(drive, file)
        t.server.faults = [Fault("/delta?token=3-4", 403, times=1000)]  # the second page
        (library,) = await t.store.libraries()
        await t.run()
        assert t.acl("plan.md") == [ANNA, BEN]
        t.server.share(drive, file, [user(ANNA)])
        t.server.faults = [Fault("", 403, times=1000)]
        t.now += DAY + timedelta(hours=1)
        await t.finish(SyncStep(library_id=library.library_id, run="refused"), t.services)
        assert t.acl("plan.md") == []


async def test_closing_restarts_an_interrupted_pass_so_that_nothing_stays_hidden() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        for number in range(120):  # more than one batch of the pass
            t.server.file(drive, f"{number}.md", permissions=[user(ANNA)])
        await t.run()
        (library,) = await t.store.libraries()
        t.now += DAY - timedelta(hours=1)
        passes = 0

        def refuse(target: str) -> None:
            nonlocal passes
            passes += target.endswith("/permissions")
            if passes == 110:  # the root, the first batch and part of the second
                t.server.faults = [Fault("", 403, times=10_000)]

        t.server.on_request = refuse
        await t.finish(SyncStep(library_id=library.library_id, run="night"), t.services)
        t.server.on_request = lambda _: None
        t.server.faults = [Fault("/delta", 403, times=1000)]
        await t.run(after=DAY + timedelta(hours=1))
        assert not any(t.acl(name) for name in t.names())
        t.server.faults = []
        await t.run()
        assert all(t.acl(name) == [ANNA] for name in t.names())


async def test_a_defect_that_ends_every_run_hides_the_library_after_a_day() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        t.server.file(drive, "plan.md", permissions=[user(ANNA)])
        await t.run()
        # Without a time zone it can't be compared.
        t.server.file(drive, "odd.md", permissions=[user(BEN, expirationDateTime="2026-12-01T00:00:00")])
        t.now += DAY
        try:
            await t.run()
        except TypeError:
            pytest.fail("the defect left the library open")
        assert t.acl("plan.md") == []


async def test_links_that_are_never_valid_end_the_run_and_hide_the_library_after_a_day() -> None:
    async with tenant() as t:
        t.server.file(t.server.drive(), "plan.md", permissions=[user(ANNA)])
        await t.run()
        t.server.requests.clear()
        t.server.faults = [Fault("/delta", 410, times=10_000)]
        await t.run()
        assert len([request for request in t.server.requests if "/delta" in request]) == MAX_RESYNCS + 1
        await t.run(after=DAY)
        assert t.acl("plan.md") == []


async def test_an_expired_grant_of_a_file_that_is_no_longer_stored_starts_no_further_pass() -> None:
    async with tenant(max_document_bytes=100) as t:
        drive = t.server.drive()
        ends = (t.now + timedelta(hours=2)).isoformat()
        file = t.server.file(drive, "offer.md", permissions=[user(BEN, expirationDateTime=ends)])
        await t.run()
        t.server.write(drive, file, b"x" * 101)
        await t.run()
        await t.run(after=timedelta(hours=3))
        started = (await t.library()).permissions_at
        await t.run()
        assert (await t.library()).permissions_at == started


async def test_a_library_configured_again_during_its_removal_is_complete() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        for number in range(3):
            t.server.file(drive, f"{number}.md", permissions=[user(ANNA)])
        await t.run()
        (library,) = await t.store.libraries()
        step = SyncStep(library_id=library.library_id, run="removal", is_configured=False)
        mortal = Death(1).mortal(t.services, {"libraries": ("delete_item",)})
        with pytest.raises(Died):
            await t.finish(step, mortal)
        assert len(t.names()) < 3
        await t.run()
        assert len(t.names()) == 3


async def test_an_outage_after_a_change_of_the_address_deletes_nothing() -> None:
    async with tenant("/sites/hr", "/sites/hr/Documents") as t:
        t.server.file(t.server.drive(), "plan.md", permissions=[user(ANNA)])
        await t.run()
        address = f"{t.server.host}/sites/hr/Documents"
        t.services.settings = t.services.settings.changed(sharepoint_libraries=address)
        t.server.faults = [Fault("/sites/", 500, times=3)]
        await t.run()
        assert t.names() == ["plan.md"]


async def test_one_permission_list_that_breaks_off_hides_one_document() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        long = t.server.file(drive, "long.md", permissions=[user(ANNA)] * 60)
        t.server.file(drive, "plan.md", permissions=[user(ANNA)])
        t.server.faults = [Fault(f"{long}/permissions?skip=50", 500, times=1000)]
        await t.run()
        assert (t.acl("long.md"), t.acl("plan.md")) == ([], [ANNA])


@pytest.mark.parametrize("status", [503, 504])
async def test_one_permission_list_that_always_fails_hides_one_document(status: int) -> None:
    async with tenant() as t:
        drive = t.server.drive()
        broken = t.server.file(drive, "broken.md", permissions=[user(ANNA)])
        t.server.file(drive, "plan.md", permissions=[user(ANNA)])
        t.server.faults = [Fault(f"{broken}/permissions", status, times=1000)]
        await t.run()
        assert (t.acl("broken.md"), t.acl("plan.md")) == ([], [ANNA])


async def test_a_download_that_failed_is_repeated_with_the_nightly_pass() -> None:
    async with tenant() as t:
        t.server.file(t.server.drive(), "plan.md", permissions=[user(ANNA)])
        t.server.faults = [Fault("/content", 500, times=3)]
        await t.run()
        assert t.names() == []
        await t.run(after=DAY)
        assert t.names() == ["plan.md"]


async def test_more_changed_folders_than_a_row_holds_stand_for_the_whole_library() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        t.server.share(drive, drive.root_id, [user(ANNA), user(BEN)])
        folders = [t.server.folder(drive, str(number)) for number in range(MAX_PENDING_FOLDERS + 1)]
        t.server.file(drive, "plan.md", parent=folders[0])
        await t.run()
        t.server.share(drive, drive.root_id, [user(ANNA)])
        for folder in folders:
            t.server.touch(drive, folder)
        longest = 0

        async def saved(*arguments: object) -> str:
            nonlocal longest
            longest = max(longest, len(arguments[0].pending_folders))  # type: ignore[attr-defined]
            return await save(*arguments)  # type: ignore[arg-type]

        save = t.store.save_library
        t.store.save_library = saved  # type: ignore[method-assign, assignment]
        await t.run()
        assert longest <= MAX_PENDING_FOLDERS
        assert t.acl("plan.md") == [ANNA]


async def test_the_first_instant_of_the_calendar_is_no_end() -> None:
    """Check the Graph reference on permissions: "DateTime.MinValue indicates there's no expiration"."""
    async with tenant() as t:
        least = "0001-01-01T00:00:00Z"
        t.server.file(t.server.drive(), "plan.md", permissions=[user(ANNA, expirationDateTime=least)])
        await t.run()
        assert t.acl("plan.md") == [ANNA]
        assert (await t.library()).expires_at is None
        assert t.blobs.containers[DOCUMENTS]
