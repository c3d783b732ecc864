"""Storage that takes a connection and never answers: every call ends at its limit, with an error of ours."""

import asyncio
import gc
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from shared.platform.blobs import AzureBlobStore
from shared.platform.calls import StorageLimits
from shared.platform.errors import CallTimeoutError
from shared.platform.queues import AzurePoisonQueues, AzureTaskQueues
from shared.platform.tables import Change, Table
from shared.runs.blob_run_log import BlobRunLog
from shared.runs.events import TokenEvent
from tests.contract.clients.conftest import Connect
from tests.contract.clients.scripted_server import FOR_EVER_S, Answer, ScriptedServer
from tests.contract.clients.test_failing_services import storage

pytestmark = pytest.mark.contract

HANG_GUARD_S = 90.0
LIMITS = StorageLimits(call_s=0.2, piece_s=0.2)
SILENCE = Answer(delay_s=FOR_EVER_S)
HALF = Answer(
    "206 Partial Content",
    b"x" * 10,
    {"content-range": "bytes 0-10/11", "etag": '"1"', "content-type": "text/plain"},
    stalls=True,
)
STORED = Answer("201 Created", b"", {"etag": '"1"', "last-modified": "Sat, 21 Nov 2026 00:00:00 GMT"})
LARGE = b"x" * 2_500_000  # three pieces


async def parts() -> AsyncIterator[bytes]:
    yield LARGE


async def everything(items: AsyncIterator[Any]) -> None:
    async for _ in items:
        pass


BLOB_CALLS: dict[str, Callable[[AzureBlobStore], Awaitable[Any]]] = {
    "properties": lambda blobs: blobs.properties("c", "a"),
    "read": lambda blobs: blobs.read("c", "a"),
    "chunks": lambda blobs: everything(blobs.chunks("c", "a", etag="1")),
    "write": lambda blobs: blobs.write("c", "a", b"a"),
    "create": lambda blobs: blobs.create("c", "a", b"a"),
    "read_version": lambda blobs: blobs.read_version("c", "a"),
    "write_version": lambda blobs: blobs.write_version("c", "a", b"a", etag="1"),
    "write much": lambda blobs: blobs.write("c", "a", LARGE),
    "write_stream": lambda blobs: blobs.write_stream("c", "a", parts()),
    "list_blobs": lambda blobs: everything(blobs.list_blobs("c")),
    "delete": lambda blobs: blobs.delete("c", "a"),
    "delete_prefix": lambda blobs: blobs.delete_prefix("c", "a"),
    "ensure_containers": lambda blobs: blobs.ensure_containers(["c"]),
}
LOG_CALLS: dict[str, Callable[[BlobRunLog], Awaitable[Any]]] = {
    "create": lambda log: log.create("r1"),
    "append": lambda log: log.append("r1", [TokenEvent(text="a")]),
    "read": lambda log: log.read("r1"),
    "read_piece": lambda log: log.read_piece("r1", 7),
    "delete": lambda log: log.delete("r1"),
}
TABLE_CALLS: dict[str, Callable[[Table], Awaitable[Any]]] = {
    "ensure": lambda table: table.ensure(),
    "get": lambda table: table.get("p", "r"),
    "insert": lambda table: table.insert({"PartitionKey": "p", "RowKey": "r"}),
    "replace": lambda table: table.replace({"PartitionKey": "p", "RowKey": "r"}),
    "delete": lambda table: table.delete("p", "r"),
    "merge": lambda table: table.merge({"PartitionKey": "p", "RowKey": "r"}),
    "put": lambda table: table.put({"PartitionKey": "p", "RowKey": "r"}),
    "change": lambda table: table.change([Change("insert", {"PartitionKey": "p", "RowKey": "r"})]),
    "query": lambda table: everything(table.query()),
    "delete_before": lambda table: table.delete_before("Timestamp", datetime.now(UTC), 1),
    "delete_found": lambda table: table.delete_found("PartitionKey eq 'p'", 1),
    "first": lambda table: table.first("PartitionKey eq 'p'", 1),
}
QUEUE_CALLS: dict[str, Callable[[AzureTaskQueues], Awaitable[Any]]] = {
    "send": lambda queues: queues.send("q", "a"),
    "ensure_queues": lambda queues: queues.ensure_queues(["q"]),
}
POISON_CALLS: dict[str, Callable[[AzurePoisonQueues], Awaitable[Any]]] = {
    "peek": lambda queues: queues.peek(),
    "remove_of": lambda queues: queues.remove_of("anna"),
}


def public(adapter: type) -> set[str]:
    return {name for name in vars(adapter) if not name.startswith("_")}


def test_every_call_is_tried_here() -> None:
    elsewhere = {"download", "read_url", "upload_url"}  # below; and in the tests of signing
    assert public(AzureBlobStore) == {name.removesuffix(" much") for name in BLOB_CALLS} | elsewhere
    assert public(BlobRunLog) == set(LOG_CALLS) | {"watch"}  # which asks nobody
    assert public(Table) == set(TABLE_CALLS)
    assert public(AzureTaskQueues) == set(QUEUE_CALLS)
    assert public(AzurePoisonQueues) == set(POISON_CALLS)


@pytest.mark.parametrize("call", BLOB_CALLS.values(), ids=BLOB_CALLS)
async def test_a_call_for_blobs_ends(
    connect: Connect, call: Callable[[AzureBlobStore], Awaitable[Any]]
) -> None:
    async with ScriptedServer(SILENCE) as server, asyncio.timeout(HANG_GUARD_S):
        with pytest.raises(CallTimeoutError, match="blob storage"):
            await call(AzureBlobStore(storage(server, connect).blobs, LIMITS))


@pytest.mark.parametrize("call", LOG_CALLS.values(), ids=LOG_CALLS)
async def test_a_call_for_a_log_ends(connect: Connect, call: Callable[[BlobRunLog], Awaitable[Any]]) -> None:
    async with ScriptedServer(SILENCE) as server, asyncio.timeout(HANG_GUARD_S):
        with pytest.raises(CallTimeoutError, match="blob storage"):
            await call(BlobRunLog(storage(server, connect).blobs, limits=LIMITS))


@pytest.mark.parametrize("call", TABLE_CALLS.values(), ids=TABLE_CALLS)
async def test_a_call_for_a_table_ends(connect: Connect, call: Callable[[Table], Awaitable[Any]]) -> None:
    async with ScriptedServer(SILENCE) as server, asyncio.timeout(HANG_GUARD_S):
        with pytest.raises(CallTimeoutError, match="table storage"):
            await call(Table(storage(server, connect).tables, "runs", timeout_s=LIMITS.call_s))


@pytest.mark.parametrize("call", POISON_CALLS.values(), ids=POISON_CALLS)
async def test_a_look_at_poison_queues_ends(
    connect: Connect, call: Callable[[AzurePoisonQueues], Awaitable[Any]]
) -> None:
    async with ScriptedServer(SILENCE) as server, asyncio.timeout(HANG_GUARD_S):
        queues = AzurePoisonQueues(storage(server, connect).queues, timeout_s=LIMITS.call_s)
        with pytest.raises(CallTimeoutError, match="queue storage"):
            await call(queues)


@pytest.mark.parametrize("call", QUEUE_CALLS.values(), ids=QUEUE_CALLS)
async def test_a_call_for_a_queue_ends(
    connect: Connect, call: Callable[[AzureTaskQueues], Awaitable[Any]]
) -> None:
    async with ScriptedServer(SILENCE) as server, asyncio.timeout(HANG_GUARD_S):
        with pytest.raises(CallTimeoutError, match="queue storage"):
            await call(AzureTaskQueues(storage(server, connect).queues, timeout_s=LIMITS.call_s))


@pytest.mark.parametrize("answer", [SILENCE, HALF], ids=["no answer", "half an answer"])
async def test_a_download_ends_and_leaves_no_file(connect: Connect, answer: Answer, tmp_path: Path) -> None:
    async with ScriptedServer(answer) as server, asyncio.timeout(HANG_GUARD_S):
        with pytest.raises(CallTimeoutError):
            await AzureBlobStore(storage(server, connect).blobs, LIMITS).download("c", "a", tmp_path / "a")
        with warnings.catch_warnings(action="ignore", category=ResourceWarning):
            gc.collect()  # the SDK leaves a connection that was half read to it; it is closed then
    assert not (tmp_path / "a").exists()


async def test_an_upload_may_take_longer_than_a_piece_as_long_as_pieces_arrive(connect: Connect) -> None:
    slow = Answer(STORED.status, STORED.body, STORED.headers, delay_s=0.3)
    async with ScriptedServer(slow) as server, asyncio.timeout(HANG_GUARD_S):
        blobs = AzureBlobStore(storage(server, connect).blobs, StorageLimits(call_s=0.8, piece_s=0.8))
        await blobs.write("c", "a", LARGE)  # three pieces and the commit: 1.2 s
        assert len(server.requests) == 4


async def test_an_upload_waits_for_its_sender(connect: Connect) -> None:
    async def late() -> AsyncIterator[bytes]:
        await asyncio.sleep(0.5)
        yield b"late"

    properties = Answer(headers={**STORED.headers, "x-ms-blob-type": "BlockBlob"}, body=b"")
    async with ScriptedServer(STORED, STORED, properties) as server, asyncio.timeout(HANG_GUARD_S):
        blobs = AzureBlobStore(storage(server, connect).blobs, LIMITS)
        assert (await blobs.write_stream("c", "a.txt", late())).etag == "1"
