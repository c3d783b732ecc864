"""The SDK's asynchronous clients against the same server."""

import asyncio

from azure.core.credentials import AzureKeyCredential
from azure.search.documents.aio import SearchClient
from azure.search.documents.indexes.aio import SearchIndexClient
from azure.search.documents.indexes.models import SearchIndex

from tests.contract.search_server.library import FIELDS, PARTS
from tests.servers import SearchServer


async def test_readers_and_writers_at_once_see_whole_documents(
    search_server: SearchServer, credential: AzureKeyCredential
) -> None:
    """Rewrite a document while it is searched, and check that text, filter and stored fields always match."""
    async with (
        SearchIndexClient(search_server.endpoint, credential) as indexes,
        SearchClient(search_server.endpoint, "busy", credential) as client,
    ):
        await indexes.create_or_update_index(SearchIndex({"name": "busy", "fields": FIELDS, **PARTS}))
        words = ["alpha", "beta"]

        async def write() -> None:
            for turn in range(40):
                word = words[turn % 2]
                rows = [
                    {"id": str(n), "content": word, "genre": word, "access_control_list": [word]}
                    for n in range(5)
                ]
                await client.upload_documents(rows)

        async def read(word: str) -> None:
            acl = f"access_control_list/any(a: a eq '{word}')"
            for _ in range(40):
                for text in (word, "*"):
                    async for row in await client.search(text, filter=acl):
                        assert (row["content"], row["genre"]) == (word, word)
                rows = [row async for row in await client.search("alpha beta")]
                assert len(rows) in (0, 5)

        await asyncio.gather(write(), read("alpha"), read("beta"))
        await indexes.delete_index("busy")
