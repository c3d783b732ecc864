"""Direct access to a running stack: document states and index rows without the app, and changes of blobs."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from local.run_all.stack import LocalStack
from shared.documents.ids import document_id
from shared.documents.index_rows import all_rows
from shared.documents.state import DocumentState
from shared.platform.names import DOCUMENTS, WORK
from shared.platform.odata import quote
from shared.platform.search import IndexRow, SearchRequest
from shared.platform.settings import load_settings
from shared.wiring import Services, build_services

HANG_GUARD_S = 300.0  # enough even if a host is killed repeatedly on a slow machine
_POLL_S = 0.1
_TIMES = ("upload_date",)  # fields that differ between two runs with the same input
_STABLE_FIELDS = {
    "blob_name",
    "status",
    "content_hash",
    "version",
    "block_count",
    "warnings",
    "wish",
    "settled",
}


@asynccontextmanager
async def services_of(stack: LocalStack) -> AsyncIterator[Services]:
    """Yield services for the stack's storage, indexes and models, with the settings of the host."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in stack.app_settings.items():
            patch.setenv(name, value)
        services = build_services(load_settings())
    try:
        yield services
    finally:
        await services.close()


async def drop_file(services: Services, name: str, content: bytes, acl: str = "*") -> None:
    """Write a version of a document to the container."""
    await services.blobs.write(DOCUMENTS, name, content, metadata={"acl": acl})


async def until(
    services: Services, doc_id: str, what: str, is_so: Callable[[DocumentState], bool]
) -> DocumentState:
    """Wait until a condition on the document's state is true, and return the state."""
    deadline = time.monotonic() + HANG_GUARD_S
    state = None
    while time.monotonic() < deadline:
        state = await services.documents.get(doc_id)
        if state is not None and is_so(state):
            return state
        await asyncio.sleep(_POLL_S)
    raise AssertionError(f"{what} did not come to pass: {state!r}")


async def until_current(services: Services, name: str, content: bytes) -> DocumentState:
    """Wait until exactly this content was ingested last, successfully or not, and return the document's
    state.
    """
    content_hash = hashlib.sha256(content).hexdigest()

    def is_current(state: DocumentState) -> bool:
        is_read = state.status == "ready" and state.content_hash == content_hash
        return not state.is_open and (state.status == "failed" or is_read)

    return await until(services, document_id(name), f"{name}, current,", is_current)


async def until_gone(services: Services, name: str) -> None:
    """Wait until all data of the document is deleted."""
    deadline = time.monotonic() + HANG_GUARD_S
    while (state := await services.documents.get(document_id(name))) is not None:
        assert time.monotonic() < deadline, f"{name} was not forgotten: {state!r}"
        await asyncio.sleep(_POLL_S)


async def blocks_of(services: Services, name: str) -> list[IndexRow]:
    """Return the document's rows in the index of blocks."""
    request = SearchRequest(filter=f"doc_id eq {quote(document_id(name))}", order_by=("block_id",), top=1000)
    return list((await services.content_index.search(request)).rows)


async def everything(services: Services) -> dict[str, object]:
    """Return the rows of both indexes, the states, the pictures and the work files, without times."""
    return {
        "blocks": [row async for row in all_rows(services.content_index, "block_id", ())],
        "documents": [
            {field: value for field, value in row.items() if field not in _TIMES}
            async for row in all_rows(services.documents_index, "doc_id", ())
        ],
        "states": sorted([_stable_fields_of(state) async for state in services.documents.all()], key=str),
        "versions": [blob.name async for blob in services.blobs.list_blobs(WORK, "versions/")],
    }


def _stable_fields_of(state: DocumentState) -> dict[str, object]:
    return state.model_dump(mode="json", include=_STABLE_FIELDS)
