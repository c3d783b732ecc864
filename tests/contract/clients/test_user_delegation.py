"""Signing without an account key, as in Azure: an identity, TLS, and a delegation key from the service."""

import datetime as dt
import ipaddress
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from azure.core.credentials import AccessToken
from azure.storage.blob.aio import BlobServiceClient
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from local.azurite.server import ACCOUNT, DEFAULT_PREFIX, HOST, find_node, install
from shared.platform.blobs import BlobStore
from shared.platform.connections import Connection
from tests.free_ports import find_free_port

pytestmark = pytest.mark.contract
START_TIMEOUT_S = 120.0


class Identity:
    """An identity with tokens like an identity provider's. The emulator reads their claims but not the
    signature.
    """

    async def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        now = int(time.time())
        issuer = "https://sts.windows.net/ab1f708d-50f6-404c-a006-d71b2ac7a606/"
        claims: dict[str, Any] = {
            "aud": "https://storage.azure.com",
            "iss": issuer,
            "iat": now,
            "nbf": now - 60,
        }
        claims |= {
            "exp": now + 3600,
            "oid": "23657296-5cd5-45b0-a809-d972a7f4dfe1",
            "tid": issuer.split("/")[3],
        }
        return AccessToken(jwt.encode(claims, "x" * 32, algorithm="HS256"), now + 3600)

    async def close(self) -> None:
        """Do nothing, because no connection is open."""

    async def __aenter__(self) -> "Identity":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a certificate for loopback, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = dt.datetime.now(dt.UTC)
    signed_certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(signed_certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture(scope="module")
def endpoint(certificate: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield an Azurite that requires TLS and accepts identities."""
    folder = tmp_path_factory.mktemp("azurite-tls")
    ports = {name: find_free_port() for name in ("blob", "queue", "table")}
    command = [*find_node().node, str(install(DEFAULT_PREFIX)), "--location", str(folder)]
    for name, port in ports.items():
        command += [f"--{name}Port", str(port), f"--{name}Host", HOST]
    cert, key = certificate
    command += ["--oauth", "basic", "--cert", str(cert), "--key", str(key), "--silent", "--disableTelemetry"]
    process = subprocess.Popen([*command, "--skipApiVersionCheck"])
    try:
        url = f"https://{HOST}:{ports['blob']}/{ACCOUNT}"
        deadline = time.monotonic() + START_TIMEOUT_S
        while status(f"{url}/x/y", certificate) is None:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture
async def store(endpoint: str, certificate: tuple[Path, Path]) -> AsyncIterator[BlobStore]:
    client = BlobServiceClient(endpoint, credential=Identity(), connection_verify=str(certificate[0]))
    connection = Connection(lambda: client)
    blob_store = BlobStore(connection)
    await blob_store.ensure_containers(["figures"])
    yield blob_store
    await connection.close()


def status(url: str, certificate: tuple[Path, Path], content: bytes | None = None) -> int | None:
    """Return the status of a GET, or of a PUT of `content`; None while the server doesn't respond."""
    trust = ssl.create_default_context(cafile=str(certificate[0]))
    headers = {"x-ms-blob-type": "BlockBlob"} if content is not None else {}
    request = urllib.request.Request(
        url, data=content, headers=headers, method="GET" if content is None else "PUT"
    )
    try:
        with urllib.request.urlopen(request, timeout=30, context=trust) as answered:
            return int(answered.status)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code
    except urllib.error.URLError:
        return None


async def test_a_link_signed_by_identity_opens_its_blob_for_its_purpose(
    store: BlobStore, certificate: tuple[Path, Path]
) -> None:
    await store.write("figures", "d1/ü 1.png", b"\x89PNG")
    read = await store.read_url("figures", "d1/ü 1.png", 3600)
    assert "skoid=23657296" in read.url
    assert status(read.url, certificate) == 200
    assert status(read.url.split("?")[0], certificate) in (401, 403, 404)
    assert status(read.url, certificate, b"changed") == 403
    upload = await store.upload_url("figures", "d1/new.png", 3600)
    assert status(upload.url, certificate, b"new") == 201
    assert await store.read("figures", "d1/new.png") == b"new"
    assert status((await store.read_url("figures", "d1/new.png", -1)).url, certificate) == 403
