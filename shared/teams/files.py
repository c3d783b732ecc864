"""Downloads files that users attach in chats. Only hosts listed in BOT_ATTACHMENT_HOSTS are contacted.

URLs come from outside, so they must be https on a listed host, also after every redirect. Our token is sent
only to the Bot Service host that delivered the activity. Bytes are counted while streaming, up to
MAX_DOCUMENT_BYTES. No URL appears in an error or log, because it grants access to the file.
"""

# Annotations remain strings, so the modules of their types are not imported at startup.
from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO
from urllib.parse import SplitResult, urljoin

from aiohttp import ClientResponse, ClientSession
from yarl import URL

from shared.platform.calls import BOT_FILES as SERVICE
from shared.platform.calls import azure_errors, error_of_status
from shared.platform.connections import Connection, Credentials
from shared.platform.errors import CallerError, PayloadTooLargeError
from shared.platform.http_client import http_errors
from shared.platform.settings import Settings
from shared.teams import messages
from shared.teams.models import BotAttachment, BotConversation
from shared.teams.tokens import CLOUDS, address_parts, is_loopback, is_on, is_service, origin

# Time limit of a file: 500 MB at 17 Mbit/s. An activity function has 10 minutes.
FETCH_S = 240.0
SILENCE_S = 20.0  # maximum wait for the next chunk; unmeasured
_MAX_REDIRECTS = 3
_CHUNK_BYTES = 256 * 1024
_PAGES = (".html", ".htm")
_REDIRECTS = (301, 302, 303, 307, 308)
Token = Callable[[], Awaitable[str]]


def bot_token(settings: Settings, credentials: Credentials) -> Token:
    """Return a function that obtains Bot Service access tokens through the bot's managed identity."""
    scope = f"{CLOUDS[settings.bot.cloud].issuer}/.default"

    async def token() -> str:
        with azure_errors(SERVICE):
            return (await credentials.for_bot().get_token(scope)).token

    return token


class FileRefusedError(CallerError):
    """The error raised when an attached file can't be downloaded. The message is in the user's language."""

    def __init__(self, texts: messages.Texts) -> None:
        super().__init__(texts["en"])
        self.texts = texts


class ChannelFiles:
    """HTTP client that downloads files attached to chat messages."""

    def __init__(self, connection: Connection[ClientSession], settings: Settings, token: Token) -> None:
        self._connection = connection
        self._settings = settings
        self._service_hosts = CLOUDS[settings.bot.cloud].hosts
        self._token = token

    async def fetch(self, attachment: BotAttachment, conversation: BotConversation, target: Path) -> int:
        """Download an attached file to `target` and return its size in bytes. A partial download is deleted.

        Raises:
            FileRefusedError: the host isn't listed, or the channel no longer has the file.
            PayloadTooLargeError: it exceeds MAX_DOCUMENT_BYTES, where reading stops.
            DependencyError: the download failed.
        """
        address = attachment.url
        with http_errors(SERVICE):
            async with asyncio.timeout(FETCH_S):
                for _ in range(_MAX_REDIRECTS + 1):
                    headers = await self._headers(self._check_host(address), attachment, conversation)
                    moved = await self._get(address, headers, attachment, target)
                    if isinstance(moved, int):
                        return moved
                    address = urljoin(address, moved)
        raise FileRefusedError(messages.FILE_GONE)

    def _check_host(self, address: str) -> SplitResult:
        """Parse a URL, and raise an error unless its host is in BOT_ATTACHMENT_HOSTS.

        Raises:
            FileRefusedError: the host isn't listed.
        """
        parts = address_parts(address)
        if parts is not None and self._is_listed(parts):
            return parts
        raise FileRefusedError(messages.PLACE_REFUSED)

    def _is_listed(self, parts: SplitResult) -> bool:
        if is_loopback(parts):
            return self._settings.bot.local_anonymous
        scheme, host, port = origin(parts)
        names = self._settings.bot.attachment_hosts
        return scheme == "https" and is_on(host if port == 443 else f"{host}:{port}", names)

    async def _headers(
        self, parts: SplitResult, attachment: BotAttachment, conversation: BotConversation
    ) -> dict[str, str]:
        came_from = address_parts(conversation.service_url)
        is_channels_own = came_from is not None and origin(parts) == origin(came_from)
        if attachment.is_hosted and is_channels_own and is_service(parts, self._service_hosts):
            return {"Authorization": f"Bearer {await self._token()}"}
        return {}

    async def _get(
        self, address: str, headers: dict[str, str], attachment: BotAttachment, target: Path
    ) -> int | str:
        """Send one request. Return the size of the downloaded file in bytes, or the target URL of a
        redirect.
        """
        session = await self._connection.opened()
        # The URL is already encoded. Encoding it again could invalidate its signature.
        async with session.get(
            URL(address, encoded=True), headers=headers, allow_redirects=False
        ) as response:
            if response.status in _REDIRECTS:
                return response.headers.get("Location", "")
            _check(response)
            _check_is_file(response, attachment)
            self._check_size(response.content_length or 0)
            return await self._write(response, target)

    async def _write(self, response: ClientResponse, target: Path) -> int:
        is_whole = False
        file = await asyncio.to_thread(target.open, "wb")
        try:
            size = await self._copy(response, file)
            is_whole = True
        finally:
            await asyncio.to_thread(file.close)
            if not is_whole:
                await asyncio.to_thread(target.unlink, missing_ok=True)
        return size

    async def _copy(self, response: ClientResponse, file: IO[bytes]) -> int:
        size = 0
        while True:
            async with asyncio.timeout(SILENCE_S):
                chunk = await response.content.read(_CHUNK_BYTES)
            if not chunk:
                return size
            size += len(chunk)
            self._check_size(size)
            await asyncio.to_thread(file.write, chunk)

    def _check_size(self, size_bytes: int) -> None:
        most = self._settings.ingestion.max_document_bytes
        if size_bytes > most:
            raise PayloadTooLargeError(f"The file is larger than {most:,} bytes.", "Split the file.")


def _check(response: ClientResponse) -> None:
    if response.status == 200:
        return
    if response.status in (401, 403, 404, 410):
        raise FileRefusedError(messages.FILE_GONE)
    raise error_of_status(SERVICE, response.status, response.headers)


def _check_is_file(response: ClientResponse, attachment: BotAttachment) -> None:
    """Raise an error if the response is HTML, because a sign-in page would otherwise be stored as the
    document.
    """
    if response.content_type == "text/html" and not attachment.name.lower().endswith(_PAGES):
        raise FileRefusedError(messages.NO_FILE)
