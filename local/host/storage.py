"""Azure Storage clients for the connections that bindings name, cached until the host stops."""

import contextlib
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import aiohttp
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
    ServiceRequestError,
)
from azure.storage.blob import ContainerSasPermissions, generate_container_sas
from azure.storage.blob.aio import BlobServiceClient, ContainerClient
from azure.storage.queue.aio import QueueClient, QueueServiceClient
from yarl import URL

from local.host.settings import resolve_references, storage_connection

PAGE_BLOBS = 5000  # maximum number of blobs per listing page that the service allows
TIMEOUT = aiohttp.ClientTimeout(total=60)
SIGNATURE_LIFETIME = timedelta(minutes=15)


class BlobLister:
    """A fast lister of the blobs in a container. The connection string must contain an account key."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def etags(self, container: ContainerClient) -> dict[str, str]:
        """Return the etag of every blob by name, without quotation marks.

        Raises:
            ResourceNotFoundError: the container doesn't exist.
            AzureError: storage did not respond, or rejected the request.
        """
        query = f"{_signature(container)}&restype=container&comp=list&maxresults={PAGE_BLOBS}"
        etags: dict[str, str] = {}
        marker = ""
        while True:
            page = await self._page(container.url, query, marker)
            for blob in page.iter("Blob"):
                etags[_name(blob)] = (blob.findtext("Properties/Etag") or "").strip('"')
            marker = page.findtext("NextMarker") or ""
            if not marker:
                return etags

    async def close(self) -> None:
        """Close the HTTP connections."""
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
            raise ServiceRequestError(
                f"The container could not be listed: {type(failed).__name__}."
            ) from None
        if response.status == 404:
            raise ResourceNotFoundError("The container does not exist.")
        if response.status != 200:
            raise HttpResponseError(f"The container could not be listed: status {response.status}.")
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
    # The service percent-encodes names that XML can't represent.
    return unquote(name.text or "") if name.get("Encoded") == "true" else name.text or ""


# The default retries of the SDK take up to a minute. One retry is enough, because listeners repeat failed
# calls and the host must stop quickly.
RETRIES: dict[str, Any] = {
    "retry_total": 1,
    "initial_backoff": 0.5,
    "increment_base": 0.5,
    "random_jitter_range": 0,
    # With True, the transport would read ~/.netrc in a thread before every request.
    "use_env_settings": False,
}


class StorageClients:
    """Storage clients, one blob and one queue service per connection string. All are closed together."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._environment = environment
        self._blob_services: dict[str, BlobServiceClient] = {}
        self._queue_services: dict[str, QueueServiceClient] = {}
        self._open = AsyncExitStack()
        self.lister = BlobLister()
        self._open.push_async_callback(self.lister.close)

    def resolve(self, text: str) -> str:
        """Replace each `%SETTING%` reference in a text.

        Raises:
            SettingError: a setting is missing.
        """
        return resolve_references(text, self._environment)

    def queue(self, connection: str | None, name: str) -> QueueClient:
        """Return a client for a queue. `connection` is named by the binding; None means AzureWebJobsStorage.

        Raises:
            SettingError: the connection is missing.
        """
        text = storage_connection(connection, self._environment)
        if text not in self._queue_services:
            service = QueueServiceClient.from_connection_string(text, **RETRIES)
            self._queue_services[text] = service
            self._open.push_async_callback(service.close)
        return self._queue_services[text].get_queue_client(name)

    @staticmethod
    async def send(queue: QueueClient, text: str) -> None:
        """Send a message to a queue, which is created if it doesn't exist.

        Raises:
            AzureError: storage rejected the request.
        """
        try:
            await queue.send_message(text)
        except ResourceNotFoundError:
            with contextlib.suppress(ResourceExistsError):
                await queue.create_queue()
            await queue.send_message(text)

    def container(self, connection: str | None, name: str) -> ContainerClient:
        """Return a client for a blob container. `connection` is named by the binding; None means
        AzureWebJobsStorage.

        Raises:
            SettingError: the connection is missing.
        """
        return self._blob_service(connection).get_container_client(name)

    def _blob_service(self, connection: str | None) -> BlobServiceClient:
        text = storage_connection(connection, self._environment)
        if text not in self._blob_services:
            service = BlobServiceClient.from_connection_string(text, **RETRIES)
            self._blob_services[text] = service
            self._open.push_async_callback(service.close)
        return self._blob_services[text]

    async def close(self) -> None:
        await self._open.aclose()
