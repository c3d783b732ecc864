"""Tests for synchronising libraries over HTTP. Docstrings with an issue number cite a public bug report."""

from datetime import timedelta

import pytest

from tests.fakes.sharepoint_server import (
    TENANT,
    Entry,
    Fault,
    claim,
    group,
    link,
    site_group,
    user,
)
from tests.unit.sharepoint.tenant import ANNA, BEN, CLEO, STAFF, tenant

DAY = timedelta(days=1)


async def test_files_arrive_with_their_permissions_and_their_address() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        t.server.file(drive, "handbook.md", b"# Handbook", permissions=[user(ANNA), group(STAFF)])
        await t.run()
        assert t.content("handbook.md") == b"# Handbook"
        assert t.acl("handbook.md") == sorted([ANNA, STAFF])
        assert t.sidecar("handbook.md")["source_url"].endswith("/sites/hr/Documents/handbook.md")
        assert "owner_id" not in t.sidecar("handbook.md")
        library = await t.library()
        assert (library.phase, library.error, library.counts.files) == ("idle", None, 1)


async def test_a_run_without_changes_makes_four_requests_and_no_write() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        for number in range(30):
            t.server.file(drive, f"{number}.md", permissions=[user(ANNA)])
        await t.run()
        t.server.requests.clear()
        before = {name: blob.write_number for name, blob in t.blobs.containers["documents"].items()}
        await t.run()
        # One request each for the site, its libraries, the changes and the permissions of the root.
        assert len(t.server.requests) == 4, t.server.requests
        assert {name: b.write_number for name, b in t.blobs.containers["documents"].items()} == before


async def test_changed_content_is_downloaded_and_changed_metadata_is_not() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        item = t.server.file(drive, "plan.md", b"one", permissions=[user(ANNA)])
        await t.run()
        t.server.requests.clear()
        t.server.touch(drive, item)
        await t.run()
        assert not [request for request in t.server.requests if request.endswith("/content")]
        t.server.write(drive, item, b"two")
        await t.run()
        assert t.content("plan.md") == b"two"


@pytest.mark.parametrize("address", ["/sites/hr/Documents/Policies", "/sites/hr/documents/policies/"])
async def test_a_folder_limits_the_library_wherever_files_move(address: str) -> None:
    async with tenant(address) as t:
        drive = t.server.drive()
        policies = t.server.folder(drive, "Policies", permissions=[user(ANNA)])
        deep = t.server.folder(drive, "2026", policies)
        other = t.server.folder(drive, "Other", permissions=[user(ANNA)])
        inside = t.server.file(drive, "in.md", parent=deep)
        outside = t.server.file(drive, "out.md", parent=other)
        await t.run()
        assert t.names() == ["in.md"]
        t.server.move(drive, inside, other)
        t.server.move(drive, outside, deep)
        await t.run()
        assert t.names() == ["out.md"]
        t.server.move(drive, deep, other)  # the delta query doesn't report the contents of a moved folder
        await t.run()
        assert t.names() == []


async def test_what_cannot_be_read_is_counted_with_its_reason() -> None:
    async with tenant(max_document_bytes=100) as t:
        drive = t.server.drive()
        t.server.file(drive, "big.md", b"x" * 101, permissions=[user(ANNA)])
        t.server.file(drive, "film.mp4", permissions=[user(ANNA)])
        t.server.file(drive, "virus.md", permissions=[user(ANNA)], malware={"description": "x"})
        t.server.file(drive, "good.md", permissions=[user(ANNA)])
        await t.run()
        assert t.names() == ["good.md"]
        counts = (await t.library()).counts
        assert dict(counts.skipped) == {"too_large": 1, "format": 1, "malware": 1}
        assert {one.name: one.reason for one in counts.examples}["film.mp4"] == "format"


async def test_expired_grants_end_without_any_change_in_sharepoint() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        ends = (t.now + timedelta(hours=2)).isoformat()
        t.server.file(drive, "offer.md", permissions=[user(ANNA), user(BEN, expirationDateTime=ends)])
        await t.run()
        assert t.acl("offer.md") == [ANNA, BEN]
        await t.run(after=timedelta(hours=3))
        assert t.acl("offer.md") == [ANNA]


async def test_a_library_that_is_no_longer_configured_is_removed() -> None:
    async with tenant("/sites/hr", "/sites/it") as t:
        t.server.file(t.server.drive(), "hr.md", permissions=[user(ANNA)])
        t.server.file(t.server.drive(site="/sites/it"), "it.md", permissions=[user(ANNA)])
        await t.run()
        assert t.names() == ["hr.md", "it.md"]
        address = f"{t.server.host}/sites/it"
        t.services.settings = t.services.settings.changed(sharepoint_libraries=address)
        await t.run()
        assert t.names() == ["it.md"]
        assert [library.address for library in await t.store.libraries()] == [address]


async def test_everything_is_hidden_after_a_day_without_a_successful_run_and_returns_with_it() -> None:
    async with tenant() as t:
        t.server.file(t.server.drive(), "plan.md", permissions=[user(ANNA)])
        await t.run()
        t.server.faults = [Fault("/delta", 403, times=1000)]
        await t.run(after=timedelta(hours=23))
        assert t.acl("plan.md") == [ANNA]
        assert (await t.library()).error == "AuthenticationError"
        await t.run(after=timedelta(hours=2))
        assert t.acl("plan.md") == []
        assert (await t.library()).is_closed
        t.server.faults = []
        await t.run()
        assert t.acl("plan.md") == [ANNA]
        assert not (await t.library()).is_closed


async def test_permissions_that_cannot_be_read_hide_the_document_from_everybody() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        item = t.server.file(drive, "plan.md", permissions=[user(ANNA)])
        await t.run()
        t.server.faults = [Fault(f"/items/{item}/permissions", 403, times=10)]
        t.server.touch(drive, item)
        await t.run()
        assert t.acl("plan.md") == []
        assert (await t.library()).counts.hidden == 1


async def test_more_readers_than_an_access_list_holds_hide_the_document() -> None:
    async with tenant() as t:
        many = [user(f"aaaaaaaa-0000-4000-9000-{number:012d}") for number in range(501)]
        t.server.file(t.server.drive(), "all.md", permissions=many)
        await t.run()
        assert t.acl("all.md") == []
        (example,) = (await t.library()).counts.examples
        assert example.reason == "too_many_principals"


async def test_after_a_weekend_without_the_app_nothing_is_hidden_meanwhile() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        file = t.server.file(drive, "plan.md", permissions=[user(ANNA), user(BEN)])
        await t.run()
        t.server.share(drive, file, [user(ANNA)], reported=False)
        await t.run(after=3 * DAY)
        assert t.acl("plan.md") == [ANNA]
        assert not (await t.library()).is_closed


# Complaints about other connectors; GD = microsoftgraph/microsoft-graph-docs, OD = OneDrive/onedrive-api-docs


async def test_folder_narrowed_while_delta_reports_the_folder_alone() -> None:
    """Check the case of OD#1670."""
    async with tenant() as t:
        drive = t.server.drive()
        folder = t.server.folder(drive, "Salaries", permissions=[user(ANNA), user(BEN)])
        deep = t.server.folder(drive, "2026", folder)
        t.server.file(drive, "pay.md", parent=deep)
        await t.run()
        assert t.acl("pay.md") == [ANNA, BEN]
        t.server.share(drive, folder, [user(ANNA)])
        await t.run()
        assert t.acl("pay.md") == [ANNA]


@pytest.mark.parametrize("target", ["folder", "file", "root"])
async def test_narrowed_permission_that_delta_does_not_report_ends_within_a_day(target: str) -> None:
    """Check the case of OD#1248, msgraph-sdk-java#2548 and OD#1250."""
    async with tenant() as t:
        drive = t.server.drive()
        t.server.share(drive, drive.root_id, [user(ANNA), user(BEN)])
        folder = t.server.folder(drive, "Salaries")
        own: list[Entry] | None = [user(ANNA), user(BEN)] if target == "file" else None
        file = t.server.file(drive, "pay.md", parent=folder, permissions=own)
        await t.run()
        assert t.acl("pay.md") == [ANNA, BEN]
        place = {"folder": folder, "file": file, "root": drive.root_id}[target]
        t.server.share(drive, place, [user(ANNA)], reported=False)
        await t.run()
        if target == "root":  # its permissions are read in every run
            assert t.acl("pay.md") == [ANNA]
        await t.run(after=DAY - timedelta(minutes=10))
        assert t.acl("pay.md") == [ANNA]


async def test_guest_added_to_an_existing_link_and_removed_again() -> None:
    """Check the case of GD#15242."""
    async with tenant() as t:
        drive = t.server.drive()
        file = t.server.file(drive, "offer.md", permissions=[link("users", [ANNA, BEN])])
        await t.run()
        assert t.acl("offer.md") == [ANNA, BEN]
        t.server.share(drive, file, [link("users", [ANNA])], reported=False)
        await t.run(after=DAY)
        assert t.acl("offer.md") == [ANNA]


@pytest.mark.parametrize("scope", ["organization", "anonymous", "existingAccess"])
async def test_links_that_must_be_possessed_open_nothing(scope: str) -> None:
    """Check the case of airweave-ai/airweave#1774."""
    async with tenant() as t:
        t.server.file(t.server.drive(), "board.md", permissions=[link(scope, [BEN]), user(ANNA)])
        await t.run()
        assert t.acl("board.md") == [ANNA]


async def test_hidden_groups_of_links_do_not_spread_access() -> None:
    """Check the case of airweave-ai/airweave#1775."""
    async with tenant() as t:
        t.server.site_groups["/sites/hr", "7"] = ["i:0#.f|membership|ben@contoso.com"]
        hidden = site_group("7", "SharingLinks.0f1.OrganizationView.2e3", "read")
        t.server.file(t.server.drive(), "board.md", permissions=[hidden, user(ANNA)])
        await t.run()
        assert t.acl("board.md") == [ANNA]


async def test_groups_of_the_same_name_in_two_sites_stay_apart() -> None:
    """Check the case of onyx-dot-app/onyx#13109."""
    async with tenant("/sites/hr", "/sites/it") as t:
        for site, login in (("/sites/hr", "anna@contoso.com"), ("/sites/it", "ben@contoso.com")):
            t.server.site_groups[site, "5"] = [f"i:0#.f|membership|{login}"]
            drive = t.server.drive(site=site)
            t.server.file(drive, f"{site[-2:]}.md", permissions=[site_group("5", "Members")])
        await t.run()
        assert (t.acl("hr.md"), t.acl("it.md")) == ([ANNA], [BEN])


async def test_owners_of_a_group_are_not_its_members() -> None:
    """Check the case of airweave-ai/airweave#1760. `_o` marks owners, as in elastic/connectors."""
    async with tenant() as t:
        owners = claim(f"c:0o.c|federateddirectoryclaimprovider|{STAFF}_o", "owner")
        owners["grantedToV2"]["group"] = {"id": STAFF}
        t.server.file(t.server.drive(), "owners.md", permissions=[owners])
        await t.run()
        assert t.acl("owners.md") == [CLEO]


async def test_limited_access_under_any_name_is_no_access() -> None:
    """Check the case of onyx-dot-app/onyx#13167."""
    async with tenant() as t:
        entries = [user(BEN, "sp.limited access"), user(CLEO, "sp.Beschränkter Zugriff"), user(ANNA)]
        t.server.file(t.server.drive(), "plan.md", permissions=entries)
        await t.run()
        assert t.acl("plan.md") == [ANNA]


async def test_deleted_groups_and_users_that_are_still_listed_hide_nothing() -> None:
    """Check the case of onyx-dot-app/onyx#5208 and GD#17062."""
    async with tenant() as t:
        t.server.site_groups["/sites/hr", "5"] = [
            "i:0#.f|membership|left@contoso.com",
            "i:0#.f|membership|anna@contoso.com",
        ]
        t.server.file(t.server.drive(), "plan.md", permissions=[site_group("5"), site_group("6")])
        await t.run()
        assert t.acl("plan.md") == [ANNA]


async def test_site_groups_that_sharepoint_refuses_hide_the_document() -> None:
    """Check the case of pipeshub-ai/pipeshub-ai#3268: a Graph token got 401, which silently dropped all
    permissions.
    """
    async with tenant() as t:
        t.server.site_groups["/sites/hr", "5"] = ["i:0#.f|membership|anna@contoso.com"]
        t.server.faults = [Fault("/_api/", 401, times=100)]
        t.server.file(t.server.drive(), "plan.md", permissions=[site_group("5"), user(BEN)])
        await t.run()
        assert t.acl("plan.md") == []
        (example,) = (await t.library()).counts.examples
        assert example.reason == "permissions_unreadable"


@pytest.mark.parametrize("name", [f"c:0-.f|rolemanager|spo-grid-all-users/{TENANT}", "c:0(.s|true"])
@pytest.mark.parametrize("within_group", [False, True])
async def test_everyone_is_the_organisation(name: str, within_group: bool) -> None:
    """Check the case of onyx-dot-app/onyx#11 and elastic/connectors#3540."""
    async with tenant() as t:
        t.server.site_groups["/sites/hr", "5"] = [name]
        entry = site_group("5") if within_group else claim(name)
        t.server.file(t.server.drive(), "news.md", permissions=[entry])
        await t.run()
        assert t.acl("news.md") == [f"org:{TENANT}"]


async def test_subfolder_with_permissions_of_its_own() -> None:
    """Check the case of elastic/connectors#3491."""
    async with tenant() as t:
        drive = t.server.drive()
        t.server.share(drive, drive.root_id, [group(STAFF)])
        folder = t.server.folder(drive, "Board", permissions=[user(CLEO)])
        t.server.file(drive, "minutes.md", parent=folder)
        t.server.file(drive, "news.md")
        await t.run()
        assert (t.acl("minutes.md"), t.acl("news.md")) == ([CLEO], [STAFF])


async def test_deletions_find_their_documents_without_a_name() -> None:
    """Check the case of pipeshub-ai/pipeshub-ai#3347 and elastic/connectors#3994, also for a whole folder."""
    async with tenant() as t:
        drive = t.server.drive()
        t.server.share(drive, drive.root_id, [user(ANNA)])
        folder = t.server.folder(drive, "Old")
        t.server.file(drive, "a.md", parent=t.server.folder(drive, "Deep", folder))
        single = t.server.file(drive, "b.md")
        t.server.file(drive, "c.md")
        await t.run()
        t.server.delete(drive, folder)
        t.server.delete(drive, single)
        await t.run()
        assert t.names() == ["c.md"]
        assert len(t.blobs.containers["documents"]) == 2  # the file and its sidecar


async def test_full_enumeration_that_starts_over_twice_and_ends_with_an_empty_page() -> None:
    """Check the case of elastic/connectors#4370."""
    async with tenant() as t:
        drive = t.server.drive()
        t.server.page_size = 4
        for number in range(11):  # three full pages, including the root
            t.server.file(drive, f"{number}.md", permissions=[user(ANNA)])
        await t.run()
        t.server.delete(drive, next(i.item_id for i in drive.items.values() if i.name == "3.md"))
        seen = 0

        def resync(target: str) -> None:
            nonlocal seen
            seen += "/delta" in target
            drive.oldest_token = len(drive.log) + 1 if seen in (1, 3) else 0

        t.server.on_request = resync
        await t.run()
        assert seen > 4
        assert "3.md" not in t.names()
        assert len(t.names()) == 10


async def test_restart_continues_at_the_page_that_was_not_finished() -> None:
    """Check the case of langflow-ai/openrag#2310: the delta link was lost, and everything was read again."""
    async with tenant() as t:
        drive = t.server.drive()
        t.server.page_size = 3
        for number in range(8):
            t.server.file(drive, f"{number}.md", permissions=[user(ANNA)])
        t.server.faults = [Fault("delta?token=6", 500, times=3)]
        await t.run()
        assert len(t.names()) == 5
        t.server.requests.clear()
        await t.run()
        assert len(t.names()) == 8
        assert "delta?token=6" in next(request for request in t.server.requests if "/delta" in request)


async def test_renamed_file_and_folder() -> None:
    """Check the case of JeffSteinbok/obsidian-onedrive#50 and OD#1155."""
    async with tenant() as t:
        drive = t.server.drive()
        folder = t.server.folder(drive, "Old", permissions=[user(ANNA)])
        file = t.server.file(drive, "a.md", parent=folder)
        await t.run()
        t.server.rename(drive, folder, "New")
        t.server.rename(drive, file, "b.md")
        await t.run()
        assert t.names() == ["b.md"]
        assert t.acl("b.md") == [ANNA]
        assert len(t.blobs.containers["documents"]) == 2


async def test_throttled_requests_pause_the_run_and_lose_nothing() -> None:
    """Check the case of elastic/connectors#1493 and GD#2531, also for requests of a batch."""
    async with tenant() as t:
        drive = t.server.drive()
        ids = [t.server.file(drive, f"{number}.md", permissions=[user(ANNA)]) for number in range(5)]
        t.server.faults = [
            Fault("/delta", 429, {"Retry-After": "0.01"}),
            Fault("/delta", 503, {"Retry-After": "0.01"}),
            Fault(f"/items/{ids[1]}/permissions", 429, {"Retry-After": "0.01"}, times=2),
            Fault(f"/items/{ids[3]}/permissions", 503, {"Retry-After": "0.01"}),
            Fault(f"/items/{ids[2]}/content", 503, {"Retry-After": "0.01"}),
        ]
        await t.run()
        assert len(t.names()) == 5
        assert all(t.acl(name) == [ANNA] for name in t.names())


async def test_long_pause_is_left_to_the_orchestration() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        t.server.file(drive, "a.md", permissions=[user(ANNA)])
        await t.run()
        t.server.faults = [Fault("/delta", 429, {"Retry-After": "300"})]
        reply = await t.step()
        assert (reply.following, reply.pause_s) == ("wait", 300)


@pytest.mark.parametrize("level", ["draft", "checkout"])
async def test_drafts_stay_unread_and_the_published_version_stays(level: str) -> None:
    """Check the case of elastic/connectors#3645 and SharePoint/sp-dev-docs#3267."""
    async with tenant() as t:
        drive = t.server.drive()
        t.server.file(drive, "new.md", permissions=[user(ANNA)], publication={"level": level})
        old = t.server.file(drive, "old.md", b"published", permissions=[user(ANNA), user(BEN)])
        await t.run()
        assert t.names() == ["old.md"]
        drive.items[old].facets["publication"] = {"level": level}
        drive.items[old].permissions = [user(ANNA)]
        t.server.write(drive, old, b"draft")
        await t.run()
        assert t.content("old.md") == b"published"
        assert t.acl("old.md") == [ANNA]


async def test_onedrive_belongs_to_its_owner_and_notebooks_are_left_out() -> None:
    """Check the case of archestra-ai/archestra#7253 and MicrosoftDocs/azure-docs#116746."""
    async with tenant("/personal/cleo_contoso_com") as t:
        drive = t.server.drive(site="/personal/cleo_contoso_com", kind="business", owner=CLEO)
        t.server.file(drive, "diary.md", permissions=[])
        t.server.file(drive, "shared.md", permissions=[user(ANNA)])
        notebook = t.server.folder(drive, "Notes", permissions=[user(ANNA)])
        drive.items[notebook].facets["package"] = {"type": "oneNote"}
        await t.run()
        assert t.names() == ["diary.md", "shared.md"]
        assert t.acl("diary.md") == [CLEO]
        assert t.acl("shared.md") == [ANNA, CLEO]
        assert dict((await t.library()).counts.skipped) == {"not_a_file": 1}
