"""Tests that every request is filtered by access rights and that every returned row is checked."""

import pytest

from shared.access.models import UserContext
from shared.access.security_filter import in_thread, security_filter
from shared.platform.errors import AccessDeniedError
from shared.platform.search import IndexRow, SearchPage, SearchRequest
from shared.retrieval.document_rows import DocumentRow, RowsReadOnce
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.secured_index import SecuredIndex
from tests.fakes.document_rows import FixedRows
from tests.fakes.recording_index import RecordingIndex
from tests.fakes.search_index import InMemorySearchIndex

ANNA = UserContext(user_id="anna")
READABLE = "access_control_list/any(acl: search.in(acl, 'anna|*', '|'))"
BENS = DocumentRow((("ben",),))


def block(block_id: str, doc_id: str, version: int = 1) -> IndexRow:
    row = {"block_id": block_id, "doc_id": doc_id, "version": version, "content": "pump"}
    return {**row, "access_control_list": ["anna"]}


async def blocks_for_anna(rows: FixedRows, *blocks: IndexRow) -> list[str]:
    index = InMemorySearchIndex("block_id")
    await index.upload(blocks)
    page = await SecuredIndex(index, ANNA, rows).search(SearchRequest(text="pump", select=("block_id",)))
    return sorted(str(row["block_id"]) for row in page.rows)


async def test_every_request_is_trimmed() -> None:
    index = RecordingIndex(SearchPage(rows=()))
    await SecuredIndex(index, ANNA, FixedRows()).search(SearchRequest(text="x"))
    assert index.requests[0].filter == f"({READABLE}) and (thread_id eq null)"


async def test_another_filter_cannot_escape_the_trimming() -> None:
    index = RecordingIndex(SearchPage(rows=()))
    await SecuredIndex(index, ANNA, FixedRows()).search(SearchRequest(filter="true or doc_id eq 'x'"))
    assert index.requests[0].filter == (f"(({READABLE}) and (thread_id eq null)) and (true or doc_id eq 'x')")


@pytest.mark.parametrize("bound_to", ["", "t1", "t2"])
async def test_a_file_for_one_conversation_is_found_there_alone(bound_to: str) -> None:
    """Check that either the thread id in the index or that in the row is enough to hide the file
    elsewhere.
    """
    own, of_thread = DocumentRow((("anna",),)), DocumentRow((("anna",),), thread_id="t1")
    fields = {"right": "t1", "lagging": None}
    rows = FixedRows({"right": of_thread, "lagging": of_thread, "own": own})
    index = InMemorySearchIndex("block_id")
    await index.upload([block("o", "own") | {"thread_id": None}])
    await index.upload([block(key, key) | {"thread_id": thread_id} for key, thread_id in fields.items()])
    anna = in_thread(ANNA, bound_to) if bound_to else ANNA
    page = await SecuredIndex(index, anna, rows).search(SearchRequest(text="pump", count=True))
    expected = ["lagging", "o", "right"] if bound_to == "t1" else ["o"]
    assert sorted(str(row["block_id"]) for row in page.rows) == expected
    wrong = FixedRows({"right": own, "lagging": of_thread, "own": own})
    page = await SecuredIndex(index, anna, wrong).search(SearchRequest(text="pump"))
    assert sorted(str(row["block_id"]) for row in page.rows) == expected


def test_without_a_user_there_is_no_filter() -> None:
    with pytest.raises(AccessDeniedError):
        security_filter(None)


async def test_the_row_refuses_what_the_index_still_admits() -> None:
    rows = FixedRows({"closed": BENS, "gone": None, "unlisted": DocumentRow(())})
    blocks = [block(f"{doc_id}-1", doc_id) for doc_id in ("closed", "gone", "open", "unlisted")]
    assert await blocks_for_anna(rows, *blocks) == ["open-1"]
    assert sorted(rows.reads) == ["closed", "gone", "open", "unlisted"]


async def test_while_a_version_is_replaced_its_list_and_the_next_one_must_admit() -> None:
    rows = FixedRows({"both": DocumentRow((("anna",), ("*",))), "next": DocumentRow((("ben",), ("*",)))})
    assert await blocks_for_anna(rows, block("b", "both"), block("n", "next")) == ["b"]


async def test_blocks_of_an_older_version_are_dropped_and_those_of_the_next_one_are_not() -> None:
    rows = FixedRows({"guide": DocumentRow((("*",),), version=2)})
    blocks = [block(f"v{version}", "guide", version) for version in (1, 2, 3)]
    assert await blocks_for_anna(rows, *blocks) == ["v2", "v3"]


async def test_a_row_is_read_once_for_all_searches_of_a_tool_call() -> None:
    rows, index = FixedRows(), InMemorySearchIndex("block_id")
    await index.upload([block(f"b{number}", f"doc-{number % 7}") for number in range(30)])
    secured = SecuredIndex(index, ANNA, RowsReadOnce(rows))
    for _ in range(2):
        await secured.search(SearchRequest(text="pump"))
    assert len(rows.reads) == 7


async def test_a_change_of_access_holds_for_the_next_search() -> None:
    rows, index = FixedRows(), InMemorySearchIndex("block_id")
    await index.upload([block("b", "doc")])
    secured = SecuredIndex(index, ANNA, rows)
    assert len((await secured.search(SearchRequest())).rows) == 1
    rows.rows["doc"] = BENS
    assert (await secured.search(SearchRequest())).rows == ()


async def listed(count: int, closed: range, limit: int) -> tuple[list[str], int]:
    """Return the ids of the newest documents and their count. The index wrongly admits Anna to those in
    `closed`.
    """
    index = InMemorySearchIndex("doc_id")
    await index.upload(
        [
            {
                "doc_id": f"d{number:02d}",
                "filename": "x.pdf",
                "status": "ready",
                "upload_date": f"2026-01-{count - number:02d}T00:00:00Z",
                "access_control_list": ["anna"],
            }
            for number in range(count)
        ]
    )
    search = DocumentSearch(SecuredIndex(index, ANNA, FixedRows({f"d{n:02d}": BENS for n in closed})))
    _, number = await search.newest({}, limit)
    return [record.doc_id for record in await search.page({}, None, limit)], number


async def test_a_page_of_a_list_is_refilled() -> None:
    assert (await listed(8, range(1, 4), 3))[0] == ["d00", "d04", "d05"]
    assert (await listed(5, range(1, 5), 3))[0] == ["d00"]
    assert (await listed(16, range(12), 2))[0] == ["d12", "d13"]


async def test_a_refill_reads_few_rows_more_than_it_needs() -> None:
    rows, index = FixedRows({"d0": BENS}), InMemorySearchIndex("doc_id")
    await index.upload([{"doc_id": f"d{n}", "access_control_list": ["anna"]} for n in range(300)])
    page = await SecuredIndex(index, ANNA, rows).search(SearchRequest(top=2))
    assert [row["doc_id"] for row in page.rows] == ["d1", "d2"]
    assert len(rows.reads) <= 70


async def test_the_count_of_a_list_leaves_out_what_the_rows_refuse() -> None:
    assert (await listed(5, range(1, 3), 10))[1] == 3


async def test_of_many_namesakes_only_a_few_rows_are_read() -> None:
    rows, index = FixedRows({"d0": BENS}), InMemorySearchIndex("doc_id")
    await index.upload(
        [
            {
                "doc_id": f"d{number}",
                "filename": "agenda.pdf" if number else "other.pdf",
                "status": "ready",
                "access_control_list": ["anna"],
            }
            for number in range(300)
        ]
    )
    search = DocumentSearch(SecuredIndex(index, ANNA, rows))
    assert await search.shared_names(["agenda.pdf", "other.pdf"]) == {"agenda.pdf"}
    assert len(rows.reads) <= 6
