"""The complete content of the stores as text, with the location of each item. It is read with the plain SDKs,
without the app.
"""

import base64
import binascii
from collections.abc import AsyncIterator, Sequence

from azure.data.tables.aio import TableServiceClient
from azure.storage.blob.aio import BlobServiceClient
from azure.storage.queue.aio import QueueServiceClient

from shared.platform.search import SearchRequest
from shared.wiring import Services
from tests.servers import Azurite

Stored = dict[str, str]


async def everything(azurite: Azurite, services: Services) -> Stored:
    """Return the content of each row, blob, message and index row, by its location."""
    contents = {place: text async for place, text in _rows(azurite)}
    contents.update({place: text async for place, text in _blobs(azurite)})
    contents.update({place: text async for place, text in _messages(azurite)})
    for name in ("content_index", "documents_index", "memory_index"):
        page = await getattr(services, name).search(SearchRequest(top=1000))
        assert len(page.rows) < 1000
        for row in page.rows:
            fields = {key: value for key, value in row.items() if "vector" not in key and "@" not in key}
            key = next(str(row[one]) for one in ("block_id", "memory_id", "doc_id") if one in row)
            contents[f"index {name} {key}"] = str(fields)
    return contents


def telling(stored: Stored, marks: Sequence[str]) -> Stored:
    """Return the items whose content or location contains one of the marks."""
    return {
        place: text for place, text in stored.items() if any(mark in text or mark in place for mark in marks)
    }


async def _rows(azurite: Azurite) -> AsyncIterator[tuple[str, str]]:
    async with TableServiceClient.from_connection_string(azurite.connection_string) as service:
        async for table in service.list_tables():
            async for row in service.get_table_client(table.name).list_entities():
                yield f"table {table.name} {row['PartitionKey']} {row['RowKey']}", str(dict(row))


async def _blobs(azurite: Azurite) -> AsyncIterator[tuple[str, str]]:
    async with BlobServiceClient.from_connection_string(azurite.connection_string) as service:
        async for container in service.list_containers():
            client = service.get_container_client(container.name)
            async for blob in client.list_blobs(include=["metadata"]):
                content = await (await client.download_blob(blob.name)).readall()
                text = f"{blob.metadata} {content.decode('utf-8', 'replace')}"
                yield f"blob {container.name}/{blob.name}", text


async def _messages(azurite: Azurite) -> AsyncIterator[tuple[str, str]]:
    async with QueueServiceClient.from_connection_string(azurite.connection_string) as service:
        async for queue in service.list_queues():
            for message in await service.get_queue_client(queue.name).peek_messages(32):
                yield f"message {queue.name} {message.id}", _plain(str(message.content))


def _plain(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return text
