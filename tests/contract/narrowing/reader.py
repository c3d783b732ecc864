"""A separate process that reads documents for one user. Each line of input requests a read, and is answered
by one line of output.

python -m tests.contract.narrowing.reader  # settings as JSON in the environment variable READER_SETTINGS
"""

import asyncio
import json
import os
import sys
from dataclasses import replace
from typing import Any

from shared.access.models import UserContext
from shared.documents.listing import ListCriteria, find_documents, list_documents
from shared.documents.lookup import get_document
from shared.platform.errors import DocumentNotFoundError
from shared.tools.registry import bound_tool
from shared.wiring import Services, build_services
from tests.fakes.models import HashingEmbedder
from tests.fakes.services import fake_settings

READER = UserContext(user_id="anna")
DIMENSIONS = 64
KINDS = ("search", "pages", "list", "names", "describe", "one")


async def documents_seen(kind: str, doc_id: str, services: Services) -> set[str]:
    """Return the ids of the documents whose data a read of the given kind returns."""
    if kind == "list":
        listed = await list_documents(READER, services, ListCriteria({}))
        return {view.doc_id for view in listed.documents}
    if kind == "names":
        listed = await find_documents("pump", READER, services, {}, 20)
        return {view.doc_id for view in listed.documents}
    if kind == "one":
        try:
            return {(await get_document(doc_id, READER, services)).doc_id}
        except DocumentNotFoundError:
            return set()
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "search": ("rag_semantic_search", {"query": "pump pressure", "top_k": 20}),
        "pages": ("read_pages", {"doc_id": doc_id}),
        "describe": ("rag_get_document", {"doc_id": doc_id}),
    }
    name, arguments = calls[kind]
    result = await bound_tool(name, services, READER).execute(**arguments)
    return {doc_id} if result["success"] and doc_id in json.dumps(result) else set()


def reading_services(settings: dict[str, str]) -> Services:
    """Create the services of one process."""
    built = build_services(fake_settings(**settings, embedding_dimensions=DIMENSIONS))
    return replace(built, embedder=HashingEmbedder(DIMENSIONS))


async def _serve() -> None:
    services = reading_services(json.loads(os.environ["READER_SETTINGS"]))
    while line := await asyncio.to_thread(sys.stdin.readline):
        kind, doc_id = json.loads(line)
        seen = await documents_seen(kind, doc_id, services)
        sys.stdout.write(json.dumps(sorted(seen)) + "\n")
        sys.stdout.flush()
    await services.close()


if __name__ == "__main__":
    asyncio.run(_serve())
