"""Names and etags of a container's blobs, and nothing else: a listing several times a second must stay cheap.

The SDK makes 40 typed fields of every blob, 0.1 ms each; of a container with thousands that is most of what
an idle host would do.
"""

from datetime import UTC, datetime, timedelta
from urllib.parse import unquote
from xml.etree import ElementTree

import aiohttp
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError, ServiceRequestError
from azure.storage.blob import ContainerSasPermissions, generate_container_sas
from azure.storage.blob.aio import ContainerClient
from yarl import URL

PAGE_BLOBS = 5000  # the most that the service gives
TIMEOUT = aiohttp.ClientTimeout(total=60)
SIGNATURE_LIFETIME = timedelta(minutes=15)


class BlobLister:
    """Lists containers. For clients that were made from a connection string with a key."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def etags(self, container: ContainerClient) -> dict[str, str]:
        """The etag, without quotes, of every blob by its name.

        Raises:
            ResourceNotFoundError: there is no such container.
            AzureError: storage did not answer, or refused.
        """
        query = f"{_signature(container)}&restype=container&comp=list&maxresults={PAGE_BLOBS}"
        found: dict[str, str] = {}
        marker = ""
        while True:
            page = await self._page(container.url, query, marker)
            for blob in page.iter("Blob"):
                found[_name(blob)] = (blob.findtext("Properties/Etag") or "").strip('"')
            marker = page.findtext("NextMarker") or ""
            if not marker:
                return found

    async def close(self) -> None:
        """End the connections."""
        if self._session is not None:
            await self._session.close()

    async def _page(self, url: str, query: str, marker: str) -> ElementTree.Element:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=TIMEOUT)
        address = URL(f"{url}?{query}", encoded=True)
        if marker:
            address = address.update_query({"marker": marker})
        try:
            async with self._session.get(address) as response:
                body = await response.read()
        except (aiohttp.ClientError, TimeoutError) as failed:
            raise ServiceRequestError(f"listing failed: {type(failed).__name__}") from None
        if response.status == 404:
            raise ResourceNotFoundError("there is no such container")
        if response.status != 200:
            raise HttpResponseError(f"listing was answered with {response.status}")
        return ElementTree.fromstring(body)  # noqa: S314 - of the storage emulator on this machine


def _signature(container: ContainerClient) -> str:
    return generate_container_sas(
        str(container.account_name),
        container.container_name,
        account_key=container.credential.account_key,
        permission=ContainerSasPermissions(list=True),
        expiry=datetime.now(UTC) + SIGNATURE_LIFETIME,
    )


def _name(blob: ElementTree.Element) -> str:
    name = blob.find("Name")
    if name is None:
        return ""
    # A name that XML cannot hold comes percent-encoded.
    return unquote(name.text or "") if name.get("Encoded") == "true" else name.text or ""
