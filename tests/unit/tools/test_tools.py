"""Tests for tools: exact results, clamped arguments, and failures returned as results."""

from datetime import UTC, datetime

from shared.access.models import UserContext
from shared.platform.search import SearchPage
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.models import DocumentRecord
from shared.retrieval.secured_index import SecuredIndex
from shared.tools.base import ToolEvidence
from shared.tools.document_tools import GetDocument, ListDocuments
from shared.tools.semantic_search import SemanticSearch
from tests.fakes.document_rows import FixedRows
from tests.fakes.recording_index import RecordingIndex
from tests.unit.retrieval.test_blocks import ScriptedIndex, row, searching

ANNA = UserContext(user_id="anna")
RECORD = DocumentRecord(
    doc_id="d1",
    filename="m.pdf",
    title="Manual",
    document_type="manual",
    upload_date=datetime(2026, 1, 2, tzinfo=UTC),
    summary_brief="About pumps.",
    page_count=12,
    status="ready",
    owner_id="ben",
    access_control_list=("anna",),
)


def documents(*records: DocumentRecord) -> tuple[RecordingIndex, DocumentSearch]:
    index = RecordingIndex(SearchPage(rows=tuple(record.model_dump(mode="json") for record in records)))
    return index, DocumentSearch(SecuredIndex(index, ANNA, FixedRows()))


async def test_semantic_search_gives_text_or_picture_never_both() -> None:
    picture = row("i", 0.9, block_type="image", content=None, image_url="u", image_caption="c")
    tool = SemanticSearch(searching(ScriptedIndex([row("t", 2.0)], image_caption_vector=[picture])))
    result = await tool.execute(query="valve")
    assert result["success"] is True
    assert result["result_count"] == 2
    by_type = {hit["block_type"]: hit for hit in result["results"]}
    common = {"block_id", "block_type", "doc_id", "filename", "page_number", "score"}
    assert set(by_type["text"]) == common | {"content"}
    assert set(by_type["image"]) == common | {"image_url", "image_caption"}


async def test_an_empty_result_is_a_success() -> None:
    result = await SemanticSearch(searching(ScriptedIndex([]))).execute(query="x", top_k=500)
    assert result == {"success": True, "results": [], "result_count": 0}


async def test_top_k_is_clamped_at_both_ends() -> None:
    index = ScriptedIndex([row(str(number), 100.0 - number) for number in range(60)])
    tool = SemanticSearch(searching(index))
    assert (await tool.execute(query="x", top_k=500))["result_count"] == 50
    assert (await tool.execute(query="x", top_k=-3))["result_count"] == 1


async def test_a_search_returns_blocks_that_the_model_has_not_seen() -> None:
    index = ScriptedIndex([row(str(number), 100.0 - number) for number in range(6)])
    evidence = ToolEvidence(known_blocks={"0", "1", "3"})
    result = await SemanticSearch(searching(index), evidence=evidence).execute(query="x", top_k=2)
    assert [hit["block_id"] for hit in result["results"]] == ["0", "1", "2", "3", "4"]
    assert [hit.block_id for hit in evidence.hits] == ["0", "1", "2", "3", "4"]


async def test_an_unknown_filter_is_a_failure_that_names_the_allowed_fields() -> None:
    result = await SemanticSearch(searching(ScriptedIndex([]))).execute(
        query="x", filters={"access_control_list": "*"}
    )
    assert (result["success"], result["type"]) == (False, "InvalidQueryError")
    assert "document_type" in result["hints"][0]


async def test_wrong_arguments_are_a_failure_that_names_them() -> None:
    tool = SemanticSearch(searching(ScriptedIndex([])))
    for arguments in ({}, {"user_id": "ben"}, {"query": "x", "top_k": "many"}):
        result = await tool.execute(**arguments)
        assert result["type"] == "InvalidQueryError"
        assert "query, top_k, filters" in result["hints"][0]


async def test_a_failure_also_names_arguments_that_were_ignored() -> None:
    tool = SemanticSearch(searching(ScriptedIndex([])))
    result = await tool.execute(query="x", filters={"access_control_list": "*"}, document_ids=["d1"])
    assert result["type"] == "InvalidQueryError"
    assert "document_ids" in result["hints"][-1]


def test_no_schema_lets_a_model_name_a_user() -> None:
    _, search = documents()
    for tool in (SemanticSearch(searching(ScriptedIndex([]))), ListDocuments(search), GetDocument(search)):
        schema = tool.function_tool_schema["function"]
        assert schema["name"] == tool.name
        assert not {"user", "user_id", "groups", "acl"} & set(schema["parameters"]["properties"])
        assert schema["parameters"]["additionalProperties"] is False


async def test_documents_are_listed_newest_first_and_only_complete_ones() -> None:
    index, search = documents(RECORD)
    result = await ListDocuments(search).execute(filters={"document_type": "manual"}, limit=5)
    assert result["documents"] == [
        {
            "doc_id": "d1",
            "filename": "m.pdf",
            "title": "Manual",
            "document_type": "manual",
            "upload_date": "2026-01-02T00:00:00Z",
            "document_date": None,
            "summary_brief": "About pumps.",
        }
    ]
    request = index.requests[0]
    assert (request.order_by, request.top) == (("upload_date desc",), 5)
    assert "status eq 'ready'" in (request.filter or "")


async def test_documents_cannot_be_sorted_by_what_is_not_offered() -> None:
    _, search = documents(RECORD)
    result = await ListDocuments(search).execute(sort_by="access_control_list desc")
    assert result["type"] == "InvalidQueryError"


async def test_a_document_is_shown_without_its_rights() -> None:
    _, search = documents(RECORD)
    document = (await GetDocument(search).execute(doc_id="d1"))["document"]
    assert document["page_count"] == 12
    assert not {"access_control_list", "owner_id"} & set(document)


async def test_a_missing_document_is_a_failure() -> None:
    _, search = documents()
    result = await GetDocument(search).execute(doc_id="it's")
    assert (result["success"], result["type"]) == (False, "DocumentNotFoundError")
