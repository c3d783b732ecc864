"""The Azure adapters when a service sheds load, hangs, or loses an answer: real SDKs, a scripted server."""

import json

import pytest

from shared.platform.azure_search import AzureSearchIndex
from shared.platform.errors import (
    CallTimeoutError,
    ConflictError,
    DependencyError,
    GroundworkError,
    PayloadTooLargeError,
    RateLimitError,
)
from shared.platform.search import SearchRequest
from shared.platform.tables import Table
from shared.runs.blob_run_log import BlobRunLog
from shared.runs.events import TokenEvent
from shared.wiring import Connections
from tests.contract.clients.conftest import Connect
from tests.contract.clients.scripted_server import Answer, ScriptedServer

pytestmark = pytest.mark.contract

FOUND = Answer(body=json.dumps({"value": [{"@search.score": 1.0, "block_id": "b1"}]}).encode())
LIMITED = Answer("429 Too Many Requests")
BUSY = Answer("503 Server Busy", b"", {"x-ms-error-code": "ServerBusy"})
APPENDED = Answer("201 Created", b"", {"x-ms-blob-append-offset": "100", "etag": '"1"'})
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
    async with ScriptedServer(Answer(delay_s=1.0)) as server:
        with pytest.raises(CallTimeoutError, match="search service"):
            await index(server, connect, timeout_s=0.2).search(SearchRequest(text="valve"))


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
        found = await Table(storage(server, connect).tables, "runs").get("p", "r")
        assert found is not None
        assert found["status"] == "ready"


async def test_a_row_is_added_when_its_table_was_busy_for_a_second(connect: Connect) -> None:
    added = Answer("204 No Content", b"", {"etag": '"1"'})
    async with ScriptedServer(BUSY_TABLE, BUSY_TABLE, BUSY_TABLE, added) as server:
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
