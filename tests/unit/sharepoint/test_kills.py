"""Tests with processes killed at random writes. The fake tenant, not the app, determines who may read."""

import random
from datetime import timedelta

import pytest

from tests.fakes.dying import Death, Died
from tests.fakes.sharepoint_server import Entry, FakeDrive, Fault, group, site_group, user
from tests.unit.sharepoint.tenant import ANNA, BEN, CLEO, STAFF, Tenant, tenant

DAY = timedelta(days=1)
WRITES = {
    "blobs": ("write", "write_version", "write_stream", "delete"),
    "libraries": ("save_library", "save_item", "delete_item"),
}
ROUNDS = 4
pytestmark = pytest.mark.attack("access")


@pytest.mark.parametrize("seed", range(30))
async def test_no_kill_opens_a_document_to_somebody_whom_sharepoint_refuses(seed: int) -> None:
    chance = random.Random(seed)
    async with tenant() as t:
        t.server.page_size = 5
        drive = _library(t)
        deaths = 0
        for number in range(ROUNDS):
            undo = _change(t, drive, chance) if number else []
            before = set(t.exposed(drive))
            death = Death(chance.randrange(25), is_behind=chance.random() < 0.5)
            deaths += await _run_until_death(t, death)
            assert set(t.exposed(drive)) <= before
            for item_id, permissions in undo:
                t.server.share(drive, item_id, permissions, reported=chance.random() < 0.5)
        assert deaths
        await t.run()
        await t.run(after=DAY - timedelta(minutes=30))  # the nightly pass
        assert t.exposed(drive) == []
        files = {item.name: item_id for item_id, item in drive.items.items() if item.content is not None}
        assert t.names() == sorted(files)
        assert {name: t.readers(name) for name in files} == {
            name: t.server.readers(drive, item_id) for name, item_id in files.items()
        }


def _library(t: Tenant) -> FakeDrive:
    drive = t.server.drive()
    t.server.site_groups["/sites/hr", "5"] = ["i:0#.f|membership|ben@contoso.com"]
    folder = t.server.folder(drive, "Team", permissions=[group(STAFF)])
    for number in range(4):
        t.server.file(drive, f"team{number}.md", parent=folder)
    t.server.file(drive, "own.md", permissions=[user(ANNA), site_group("5")])
    t.server.file(drive, "other.md", permissions=[user(ANNA), user(BEN)])
    return drive


def _change(t: Tenant, drive: FakeDrive, chance: random.Random) -> list[tuple[str, list[Entry] | None]]:
    """Change a few items and return the permissions to restore after the killed run."""
    undo = []
    for item_id in chance.sample([one for one in drive.items if one != drive.root_id], 3):
        item = drive.items[item_id]
        kinds = ("widen", "narrow", "rename", "rewrite", "delete", "move")
        match chance.choice(kinds if item.content is not None else kinds[:3]):
            case "widen":
                undo.append((item_id, item.permissions))
                t.server.share(drive, item_id, [user(ANNA), user(BEN), user(CLEO)])
            case "narrow":
                t.server.share(drive, item_id, [user(ANNA)], reported=chance.random() < 0.5)
            case "rename":
                t.server.rename(drive, item_id, f"{chance.randrange(10**6)}.md")
            case "rewrite":
                t.server.write(drive, item_id, str(chance.random()).encode())
            case "delete":
                t.server.delete(drive, item_id)
                undo = [(one, entries) for one, entries in undo if one != item_id]
            case "move":
                t.server.move(drive, item_id, drive.root_id)
    return undo


async def _run_until_death(t: Tenant, death: Death) -> bool:
    """Run until the process is killed at its write, and return whether that happened."""
    is_dead = False
    try:
        await t.run(death.mortal(t.services, WRITES))
    except* Died:
        is_dead = True
    return is_dead


async def _die_after_the_copy(t: Tenant) -> None:
    """Run until the process is killed right after storing a file."""
    death = Death(0, is_behind=True)
    try:
        await t.run(death.mortal(t.services, {"blobs": ("write_stream",)}))
    except* Died:
        pass
    assert death.calls


async def test_copy_left_by_a_killed_rename_goes_when_no_download_succeeds_any_more() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        file = t.server.file(drive, "a.md", permissions=[user(ANNA), user(BEN)])
        await t.run()
        t.server.rename(drive, file, "b.md")
        await _die_after_the_copy(t)
        assert t.names() == ["a.md", "b.md"]
        t.server.rename(drive, file, "c.md")
        t.server.share(drive, file, [user(ANNA)])
        t.server.faults = [Fault("/content", 403, times=100)]
        await t.run()
        assert t.exposed(drive) == []


async def test_copy_left_by_a_killed_rename_is_hidden_when_sharepoint_refuses_the_item() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        folder = t.server.folder(drive, "Team", permissions=[user(ANNA), user(BEN)])
        file = t.server.file(drive, "a.md", parent=folder)
        await t.run()
        t.server.rename(drive, file, "b.md")
        await _die_after_the_copy(t)
        t.server.move(drive, file, folder)
        del drive.log[-2:]  # the rename isn't reported again
        t.server.share(drive, folder, [user(ANNA)])
        t.server.faults = [Fault(f"/items/{file}", 403, times=100)]
        await t.run()
        assert t.exposed(drive) == []


@pytest.mark.parametrize("is_enumerated", [True, False])
async def test_file_that_was_deleted_after_a_kill_stays_open_to_nobody(is_enumerated: bool) -> None:
    async with tenant() as t:
        drive = t.server.drive()
        await t.run()
        file = t.server.file(drive, "plan.md", permissions=[user(ANNA)])
        await _die_after_the_copy(t)
        t.server.delete(drive, file, reported=False)
        del drive.log[-1]  # delta reports neither the file nor its deletion
        if is_enumerated:
            drive.oldest_token = 10
        await t.run(after=DAY - timedelta(minutes=30))
        assert t.exposed(drive) == []


async def test_copy_of_unknown_age_goes_when_its_download_is_refused() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        await t.run()
        file = t.server.file(drive, "plan.md", b"secret", permissions=[user(ANNA)])
        await _die_after_the_copy(t)
        t.server.write(drive, file, b"public")
        t.server.faults = [Fault("/content", 403, times=100)]
        await t.run()
        assert t.names() == []
