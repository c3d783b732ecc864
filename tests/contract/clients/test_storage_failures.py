"""Storage services that fail or hang: each error says what to check, and each call ends in time."""

import asyncio
import gc
import json
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from shared.platform.azure_search import AzureSearchIndex
from shared.platform.blobs import BlobStore
from shared.platform.calls import StorageLimits
from shared.platform.errors import (
    CallTimeoutError,
    ConflictError,
    DependencyError,
    GroundworkError,
    PayloadTooLargeError,
    RateLimitError,
)
from shared.platform.queues import PoisonQueues, TaskQueues
from shared.platform.search import SearchRequest
from shared.platform.tables import Change, Table
from shared.runs.blob_run_log import BlobRunLog
from shared.runs.events import TokenEvent
from shared.wiring import Connections
from tests.contract.clients.conftest import Connect
from tests.contract.clients.scripted_server import FOR_EVER_S, Answer, ScriptedServer

pytestmark = pytest.mark.contract

FOUND = Answer(body=json.dumps({"value": [{"@search.score": 1.0, "block_id": "b1"}]}).encode())

LIMITED = Answer("429 Too Many Requests")

BUSY = Answer("503 Server Busy", b"", {"x-ms-error-code": "ServerBusy"})

APPENDED = Answer(
    "201 Created",
    b"",
    {"x-ms-blob-append-offset": "100", "x-ms-blob-committed-block-count": "2", "etag": '"1"'},
)

BUSY_TABLE = Answer(
    "503 Service Unavailable",
    b'{"odata.error": {"code": "ServerBusy", "message": {"lang": "en-US", "value": "The server is busy."}}}',
    {"content-type": "application/json", "x-ms-error-code": "ServerBusy"},
)

LOST = Answer(lost=True)

EVENTS = [TokenEvent(text="a")]


def storage(server: ScriptedServer, connect: Connect) -> Connections:
    endpoints = f"BlobEndpoint={server.endpoint}/acc;TableEndpoint={server.endpoint}/acc;"
    endpoints += f"QueueEndpoint={server.endpoint}/acc;"
    return connect(DocumentsStorage=f"AccountName=acc;AccountKey=a2V5;{endpoints}")


def index(server: ScriptedServer, connect: Connect, timeout_s: float = 20) -> AzureSearchIndex:
    connection = connect(azure_search_endpoint=server.endpoint).search_index("blocks")
    return AzureSearchIndex(connection, "blocks", timeout_s=timeout_s, key_field="block_id")


@pytest.mark.parametrize("trouble", [LIMITED, Answer("503 Unavailable"), LOST])
async def test_a_query_is_tried_again_after_passing_trouble(connect: Connect, trouble: Answer) -> None:
    async with ScriptedServer(trouble, FOUND) as server:
        page = await index(server, connect).search(SearchRequest(text="valve"))
        assert [row["block_id"] for row in page.rows] == ["b1"]
        assert len(server.requests) == 2


async def test_count_and_rows_cost_one_request(connect: Connect) -> None:
    async with ScriptedServer(FOUND) as server:
        await index(server, connect).search(SearchRequest(text="valve", count=True, facets=("kind",)))
        assert len(server.requests) == 1


@pytest.mark.parametrize(("trouble", "error"), [(LIMITED, RateLimitError), (LOST, DependencyError)])
async def test_after_three_tries_the_query_fails(
    connect: Connect, trouble: Answer, error: type[GroundworkError]
) -> None:
    async with ScriptedServer(trouble) as server:
        with pytest.raises(error):
            await index(server, connect).search(SearchRequest(text="valve"))
        assert len(server.requests) == 3


async def test_a_wait_that_outlasts_the_limit_is_told_and_not_begun(connect: Connect) -> None:
    busy = Answer("429 Too Many Requests", headers={"retry-after": "60"})
    async with ScriptedServer(busy) as server:
        with pytest.raises(RateLimitError) as limited:
            await index(server, connect).search(SearchRequest(text="valve"))
        assert limited.value.retry_after_s == 60
        assert len(server.requests) == 1


async def test_a_query_ends_at_its_limit(connect: Connect) -> None:
    async with ScriptedServer(Answer(delay_s=FOR_EVER_S)) as server:
        with pytest.raises(CallTimeoutError, match="search service"):
            await index(server, connect, timeout_s=0.1).search(SearchRequest(text="valve"))


async def test_an_answer_that_is_no_search_result_is_a_dependencys_fault(connect: Connect) -> None:
    async with ScriptedServer(Answer(body=b"<html>sign in</html>")) as server:
        with pytest.raises(DependencyError):
            await index(server, connect).search(SearchRequest(text="valve"))


async def test_an_append_waits_while_the_account_is_busy(connect: Connect) -> None:
    async with ScriptedServer(BUSY, APPENDED) as server:
        end = await BlobRunLog(storage(server, connect).blobs).append("r1", EVENTS)
        assert end == 100 + len(EVENTS[0].to_line()) + 1
        assert len(server.requests) == 2


async def test_an_append_whose_answer_is_unclear_is_not_sent_again(connect: Connect) -> None:
    async with ScriptedServer(Answer("500 Internal", b""), APPENDED) as server:
        with pytest.raises(DependencyError):
            await BlobRunLog(storage(server, connect).blobs).append("r1", EVENTS, at_offset=0)
        assert len(server.requests) == 1


async def test_a_full_log_is_no_race(connect: Connect) -> None:
    full = Answer("409 Conflict", b"", {"x-ms-error-code": "BlockCountExceedsLimit"})
    async with ScriptedServer(full) as server:
        with pytest.raises(PayloadTooLargeError):
            await BlobRunLog(storage(server, connect).blobs).append("r1", EVENTS, at_offset=0)


async def test_a_moved_end_is_a_race(connect: Connect) -> None:
    moved = Answer("412 Precondition", b"", {"x-ms-error-code": "AppendPositionConditionNotMet"})
    async with ScriptedServer(moved) as server:
        with pytest.raises(ConflictError):
            await BlobRunLog(storage(server, connect).blobs).append("r1", EVENTS, at_offset=0)


async def test_a_table_that_is_busy_is_asked_again(connect: Connect) -> None:
    entity = Answer(body=json.dumps({"PartitionKey": "p", "RowKey": "r", "status": "ready"}).encode())
    async with ScriptedServer(BUSY, entity) as server:
        row = await Table(storage(server, connect).tables, "runs").get("p", "r")
        assert row is not None
        assert row["status"] == "ready"


async def test_a_row_is_added_when_its_table_was_busy_for_a_second(connect: Connect) -> None:
    success = Answer("204 No Content", b"", {"etag": '"1"'})
    async with ScriptedServer(BUSY_TABLE, BUSY_TABLE, BUSY_TABLE, success) as server:
        table = Table(storage(server, connect).tables, "runs")
        assert await table.insert({"PartitionKey": "p", "RowKey": "r"}) == '"1"'
        assert len(server.requests) == 4


async def test_a_table_that_stays_busy_is_a_failure_that_may_pass(connect: Connect) -> None:
    async with ScriptedServer(BUSY_TABLE) as server:
        with pytest.raises(RateLimitError) as busy:
            await Table(storage(server, connect).tables, "runs").insert({"PartitionKey": "p", "RowKey": "r"})
        assert busy.value.retryable
        assert len(server.requests) == 4


async def test_a_row_whose_answer_was_lost_is_not_added_again(connect: Connect) -> None:
    async with ScriptedServer(LOST) as server:
        with pytest.raises(DependencyError):
            await Table(storage(server, connect).tables, "runs").insert({"PartitionKey": "p", "RowKey": "r"})
        assert len(server.requests) == 1


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

LARGE = b"x" * 2_500_000  # uploaded in three pieces


async def parts() -> AsyncIterator[bytes]:
    yield LARGE


async def everything(items: AsyncIterator[Any]) -> None:
    async for _ in items:
        pass


BLOB_CALLS: dict[str, Callable[[BlobStore], Awaitable[Any]]] = {
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
    "delete_version": lambda blobs: blobs.delete_version("c", "a", etag="1"),
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
    "swap": lambda table: table.swap({"PartitionKey": "p", "RowKey": "r"}, "revision"),
    "delete": lambda table: table.delete("p", "r"),
    "merge": lambda table: table.merge({"PartitionKey": "p", "RowKey": "r"}),
    "put": lambda table: table.put({"PartitionKey": "p", "RowKey": "r"}),
    "change": lambda table: table.change([Change("insert", {"PartitionKey": "p", "RowKey": "r"})]),
    "query": lambda table: everything(table.query()),
    "delete_before": lambda table: table.delete_before("Timestamp", datetime.now(UTC), 1),
    "delete_found": lambda table: table.delete_found("PartitionKey eq 'p'", 1),
    "delete_keys": lambda table: table.delete_keys("PartitionKey eq 'p'", 1),
    "first": lambda table: table.first("PartitionKey eq 'p'", 1),
}

QUEUE_CALLS: dict[str, Callable[[TaskQueues], Awaitable[Any]]] = {
    "send": lambda queues: queues.send("q", "a"),
    "ensure_queues": lambda queues: queues.ensure_queues(["q"]),
}

POISON_CALLS: dict[str, Callable[[PoisonQueues], Awaitable[Any]]] = {
    "peek": lambda queues: queues.peek(),
    "remove_of": lambda queues: queues.remove_of("anna"),
}


def public(adapter: type) -> set[str]:
    return {name for name in vars(adapter) if not name.startswith("_")}


def test_every_call_is_tried_here() -> None:
    elsewhere = {"download", "read_url", "upload_url"}  # tested below, and in the tests of signed URLs
    assert public(BlobStore) == {name.removesuffix(" much") for name in BLOB_CALLS} | elsewhere
    assert public(BlobRunLog) == set(LOG_CALLS) | {"watch"}  # `watch` sends no request
    assert public(Table) == set(TABLE_CALLS)
    assert public(TaskQueues) == set(QUEUE_CALLS)
    assert public(PoisonQueues) == set(POISON_CALLS)


@pytest.mark.parametrize("call", BLOB_CALLS.values(), ids=BLOB_CALLS)
async def test_a_call_for_blobs_ends(connect: Connect, call: Callable[[BlobStore], Awaitable[Any]]) -> None:
    async with ScriptedServer(SILENCE) as server, asyncio.timeout(HANG_GUARD_S):
        with pytest.raises(CallTimeoutError, match="blob storage"):
            await call(BlobStore(storage(server, connect).blobs, LIMITS))


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
    connect: Connect, call: Callable[[PoisonQueues], Awaitable[Any]]
) -> None:
    async with ScriptedServer(SILENCE) as server, asyncio.timeout(HANG_GUARD_S):
        queues = PoisonQueues(storage(server, connect).queues, timeout_s=LIMITS.call_s)
        with pytest.raises(CallTimeoutError, match="queue storage"):
            await call(queues)


@pytest.mark.parametrize("call", QUEUE_CALLS.values(), ids=QUEUE_CALLS)
async def test_a_call_for_a_queue_ends(
    connect: Connect, call: Callable[[TaskQueues], Awaitable[Any]]
) -> None:
    async with ScriptedServer(SILENCE) as server, asyncio.timeout(HANG_GUARD_S):
        with pytest.raises(CallTimeoutError, match="queue storage"):
            await call(TaskQueues(storage(server, connect).queues, timeout_s=LIMITS.call_s))


@pytest.mark.parametrize("answer", [SILENCE, HALF], ids=["no answer", "half an answer"])
async def test_a_download_ends_and_leaves_no_file(connect: Connect, answer: Answer, tmp_path: Path) -> None:
    async with ScriptedServer(answer) as server, asyncio.timeout(HANG_GUARD_S):
        with pytest.raises(CallTimeoutError):
            await BlobStore(storage(server, connect).blobs, LIMITS).download("c", "a", tmp_path / "a")
        with warnings.catch_warnings(action="ignore", category=ResourceWarning):
            gc.collect()  # the SDK leaves a partially read connection open until it is garbage-collected
    assert not (tmp_path / "a").exists()


async def test_an_upload_may_take_longer_than_a_piece_as_long_as_pieces_arrive(connect: Connect) -> None:
    slow = Answer(STORED.status, STORED.body, STORED.headers, delay_s=0.1)
    async with ScriptedServer(slow) as server, asyncio.timeout(HANG_GUARD_S):
        blobs = BlobStore(storage(server, connect).blobs, StorageLimits(call_s=0.3, piece_s=0.3))
        await blobs.write("c", "a", LARGE)  # three pieces and the commit, which take 0.4 s
        assert len(server.requests) == 4


async def test_an_upload_waits_for_its_sender(connect: Connect) -> None:
    async def late() -> AsyncIterator[bytes]:
        await asyncio.sleep(0.4)
        yield b"late"

    properties = Answer(headers={**STORED.headers, "x-ms-blob-type": "BlockBlob"}, body=b"")
    async with ScriptedServer(STORED, STORED, properties) as server, asyncio.timeout(HANG_GUARD_S):
        blobs = BlobStore(storage(server, connect).blobs, StorageLimits(call_s=0.3, piece_s=0.3))
        assert (await blobs.write_stream("c", "a.txt", late())).etag == "1"
