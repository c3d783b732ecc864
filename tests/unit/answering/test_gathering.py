"""Tests for selecting the documents and blocks used for an answer."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.answering.listing import gather_documents
from shared.answering.named_documents import resolve_documents
from shared.answering.prompt import documents_xml
from shared.answering.question_search import QuestionSearch
from shared.platform.language_models.models import CallLimits
from shared.retrieval.block_reading import DocumentBlocks
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.models import DocumentRecord
from shared.retrieval.secured_index import SecuredIndex
from shared.runs.evidence import Evidence, StoredPlan
from shared.runs.models import Conversation, ConversationTurn, RunRequest
from shared.runs.plan import QuestionPlan
from shared.tools.registry import block_search
from shared.wiring import Services
from tests.fakes.services import fake_services, fake_settings
from tests.world import ANNA, add_record, plan

DAY = datetime(2026, 1, 1, tzinfo=UTC)
REQUEST = RunRequest(run_id="r", thread_id="t", user=ANNA, question="q", created_at=DAY)


async def services_with(*names: str) -> Services:
    """Return services with one public document per name, newest first, each with a single block."""
    services = fake_services()
    (vector,) = await services.embedder.embed(["The pump runs."], CallLimits(timeout_s=1))
    for age, name in enumerate(names):
        record = DocumentRecord(
            doc_id=name,
            filename=name,
            title="",
            upload_date=DAY - timedelta(days=age),
            status="ready",
            access_control_list=("*",),
        )
        block: dict[str, Any] = {
            "block_id": f"{name}-1",
            "doc_id": name,
            "filename": name,
            "block_type": "text",
            "content": "The pump runs.",
            "content_vector": list(vector),
            "access_control_list": ["*"],
        }
        await add_record(services, record)
        await services.content_index.upload([block])
    return services


def documents(services: Services) -> DocumentSearch:
    return DocumentSearch(SecuredIndex(services.documents_index, ANNA, services.documents))


async def blocks_for(
    services: Services, question_plan: QuestionPlan, request: RunRequest = REQUEST, top_k: int = 10
) -> Evidence:
    stored = await resolved(services, question_plan, request)
    whole = DocumentBlocks(SecuredIndex(services.content_index, ANNA, services.documents))
    search = QuestionSearch(request, block_search(services, ANNA), documents(services), whole)
    answering = fake_settings(answer_blocks=top_k).answering
    return await search.evidence(stored, answering)


async def resolved(
    services: Services, question_plan: QuestionPlan, request: RunRequest = REQUEST
) -> StoredPlan:
    return await resolve_documents(request, StoredPlan(plan=question_plan), documents(services))


def after(*turns: ConversationTurn, question: str = "q", **changes: Any) -> RunRequest:
    """Return a request that continues a conversation with these turns."""
    request_fields = {"conversation": Conversation(turns=turns), "question": question, **changes}
    return REQUEST.model_copy(update=request_fields)


async def test_a_listing_tells_how_many_documents_there_are() -> None:
    services = await services_with(*(f"file-{number}.txt" for number in range(60)))
    evidence = await gather_documents(
        REQUEST, StoredPlan(plan=plan(query_type="LISTING")), documents(services)
    )
    assert (len(evidence.records), evidence.total) == (50, 60)


@pytest.mark.parametrize(
    ("references", "narrowed"),
    [
        (("report-2022.pdf",), True),
        (("report 2022",), True),
        (("annual-report-2019.pdf",), False),
        (("", "  "), False),
    ],
)
async def test_only_a_document_that_is_really_named_narrows_the_search(
    references: tuple[str, ...], narrowed: bool
) -> None:
    services = await services_with("report-2022.pdf", "report-2023.pdf", "readme")
    evidence = await blocks_for(services, plan(document_references=references))
    assert evidence.narrowed is narrowed
    assert (len({hit.doc_id for hit in evidence.hits}) == 1) is narrowed


@pytest.mark.parametrize(("reference", "narrowed"), [("report-2022.pdf", True), ("report 2022", False)])
async def test_a_question_with_a_file_name_is_about_that_file_whatever_others_say(
    reference: str, narrowed: bool
) -> None:
    services = await services_with("report-2022.pdf", "letter.pdf")
    await add_blocks(services, "letter.pdf", "Seed crackers keep for a month.")
    question = "Seed crackers keep for a month?"
    question_plan = plan(standalone_question=question, search_queries=(), document_references=(reference,))
    evidence = await blocks_for(services, question_plan)
    assert evidence.narrowed is narrowed
    assert ({hit.doc_id for hit in evidence.hits} == {"report-2022.pdf"}) is narrowed


async def test_a_file_that_is_older_than_the_newest_hundred_is_found_by_its_name() -> None:
    services = await services_with(*(f"file-{number}.txt" for number in range(120)), "old.pdf")
    evidence = await blocks_for(services, plan(document_references=(" old.pdf ",)))
    assert {hit.doc_id for hit in evidence.hits} == {"old.pdf"}


async def test_a_name_that_fits_too_many_documents_narrows_nothing() -> None:
    services = await services_with(*(f"report-{letter}.pdf" for letter in "abcdefg"))
    evidence = await blocks_for(services, plan(document_references=("report",)))
    assert not evidence.narrowed
    assert len({hit.doc_id for hit in evidence.hits}) == 7


async def test_names_are_looked_up_in_the_index_not_among_the_newest() -> None:
    old = "Heron_400_handbook.pdf"
    services = await services_with(*(f"file-{number}.txt" for number in range(150)), old)
    evidence = await blocks_for(services, plan(document_references=("the Heron 400 handbook",)))
    assert {hit.doc_id for hit in evidence.hits} == {old}


async def test_each_side_of_a_comparison_is_heard() -> None:
    services = await services_with("report-2022.pdf", "report-2023.pdf", "memo.txt")
    references = ("report 2022", "report 2023")
    question_plan = plan(query_type="COMPARISON", document_references=references)
    evidence = await blocks_for(services, question_plan, top_k=1)
    assert {hit.doc_id for hit in evidence.hits} == {"report-2022.pdf", "report-2023.pdf"}


async def test_a_comparison_with_something_that_no_document_is_named_for_finds_both() -> None:
    services = await services_with("report-2022.pdf", "report-2023.pdf", "memo.txt")
    await add_blocks(services, "memo.txt", "The orchard has 4711 trees.")
    question = "The orchard has how many trees?"
    report_ids = {"report-2022.pdf"}
    question_plan = plan(
        query_type="COMPARISON",
        standalone_question=question,
        search_queries=(),
        document_references=("report 2022",),
    )
    evidence = await blocks_for(services, question_plan)
    assert {hit.doc_id for hit in evidence.hits} >= {*report_ids, "memo.txt"}
    assert not evidence.narrowed  # otherwise, searches for gaps would leave out the orchard
    assert set(evidence.whole) == report_ids


async def test_what_may_mean_several_documents_gives_options_to_choose_among() -> None:
    services = await services_with("report-2022.pdf", "report-2023.pdf", "memo.txt")
    stored = await resolved(
        services, plan(standalone_question="What does the report say?", document_references=("report",))
    )
    assert [option.filename for option in stored.options] == ["report-2022.pdf", "report-2023.pdf"]
    assert stored.doc_ids == ()


async def test_a_caller_who_chose_the_documents_is_not_asked() -> None:
    services = await services_with("report-2022.pdf", "report-2023.pdf")
    chosen = REQUEST.model_copy(update={"doc_ids": ("report-2022.pdf", "report-2023.pdf")})
    question_plan = plan(standalone_question="What does the report say?", document_references=("report",))
    stored = await resolved(services, question_plan, chosen)
    assert (stored.options, stored.doc_ids) == ((), ("report-2022.pdf", "report-2023.pdf"))


CITED = ConversationTurn(
    question="What does the 2022 report say?",
    answer="48.",
    doc_ids=("report-2022.pdf",),
    filenames=("report-2022.pdf",),
)


async def test_that_document_is_the_one_that_the_answer_before_cited() -> None:
    services = await services_with("report-2022.pdf", "report-2023.pdf")
    request = after(CITED, question="What else does that report say?")
    assert (await resolved(services, plan(), request)).doc_ids == ("report-2022.pdf",)
    assert (await resolved(services, plan(), after(CITED, question="What is a pump?"))).doc_ids == ()


async def test_a_document_of_the_turn_before_is_meant_again_rather_than_asked_about() -> None:
    services = await services_with("report-2022.pdf", "report-2023.pdf")
    question_plan = plan(standalone_question="Who wrote the report?", document_references=("report",))
    stored = await resolved(services, question_plan, after(CITED, question="Who wrote it?"))
    assert (stored.options, stored.doc_ids) == ((), ("report-2022.pdf",))


@pytest.mark.parametrize("limit", [{"doc_ids": ("report-2023.pdf",)}, {"project_id": "p"}])
async def test_the_callers_limits_hold_for_documents_of_the_turn_before(limit: dict[str, Any]) -> None:
    services = await services_with("report-2022.pdf", "report-2023.pdf")
    request = after(CITED, question="What else does that report say?", **limit)
    assert (await resolved(services, plan(), request)).doc_ids == ()


@pytest.mark.parametrize(
    ("reference", "is_certain"),
    [("report 2019", True), ("report-2031.pdf", True), ("travel policy", False)],
)
async def test_a_name_that_no_document_has_is_missing(reference: str, is_certain: bool) -> None:
    services = await services_with("report-2022.pdf", "report-2023.pdf")
    stored = await resolved(services, plan(document_references=(reference,), query_type="DOCUMENT_SUMMARY"))
    (missing,) = stored.missing
    assert (missing.reference, missing.is_certain, stored.doc_ids) == (reference, is_certain, ())
    assert set(missing.nearest) == ({"report-2022.pdf", "report-2023.pdf"} if is_certain else set())
    assert stored.names_only_missing is is_certain


async def test_who_chose_the_documents_means_these() -> None:
    services = await services_with("report-2022.pdf")
    request = REQUEST.model_copy(update={"doc_ids": ("report-2022.pdf",)})
    stored = await resolved(services, plan(document_references=("report 2019",)), request)
    assert stored.missing == ()


async def add_blocks(services: Services, doc_id: str, *texts: str, heading_path: str = "") -> None:
    """Add blocks to a document. Their search rank is unrelated to their order in the document."""
    vectors = await services.embedder.embed(texts, CallLimits(timeout_s=1))
    rows: list[dict[str, Any]] = [
        {
            "block_id": f"{doc_id}-{number}",
            "doc_id": doc_id,
            "filename": doc_id,
            "block_type": "text",
            "ordinal": number,
            "heading_path": heading_path,
            "content": text,
            "content_vector": list(vector),
            "access_control_list": ["*"],
        }
        for number, (text, vector) in enumerate(zip(texts, vectors, strict=True), start=2)
    ]
    await services.content_index.upload(rows)


LONG = ("A sentence about oil. " * 40, "Another about water. " * 40, "The last about air. " * 40)


@pytest.mark.parametrize(
    ("query_type", "intent", "is_whole"),
    [
        ("DOCUMENT_SUMMARY", "doc_summary", True),
        ("COMPARISON", "compare_docs", True),
        ("CONTENT_SEARCH", "procedural", True),
        ("CONTENT_SEARCH", "fact_lookup", False),
    ],
)
async def test_short_documents_that_a_question_is_about_are_found_whole(
    query_type: str, intent: str, is_whole: bool
) -> None:
    services = await services_with("report-2022.pdf", "report-2023.pdf")
    for name in ("report-2022.pdf", "report-2023.pdf"):
        await add_blocks(services, name, *LONG * 3)
    question_plan = plan(
        query_type=query_type, intent=intent, document_references=("report 2022", "report 2023")
    )
    evidence = await blocks_for(services, question_plan, top_k=1)
    assert set(evidence.whole) == ({"report-2022.pdf", "report-2023.pdf"} if is_whole else set())
    report_hits = [hit for hit in evidence.hits if hit.doc_id == "report-2023.pdf"]
    assert (len(report_hits) == 10) is is_whole
    assert len({hit.block_id for hit in evidence.hits}) == len(evidence.hits)


async def test_documents_that_are_too_long_together_are_not_found_whole() -> None:
    services = await services_with("report-2022.pdf", "report-2023.pdf")
    for name in ("report-2022.pdf", "report-2023.pdf"):
        await add_blocks(services, name, *LONG * 8)
    question_plan = plan(
        query_type="COMPARISON", intent="compare_docs", document_references=("report 2022", "report 2023")
    )
    assert (await blocks_for(services, question_plan)).whole == ()
    one = plan(query_type="DOCUMENT_SUMMARY", intent="doc_summary", document_references=("report 2022",))
    assert (await blocks_for(services, one)).whole == ("report-2022.pdf",)


async def test_documents_that_the_caller_chose_are_found_whole() -> None:
    services = await services_with("report-2022.pdf", "report-2023.pdf")
    await add_blocks(services, "report-2022.pdf", *LONG)
    chosen = REQUEST.model_copy(update={"doc_ids": ("report-2022.pdf",)})
    evidence = await blocks_for(
        services, plan(query_type="DOCUMENT_SUMMARY", intent="doc_summary"), chosen, 1
    )
    assert (evidence.whole, len(evidence.hits)) == (("report-2022.pdf",), 4)


async def test_a_document_that_the_search_found_to_its_last_block_is_whole_too() -> None:
    services = await services_with("report-2022.pdf", "report-2023.pdf")
    question_plan = plan(document_references=("report 2022",))
    evidence = await blocks_for(services, question_plan)
    assert (evidence.whole, len(evidence.hits)) == (("report-2022.pdf",), 1)


async def test_a_document_that_the_question_does_not_name_is_whole_if_all_its_blocks_were_found() -> None:
    services = await services_with("note.pdf", "report.pdf")
    await add_blocks(services, "report.pdf", "It has 15 bar.", "It is blue.")
    evidence = await blocks_for(services, plan(), top_k=2)
    assert {hit.doc_id for hit in evidence.hits} == {"note.pdf", "report.pdf"}
    assert evidence.whole == ("note.pdf",)
    every = await blocks_for(services, plan(), top_k=4)
    assert set(every.whole) == {"note.pdf", "report.pdf"}
    assert documents_xml(every).count('whole="yes"') == 2


async def test_a_long_document_does_not_hide_that_others_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.retrieval.block_reading._OUTLINE_ROWS", 6)
    services = await services_with("note.pdf", "report.pdf")
    await add_blocks(services, "report.pdf", *(f"Line {number}." for number in range(20)))
    evidence = await blocks_for(services, plan(), top_k=2)
    assert {hit.doc_id for hit in evidence.hits} == {"note.pdf", "report.pdf"}
    assert evidence.whole == ("note.pdf",)


@pytest.mark.parametrize(
    ("titles", "is_whole"),
    [
        (("Travel policy 2023", "Travel Policy (2025)"), True),
        (("Travel policy", "Gifts"), False),
        (("", ""), False),
    ],
)
async def test_short_versions_of_one_document_are_found_whole(
    titles: tuple[str, str], is_whole: bool
) -> None:
    services = await services_with("a.pdf", "b.pdf")
    for name, title in zip(("a.pdf", "b.pdf"), titles, strict=True):
        await services.documents_index.merge([{"doc_id": name, "title": title}])
        await add_blocks(services, name, "This version replaces the one before.")
    evidence = await blocks_for(services, plan(), top_k=2)
    assert (set(evidence.whole), len(evidence.hits)) == (({"a.pdf", "b.pdf"}, 4) if is_whole else (set(), 2))


async def test_a_block_of_headings_alone_takes_no_place() -> None:
    services = await services_with("report-2022.pdf")
    await add_blocks(
        services,
        "report-2022.pdf",
        "2 The pump\n\nPressure",
        "It has 15 bar.",
        heading_path="2 The pump > Pressure",
    )
    evidence = await blocks_for(services, plan())
    assert {hit.content for hit in evidence.hits} == {"The pump runs.", "It has 15 bar."}


async def test_pictures_of_the_found_pages_come_with_them_the_likest_first() -> None:
    services = await services_with("manual", "leaflet")
    captions = {
        "near": ("manual", "Figure 1: The pump runs"),
        "nearer": ("manual", "The pump runs."),
        "unlike": ("manual", "Two people shake hands"),
        "elsewhere": ("leaflet", "The pump runs."),
    }
    vectors = await services.embedder.embed([text for _, text in captions.values()], CallLimits(timeout_s=1))
    for (name, (doc_id, caption)), vector in zip(captions.items(), vectors, strict=True):
        row: dict[str, Any] = {
            "block_id": name,
            "doc_id": doc_id,
            "filename": doc_id,
            "block_type": "image",
            "image_caption": caption,
            "image_caption_vector": list(vector),
            "access_control_list": ["*"],
        }
        await services.content_index.upload([row])
    question_plan = plan(
        standalone_question="The pump runs.", search_queries=(), document_references=("manual",)
    )
    evidence = await blocks_for(services, question_plan, top_k=1)
    ranked = [
        hit for hit in evidence.hits if hit.score > 0
    ]  # the rest of the document follows because it fits
    figure_ids = [hit.block_id for hit in (*ranked, *evidence.figures) if hit.block_type == "image"]
    assert figure_ids == ["nearer", "near"]
