"""Exact results of every tool with the local search service, and with the real one if configured."""

import pytest

from shared.retrieval.reranking import PassageGrade, PassageGrades, PassageScore, PassageScores
from shared.tools.query_rewrite import QueryRewrite
from tests.contract.tools.conftest import World
from tests.contract.tools.corpus import ANNA, BEN, PICTURE
from tests.fakes.models import ScriptedChatModel
from tests.unit.tools.tool_set import tool_for

pytestmark = pytest.mark.contract

TEXT_FIELDS = {"block_id", "block_type", "doc_id", "filename", "page_number", "score", "content"}
PICTURE_FIELDS = (TEXT_FIELDS - {"content"}) | {"image_url", "image_caption"}
LISTED = {"doc_id", "filename", "title", "document_type", "upload_date", "document_date", "summary_brief"}


async def test_search_finds_texts_and_pictures_never_both_in_one(world: World) -> None:
    result = await world.tool("rag_semantic_search", ANNA).execute(query="drawing of the pump")
    assert set(result) == {"success", "results", "result_count"}
    assert result["result_count"] == len(result["results"])
    by_id = {hit["block_id"]: hit for hit in result["results"]}
    assert set(by_id["manual-1"]) == TEXT_FIELDS
    assert set(by_id[PICTURE]) == PICTURE_FIELDS
    assert (by_id[PICTURE]["block_type"], by_id[PICTURE]["page_number"]) == ("image", 3)
    assert by_id["manual-1"]["content"] == "The pump runs at 15 bar."
    scores = [hit["score"] for hit in result["results"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


async def test_search_shows_nobody_what_is_not_theirs(world: World) -> None:
    for user, foreign in ((ANNA, "payroll"), (BEN, "manual")):
        result = await world.tool("rag_semantic_search", user).execute(query="pump revenue", top_k=50)
        documents = {hit["doc_id"] for hit in result["results"]}
        assert documents
        assert foreign not in documents


async def test_nothing_found_is_a_success(world: World) -> None:
    search = await world.tool("rag_semantic_search", BEN).execute(
        query="pump", filters={"document_type": "manual"}
    )
    assert search == {"success": True, "results": [], "result_count": 0}
    documents = await world.tool("rag_metadata_search", ANNA).execute(query="zebra")
    assert documents == {"success": True, "documents": [], "count": 0}
    listed = await world.tool("rag_list_documents", ANNA).execute(filters={"language": "it"})
    assert listed == {"success": True, "documents": [], "count": 0}
    facets = await world.tool("rag_facets", ANNA).execute(fields=["tags"], filters={"language": "it"})
    assert facets == {"success": True, "facets": {"tags": []}, "document_count": 0}


@pytest.mark.parametrize(("limit", "got"), [(1, 1), (0, 1), (-5, 1), (1000, 4)])
async def test_numbers_of_results_are_clamped(world: World, limit: int, got: int) -> None:
    search = world.tool("rag_semantic_search", ANNA)
    result = await search.execute(query="pump revenue", top_k=limit, filters={"block_type": "text"})
    assert result["result_count"] == got
    listed = await world.tool("rag_list_documents", ANNA).execute(limit=limit)
    assert listed["count"] == min(got, 3)
    matched = await world.tool("rag_metadata_search", ANNA).execute(query="manual report", limit=limit)
    assert matched["count"] == min(got, 3)


@pytest.mark.parametrize(
    ("filters", "expected_ids"),
    [
        ({"document_type": "report"}, {"report-2023", "report-2024"}),
        ({"document_type": ["report", "manual"], "language": "en"}, {"report-2023", "manual"}),
        ({"tags": "safety", "department": "finance"}, {"report-2024"}),
        ({"tags": ["salary", "pump"]}, {"manual"}),
        ({"page_count": 40}, {"report-2023"}),
        ({"page_count": [12, 44]}, {"manual", "report-2024"}),
        ({"upload_date": {"start": "2024-02-01", "end": "2024-12-31"}}, {"manual"}),
        ({"upload_date": {"start": "2025-01-01"}, "project_id": "reports"}, {"report-2024"}),
        ({"filename": "manual.pdf", "author": "A. Writer"}, {"manual"}),
        ({"document_type": "secret"}, set()),
        ({"department": "x' or department ne '"}, set()),
    ],
)
async def test_filters_are_combined(world: World, filters: dict[str, object], expected_ids: set[str]) -> None:
    listed = await world.tool("rag_list_documents", ANNA).execute(filters=filters)
    assert {document["doc_id"] for document in listed["documents"]} == expected_ids
    counted = await world.tool("rag_facets", ANNA).execute(filters=filters)
    assert counted["document_count"] == len(expected_ids)


@pytest.mark.parametrize(
    ("filters", "expected_ids"),
    [
        (
            {"document_type": ["manual", "report"], "page_number": 1},
            {"manual-1", "report-2023-1", "report-2024-1"},
        ),
        ({"language": "en", "tags": "pump", "page_number": 1}, {"manual-1"}),
        ({"upload_date": {"start": "2025-01-01"}, "block_type": "text"}, {"report-2024-1"}),
    ],
)
async def test_filters_of_passages_and_of_their_documents_are_combined(
    world: World, filters: dict[str, object], expected_ids: set[str]
) -> None:
    search = world.tool("rag_semantic_search", ANNA)
    result = await search.execute(query="pump revenue", filters=filters)
    assert {block["block_id"] for block in result["results"]} == expected_ids
    described = search.parameters_schema["properties"]["filters"]["description"]
    assert all(field in described for field in filters)


async def test_documents_are_listed_in_the_order_asked_for(world: World) -> None:
    listing = world.tool("rag_list_documents", ANNA)
    newest = await listing.execute()
    assert [document["doc_id"] for document in newest["documents"]] == [
        "report-2024",
        "manual",
        "report-2023",
    ]
    assert set(newest["documents"][0]) == LISTED
    assert newest["documents"][0]["upload_date"] == "2025-01-15T00:00:00Z"
    by_pages = await listing.execute(sort_by="page_count", limit=2)
    assert [document["doc_id"] for document in by_pages["documents"]] == ["manual", "report-2023"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("rag_list_documents", {}),
        ("rag_metadata_search", {"query": "annual report"}),
        ("rag_get_document", {"doc_id": "report-2024"}),
    ],
)
async def test_a_year_alone_is_shown_as_no_day(world: World, name: str, arguments: dict[str, object]) -> None:
    result = await world.tool(name, ANNA).execute(**arguments)
    documents = result.get("documents") or [result["document"]]
    dates = {document["doc_id"]: document["document_date"] for document in documents}
    assert dates["report-2024"] == "2024"
    assert dates.get("report-2023", "2023-12-31") == "2023-12-31"


async def test_a_document_is_got_with_its_summary_and_without_its_rights(world: World) -> None:
    document = (await world.tool("rag_get_document", ANNA).execute(doc_id="manual"))["document"]
    assert document["summary_standard"] == "At length: manual."
    assert (document["filename"], document["title"]) == ("manual.pdf", "Pump manual")
    assert (document["page_count"], document["tags"]) == (12, ["pump", "safety"])
    assert not {"access_control_list", "owner_id"} & set(document)


async def test_not_found_and_not_allowed_cannot_be_told_apart(world: World) -> None:
    get = world.tool("rag_get_document", ANNA)
    foreign, missing = await get.execute(doc_id="payroll"), await get.execute(doc_id="missing")
    assert foreign["type"] == "DocumentNotFoundError"
    assert foreign["hints"]
    as_if_missing = {**foreign, "error": foreign["error"].replace("payroll", "missing")}
    assert as_if_missing == missing


async def test_metadata_is_searched_by_words(world: World) -> None:
    result = await world.tool("rag_metadata_search", ANNA).execute(query="pump manual writer")
    assert result["documents"][0]["doc_id"] == "manual"
    assert set(result["documents"][0]) == LISTED | {
        "author",
        "department",
        "language",
        "tags",
        "page_count",
    }
    theirs = await world.tool("rag_metadata_search", ANNA).execute(query="payroll salary")
    assert theirs["count"] == 0


async def test_facets_count_only_what_the_user_may_read(world: World) -> None:
    result = await world.tool("rag_facets", ANNA).execute()
    counted = {
        field: {value["value"]: value["count"] for value in values}
        for field, values in result["facets"].items()
    }
    assert counted == {
        "document_type": {"report": 2, "manual": 1},
        "department": {"finance": 2, "maintenance": 1},
        "language": {"en": 2, "de": 1},
        "tags": {"revenue": 2, "safety": 2, "pump": 1},
        "project_id": {"reports": 2},
    }
    assert result["document_count"] == 3
    one = await world.tool("rag_facets", ANNA).execute(fields=["document_type"], limit=1)
    assert one["facets"] == {"document_type": [{"value": "report", "count": 2}]}


FOREIGN_AND_UNKNOWN = ["payroll-1", "report-2024-1", "nowhere-9", "manual-1", "manual-1", "a,b|c;'"]


async def test_reranking_reads_the_blocks_again_as_the_user(world: World) -> None:
    scores = PassageScores(scores=(PassageScore(number=2, score=9), PassageScore(number=3, score=10)))
    model = ScriptedChatModel(scores)
    tool = world.tool("rerank", ANNA, model)
    result = await tool.execute(query="pressure?", block_ids=FOREIGN_AND_UNKNOWN, top_k=5)
    assert result == {
        "success": True,
        "results": [
            {
                "block_id": "manual-1",
                "doc_id": "manual",
                "filename": "manual.pdf",
                "page_number": 1,
                "relevance": 0.9,
            },
            {
                "block_id": "report-2024-1",
                "doc_id": "report-2024",
                "filename": "report-2024.pdf",
                "page_number": 1,
                "relevance": None,
            },
        ],
        "result_count": 2,
    }
    assert "salaries" not in model.prompts[0].user


async def test_grading_keeps_what_helps(world: World) -> None:
    grades = PassageGrades(grades=(PassageGrade(number=1, relevant=False),))
    model = ScriptedChatModel(grades)
    tool = world.tool("grade", ANNA, model)
    result = await tool.execute(query="pressure?", block_ids=FOREIGN_AND_UNKNOWN)
    assert [hit["block_id"] for hit in result["results"]] == ["manual-1"]
    assert (result["result_count"], result["graded_count"]) == (1, 2)
    assert "salaries" not in model.prompts[0].user


async def test_foreign_blocks_alone_ask_no_model(world: World) -> None:
    model = ScriptedChatModel()
    for name in ("rerank", "grade"):
        result = await world.tool(name, ANNA, model).execute(query="q", block_ids=["payroll-1", "x"])
        assert (result["success"], result["results"]) == (True, [])
    assert model.prompts == []


async def test_a_question_is_rewritten_from_its_history() -> None:
    rewrite = QueryRewrite(standalone_question="How heavy is the X200?", search_queries=("X200 weight",))
    result = await tool_for("query_rewrite", ANNA, ScriptedChatModel(rewrite)).execute(
        question="And its weight?", history=[{"role": "user", "content": "How fast is the X200?"}]
    )
    assert result == {
        "success": True,
        "standalone_question": "How heavy is the X200?",
        "search_queries": ["How heavy is the X200?", "X200 weight"],
    }


async def test_a_question_to_the_user_is_handed_on() -> None:
    result = await tool_for("ask_user", ANNA).execute(question=" Which? ", options=["a", "b", "a"])
    assert result == {"success": True, "question": "Which?", "options": ["a", "b"]}
