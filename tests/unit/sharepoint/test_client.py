"""Tests for the SharePoint client: the recipients of tokens, and refused responses."""

import pytest

from shared.platform.errors import DependencyError, NotFoundError
from shared.sharepoint.client import SharePointClient
from shared.sharepoint.libraries import origin_of
from tests.fakes.sharepoint_server import Fault, user
from tests.unit.sharepoint.tenant import ANNA, Tenant, tenant


def _client(t: Tenant) -> SharePointClient:
    assert t.services.sharepoint is not None
    return t.services.sharepoint


@pytest.mark.attack("outgoing addresses")
@pytest.mark.parametrize("host", ["http://127.0.0.2:9", "http://localhost:1", "https://evil.example"])
async def test_no_token_goes_to_an_address_that_an_answer_names(host: str) -> None:
    async with tenant() as t:
        with pytest.raises(DependencyError):
            await _client(t).changes("drive0", f"{host}/v1.0/drives/drive0/delta")
        with pytest.raises(DependencyError):
            await _client(t).site_group(f"{host}/sites/hr", "5")


@pytest.mark.attack("outgoing addresses")
@pytest.mark.parametrize(
    "location",
    [
        "https://evil.example/file",
        "http://contoso.sharepoint.com/file",
        "https://sharepoint.com.evil.example/",
        "",
    ],
)
async def test_downloads_are_redirected_to_sharepoint_only(location: str) -> None:
    async with tenant() as t:
        drive = t.server.drive()
        item = t.server.file(drive, "a.md", permissions=[user(ANNA)])
        t.server.faults = [Fault("/content", 302, {"Location": location}, times=10)]
        with pytest.raises(DependencyError):
            _ = [piece async for piece in _client(t).content(drive.drive_id, item)]


async def test_an_address_of_a_download_expires_and_is_asked_for_again() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        item = t.server.file(drive, "a.md", b"text", permissions=[user(ANNA)])
        t.server.ticket_seconds = 0.0
        with pytest.raises(DependencyError):
            _ = [piece async for piece in _client(t).content(drive.drive_id, item)]
        t.server.ticket_seconds = 60.0
        assert [piece async for piece in _client(t).content(drive.drive_id, item)] == [b"text"]


async def test_long_permission_lists_are_read_page_by_page() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        item = t.server.file(drive, "a.md", permissions=[user(f"p{n}") for n in range(120)])
        lists = await _client(t).permissions(drive.drive_id, [item, "gone"])
        entries = lists[item]
        assert entries is not None
        assert len(entries) == 120
        assert lists["gone"] is None


async def test_large_site_groups_are_read_page_by_page() -> None:
    async with tenant() as t:
        claims = [f"i:0#.f|membership|p{n}@contoso.com" for n in range(250)]
        t.server.site_groups["/sites/hr", "5"] = claims
        assert await _client(t).site_group(f"{t.server.host}/sites/hr", "5") == frozenset(claims)
        with pytest.raises(NotFoundError):
            await _client(t).site_group(f"{t.server.host}/sites/hr", "6")


def test_the_host_of_an_address_may_be_written_in_upper_case() -> None:
    assert origin_of("https://Contoso.SharePoint.com/sites/HR") == "https://contoso.sharepoint.com"
