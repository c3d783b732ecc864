"""Downloads of dropped files: only from listed hosts, without the bot's token elsewhere, limited in size and
type.
"""

import asyncio
import gzip
from pathlib import Path

import pytest
from aiohttp import ClientSession

from shared.platform.connections import Connection
from shared.platform.errors import (
    CallerError,
    DependencyError,
    GroundworkError,
    PayloadTooLargeError,
    RateLimitError,
)
from shared.platform.settings import Settings
from shared.teams.files import ChannelFiles
from shared.teams.models import BotAttachment
from tests.contract.clients.scripted_server import Answer, ScriptedServer
from tests.contract.teams.file_channel import CONVERSATION, HOSTED, PDF, SHAREPOINT, channel
from tests.contract.teams.signing import bot_settings

pytestmark = [pytest.mark.contract, pytest.mark.attack("outgoing addresses")]


async def test_a_file_comes_from_sharepoint_by_its_own_permission(tmp_path: Path) -> None:
    async with channel(tmp_path, Answer(body=PDF)) as teams:
        assert await teams.fetch(SHAREPOINT) == len(PDF)
        assert teams.target.read_bytes() == PDF
        assert teams.tokens == [False]
        assert teams.server.requests == [f"GET {SHAREPOINT.partition('.com')[2]} HTTP/1.1"]


async def test_an_address_with_a_long_signature_is_one(tmp_path: Path) -> None:
    async with channel(tmp_path, Answer(body=PDF)) as teams:
        assert await teams.fetch(SHAREPOINT + "x" * 4000) == len(PDF)


async def test_a_page_to_sign_in_is_not_the_file(tmp_path: Path) -> None:
    """Check the response to URLs of sign-in pages, which Teams on iOS sometimes sends:
    OfficeDev/Microsoft-Teams-Samples#1314.
    """
    page = Answer(body=b"<html>Sign in</html>", headers={"content-type": "text/html; charset=utf-8"})
    async with channel(tmp_path, page) as teams:
        with pytest.raises(CallerError, match="instead of the file"):
            await teams.fetch(SHAREPOINT, name="notes.txt")
        assert not teams.target.exists()
    async with channel(tmp_path, page) as teams:
        assert await teams.fetch(SHAREPOINT, name="notes.html") > 0


async def test_a_picture_that_the_channel_keeps_is_asked_for_with_our_token(tmp_path: Path) -> None:
    async with channel(tmp_path, Answer(body=PDF)) as teams:
        await teams.fetch(HOSTED, is_hosted=True)
        assert teams.tokens == [True]


@pytest.mark.parametrize(
    ("url", "is_hosted"),
    [
        (SHAREPOINT, True),
        (HOSTED, False),
        ("https://webchat.botframework.com/attachments/1", True),  # the Bot Service, for another channel
    ],
)
async def test_our_token_goes_nowhere_else(tmp_path: Path, url: str, is_hosted: bool) -> None:
    hosts = ".sharepoint.com,smba.trafficmanager.net,.botframework.com"
    async with channel(tmp_path, Answer(body=PDF), bot_attachment_hosts=hosts) as teams:
        await teams.fetch(url, is_hosted=is_hosted)
        assert teams.tokens == [False]


async def test_our_token_does_not_follow_a_redirect(tmp_path: Path) -> None:
    moved = Answer(status="302 Found", headers={"location": SHAREPOINT})
    async with channel(tmp_path, moved, Answer(body=PDF)) as teams:
        assert await teams.fetch(HOSTED, is_hosted=True) == len(PDF)
        assert teams.tokens == [True, False]


FOREIGN = [
    "https://evil.example/report.pdf",
    "https://contoso-my.sharepoint.com.evil.example/report.pdf",
    "https://evilsharepoint.com/report.pdf",
    "https://sharepoint.com/report.pdf",
    "https://contoso-my.sharepoint.com@evil.example/report.pdf",
    "https://evil.example\\@contoso-my.sharepoint.com/report.pdf",
    "https://evil.example#@contoso-my.sharepoint.com/report.pdf",
    "http://contoso-my.sharepoint.com/report.pdf",
    "http://contoso-my.sharepoint.com:443/report.pdf",
    "https://evil.example\\.sharepoint.com/report.pdf",
    "https://contoso-my.sharepoint.com:8443/report.pdf",
    "https://127.0.0.1/report.pdf",
    "http://localhost/report.pdf",
    "http://169.254.169.254/metadata/identity/oauth2/token",
    "https://[::1]/report.pdf",
    "https://c\u043entoso-my.sharepoint.com/report.pdf",
    "file:///etc/passwd",
    "data:application/pdf;base64,JVBERi0=",
    "//contoso-my.sharepoint.com/report.pdf",
    "https://",
    "",
    "https://contoso-my.sharepoint.com/" + "x" * 9000,
]


@pytest.mark.parametrize("url", FOREIGN, ids=lambda url: url[:60])
async def test_what_is_on_no_listed_host_is_not_fetched(tmp_path: Path, url: str) -> None:
    async with channel(tmp_path, Answer(body=PDF)) as teams:
        with pytest.raises(CallerError) as refused:
            await teams.fetch(url, is_hosted=True)
        assert (teams.names.asked, teams.server.requests) == ([], [])
        assert not teams.target.exists()
        assert "evil.example" not in str(refused.value)


@pytest.mark.parametrize(
    "location", ["https://evil.example/x", "http://127.0.0.1/x", "//evil.example/x", "file:///x"]
)
async def test_a_redirect_off_the_list_is_not_followed(tmp_path: Path, location: str) -> None:
    moved = Answer(status="302 Found", headers={"location": location})
    async with channel(tmp_path, moved, Answer(body=PDF)) as teams:
        with pytest.raises(CallerError):
            await teams.fetch(SHAREPOINT)
        assert len(teams.server.requests) == 1
        assert not teams.target.exists()


async def test_redirects_in_a_circle_end(tmp_path: Path) -> None:
    async with channel(tmp_path, Answer(status="307 Again", headers={"location": SHAREPOINT})) as teams:
        with pytest.raises(CallerError):
            await teams.fetch(SHAREPOINT)
        assert len(teams.server.requests) == 4


BOMB = Answer(body=gzip.compress(b"x" * 5000), headers={"content-encoding": "gzip"})


@pytest.mark.parametrize("answer", [Answer(body=b"x" * 5000), BOMB], ids=["large", "packed"])
async def test_more_bytes_than_a_document_may_have_are_not_read(tmp_path: Path, answer: Answer) -> None:
    async with channel(tmp_path, answer, max_document_bytes=4000) as teams:
        with pytest.raises(PayloadTooLargeError):
            await teams.fetch(SHAREPOINT)
        assert not teams.target.exists()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(status="401 No"), CallerError),
        (Answer(status="404 Gone"), CallerError),
        (Answer(status="429 Slow", headers={"retry-after": "7"}), RateLimitError),
        (Answer(status="500 Oops"), DependencyError),
        (Answer(lost=True), DependencyError),
    ],
)
async def test_what_cannot_be_had_is_an_error_of_ours(
    tmp_path: Path, answer: Answer, error: type[GroundworkError]
) -> None:
    async with channel(tmp_path, answer) as teams:
        with pytest.raises(error) as failed:
            await teams.fetch(SHAREPOINT)
        assert "tempauth" not in f"{failed.value} {failed.value.hints}"
        assert not teams.target.exists()


async def test_a_file_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    cut = Answer(
        body=PDF, headers={"content-length": str(len(PDF) + 10), "connection": "close"}, stalls=False
    )
    async with channel(tmp_path, cut) as teams:
        fetching = asyncio.create_task(teams.fetch(SHAREPOINT))
        await asyncio.sleep(0.2)
        fetching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetching
        assert not teams.target.exists()


async def test_files_of_this_machine_are_for_development(tmp_path: Path) -> None:
    async def token() -> str:
        raise AssertionError("no token goes to this machine")

    async def fetch(settings: Settings, url: str) -> int:
        connection: Connection[ClientSession] = Connection(ClientSession)
        attachment = BotAttachment(name="a.pdf", content_type="a", url=url, is_hosted=True)
        local = CONVERSATION.model_copy(update={"service_url": url})
        try:
            return await ChannelFiles(connection, settings, token).fetch(attachment, local, tmp_path / "file")
        finally:
            await connection.close()

    async with ScriptedServer(Answer(body=PDF)) as server:
        playground = bot_settings(bot_app_id=None, bot_tenant_id=None, bot_local_anonymous=True)
        assert await fetch(playground, f"{server.endpoint}/a.pdf") == len(PDF)
        with pytest.raises(CallerError):
            await fetch(bot_settings(), f"{server.endpoint}/a.pdf")
