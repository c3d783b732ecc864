"""Tests for URLs signed with a user delegation key, which is cached and renewed before it expires."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from azure.storage.blob import UserDelegationKey
from azure.storage.blob.aio import BlobServiceClient

from shared.platform import blobs
from shared.platform.blobs import BlobSigner
from shared.platform.connections import Connection
from shared.platform.errors import CallTimeoutError

READ = "r"


class KeyGivingService(BlobServiceClient):
    """A blob service that issues user delegation keys and counts them."""

    def __init__(self) -> None:
        super().__init__("https://account.blob.core.windows.net")
        self.keys_given: list[tuple[datetime, datetime]] = []

    async def get_user_delegation_key(self, *args: Any, **kwargs: Any) -> UserDelegationKey:
        starts, ends = args
        self.keys_given.append((starts, ends))
        key = UserDelegationKey()
        key.signed_oid, key.signed_tid = "o", "t"
        key.signed_start, key.signed_expiry = _text(starts), _text(ends)
        key.signed_service, key.signed_version, key.value = "b", "2021-12-02", "c2VjcmV0"
        return key


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def parameters(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


async def test_many_links_cost_one_key_and_go_over_https_only() -> None:
    service = KeyGivingService()
    signer = BlobSigner(Connection(lambda: service))
    signed = [await signer.sign("figures", f"{n}.png", READ, 7200) for n in range(5)]
    assert len(service.keys_given) == 1
    assert {parameters(one.url)["spr"] for one in signed} == {"https"}
    assert parameters(signed[0].url)["sp"] == "r"
    assert parameters(signed[0].url)["skoid"] == "o"
    await service.close()


async def test_a_link_never_outlives_its_key() -> None:
    service = KeyGivingService()
    signed = await BlobSigner(Connection(lambda: service)).sign("figures", "a.png", READ, 48 * 3600)
    query = parameters(signed.url)
    assert query["se"] == query["ske"]
    assert signed.expires_at == service.keys_given[0][1].replace(microsecond=0)
    await service.close()


async def test_a_key_that_ends_too_soon_is_replaced() -> None:
    service = KeyGivingService()
    signer = BlobSigner(Connection(lambda: service))
    await signer.sign("figures", "a.png", READ, 7200)
    signer._key_ends = datetime.now(UTC) + blobs.KEY_RESERVE - timedelta(minutes=1)
    signed = await signer.sign("figures", "a.png", READ, 7200)
    assert len(service.keys_given) == 2
    assert signed.expires_at - datetime.now(UTC) > timedelta(minutes=110)
    await service.close()


async def test_a_signing_key_that_does_not_come_is_a_timeout_for_all_who_wait() -> None:
    class Silent(KeyGivingService):
        async def get_user_delegation_key(self, *args: Any, **kwargs: Any) -> UserDelegationKey:
            await asyncio.sleep(3600)
            raise AssertionError

    service = Silent()
    signer = BlobSigner(Connection(lambda: service), timeout_s=0.05)
    async with asyncio.timeout(30):
        failed = await asyncio.gather(
            *(signer.sign("figures", "a.png", READ, 7200) for _ in range(3)), return_exceptions=True
        )
    assert [type(error) for error in failed] == [CallTimeoutError] * 3
    await service.close()
