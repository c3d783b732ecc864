"""A file store of a channel, reachable under every host name, and the downloader that uses it."""

import asyncio
import datetime
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import NameOID

from shared.platform.connections import Connection
from shared.teams.files import ChannelFiles
from shared.teams.models import BotAttachment, BotConversation
from tests.contract.clients.scripted_server import Answer, ScriptedServer
from tests.contract.teams.signing import SERVICE, bot_settings, key

CONVERSATION = BotConversation(channel="msteams", service_url=SERVICE, conversation_id="a", bot_id="28:bot")
SHAREPOINT = (
    "https://contoso-my.sharepoint.com/personal/ada/_layouts/15/download.aspx?UniqueId=1&tempauth=a%2Bb%7E"
)
HOSTED = f"{SERVICE}v3/attachments/1/views/original"
PDF = b"%PDF-1.7\n" + b"x" * 3000
TOKEN = "the bot's token"


class EveryNameIsHere(AbstractResolver):
    """A resolver that maps every host name to the test server, and records the names."""

    def __init__(self, port: int) -> None:
        self.asked: list[str] = []
        self._port = port

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked.append(host)
        here = ResolveResult(
            hostname=host, host="127.0.0.1", port=self._port, family=socket.AF_INET, proto=0, flags=0
        )
        return [here]

    async def close(self) -> None:
        pass


class TlsServer(ScriptedServer):
    """The scripted server over TLS, with a generated certificate."""

    def __init__(self, folder: Path, *answers: Answer) -> None:
        super().__init__(*answers)
        self._folder = folder

    async def __aenter__(self) -> "TlsServer":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate(self._folder))
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=context)
        return self


def certificate(folder: Path) -> Path:
    """Create a certificate without host names, which the client of the test doesn't verify."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    signed_certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key("tls").public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key("tls"), hashes.SHA256())
    )
    private = key("tls").private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "server.pem"
    path.write_bytes(private + signed_certificate.public_bytes(serialization.Encoding.PEM))
    return path


@dataclass
class Channel:
    """The downloader, the only server that it can reach, and its target folder."""

    files: ChannelFiles
    server: ScriptedServer
    names: EveryNameIsHere
    target: Path

    async def fetch(self, url: str, *, is_hosted: bool = False, name: str = "report.pdf") -> int:
        attachment = BotAttachment(name=name, content_type="a", url=url, is_hosted=is_hosted)
        return await self.files.fetch(attachment, CONVERSATION, self.target)

    @property
    def tokens(self) -> list[bool]:
        """Return whether each request contained the bot's token."""
        return [TOKEN in head for head in self.server.heads]


@asynccontextmanager
async def channel(folder: Path, *answers: Answer, **changes: Any) -> AsyncIterator[Channel]:
    async with TlsServer(folder, *answers) as server:
        names = EveryNameIsHere(int(server.endpoint.rpartition(":")[2]))
        connection = Connection(lambda: ClientSession(connector=TCPConnector(resolver=names, ssl=False)))

        async def token() -> str:
            return TOKEN

        files = ChannelFiles(connection, bot_settings(**changes), token)
        yield Channel(files, server, names, folder / "file")
        await connection.close()
        await asyncio.sleep(0)
