"""Signed addresses of single blobs: by a user delegation key, or by the account's key where one is set.

A signature dies with the user delegation key that made it, so none is promised beyond that key.
Source: "Create a user delegation SAS", Azure Storage documentation.
"""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from shared.clients.calling import STORAGE_LIMITS, calling
from shared.clients.connection import Connection
from shared.clients.dependency import BLOB_SIGNING
from shared.models.blobs import SignedUrl

if TYPE_CHECKING:
    from azure.storage.blob import BlobSasPermissions, UserDelegationKey
    from azure.storage.blob.aio import BlobServiceClient

CLOCK_SKEW = timedelta(minutes=5)
KEY_LIFETIME = timedelta(hours=12)
KEY_RESERVE = timedelta(hours=3)  # a key with less left is replaced: links are wanted for two hours at most


class BlobSigner:
    """Signs for one storage account. The delegation key is asked for once, and kept."""

    def __init__(
        self, connection: "Connection[BlobServiceClient]", *, timeout_s: float = STORAGE_LIMITS.call_s
    ) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._key: UserDelegationKey | None = None
        self._key_ends = datetime.min.replace(tzinfo=UTC)
        self._asking = asyncio.Lock()

    async def sign(
        self, container: str, name: str, permission: "BlobSasPermissions", lifetime_s: float
    ) -> SignedUrl:
        """The blob's address with a signature. It ends after `lifetime_s`, or with the key if that is sooner.

        Raises:
            AuthenticationError: the app's identity may not ask for a delegation key.
        """
        client = await self._connection.opened()
        from azure.storage.blob import generate_blob_sas

        moment = datetime.now(UTC)
        expiry = moment + timedelta(seconds=lifetime_s)
        signing = await self._signing(moment)
        if "user_delegation_key" in signing:
            expiry = min(expiry, self._key_ends)
        blob = client.get_blob_client(container, name)
        signature = generate_blob_sas(
            str(client.account_name),
            container,
            name,
            permission=permission,
            start=moment - CLOCK_SKEW,
            expiry=expiry,
            # Only an emulator is reached without TLS.
            protocol="https" if blob.url.startswith("https://") else "https,http",
            **signing,
        )
        return SignedUrl(url=f"{blob.url}?{signature}", expires_at=expiry.replace(microsecond=0))

    async def _signing(self, moment: datetime) -> dict[str, Any]:
        limit_s = self._timeout_s
        async with calling(self._connection, BLOB_SIGNING, timeout_s=limit_s, operation="sign") as client:
            account_key = getattr(client.credential, "account_key", None)
            if account_key:
                return {"account_key": account_key}
            async with self._asking:
                if self._key is None or self._key_ends - moment < KEY_RESERVE:
                    ends = moment + KEY_LIFETIME
                    self._key = await client.get_user_delegation_key(moment - CLOCK_SKEW, ends)
                    self._key_ends = ends
        return {"user_delegation_key": self._key}
