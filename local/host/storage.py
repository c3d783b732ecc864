"""Opens storage clients by the connection names of bindings, and keeps them until the host stops."""

import contextlib
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.blob.aio import BlobClient, BlobServiceClient, ContainerClient
from azure.storage.queue.aio import QueueClient, QueueServiceClient

from local.host.blob_listing import BlobLister
from local.host.settings import resolve_references, storage_connection

# The default retries wait for up to a minute: listeners try again by themselves, and stopping must not wait.
RETRIES: dict[str, Any] = {
    "retry_total": 1,
    "initial_backoff": 0.5,
    "increment_base": 0.5,
    "random_jitter_range": 0,
    # Else the transport reads ~/.netrc in a thread before every request; this machine needs no proxy.
    "use_env_settings": False,
}


class StorageClients:
    """One blob and one queue client per connection string; closes them all at once."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._environment = environment
        self._blob_services: dict[str, BlobServiceClient] = {}
        self._queue_services: dict[str, QueueServiceClient] = {}
        self._open = AsyncExitStack()
        self.lister = BlobLister()
        self._open.push_async_callback(self.lister.close)

    def resolve(self, text: str) -> str:
        """Replace `%SETTING%` references.

        Raises:
            SettingError: such a setting is not set.
        """
        return resolve_references(text, self._environment)

    def queue(self, connection: str | None, name: str) -> QueueClient:
        """A queue, by a binding's connection name (None: AzureWebJobsStorage).

        Raises:
            SettingError: the connection is not set.
        """
        text = storage_connection(connection, self._environment)
        if text not in self._queue_services:
            service = QueueServiceClient.from_connection_string(text, **RETRIES)
            self._queue_services[text] = service
            self._open.push_async_callback(service.close)
        return self._queue_services[text].get_queue_client(name)

    @staticmethod
    async def send(queue: QueueClient, text: str) -> None:
        """Put a message on a queue, which is made if it is missing.

        Raises:
            AzureError: storage refused it.
        """
        try:
            await queue.send_message(text)
        except ResourceNotFoundError:
            with contextlib.suppress(ResourceExistsError):
                await queue.create_queue()
            await queue.send_message(text)

    def container(self, connection: str | None, name: str) -> ContainerClient:
        """A blob container, by a binding's connection name.

        Raises:
            SettingError: the connection is not set.
        """
        return self._blob_service(connection).get_container_client(name)

    def blob(self, connection: str | None, container: str, name: str) -> BlobClient:
        """One blob, by a binding's connection name.

        Raises:
            SettingError: the connection is not set.
        """
        return self._blob_service(connection).get_blob_client(container, name)

    def _blob_service(self, connection: str | None) -> BlobServiceClient:
        text = storage_connection(connection, self._environment)
        if text not in self._blob_services:
            service = BlobServiceClient.from_connection_string(text, **RETRIES)
            self._blob_services[text] = service
            self._open.push_async_callback(service.close)
        return self._blob_services[text]

    async def close(self) -> None:
        await self._open.aclose()
