"""Tests for all kinds of citations: their number, proof, marker and target URL."""

from datetime import UTC, datetime

import pytest

from shared.evidence.citations import CitationBook, marker
from shared.evidence.models import Citation, LeftOutCells, QueriedTable, TableResult, WebPage
from shared.retrieval.models import DocumentRecord, Hit


def hit(block_id: str, doc_id: str, content: str, **more: object) -> Hit:
    return Hit.model_validate(
        {"block_id": block_id, "doc_id": doc_id, "filename": f"{doc_id}.pdf", "content": content, **more}
    )


def record(doc_id: str, **more: object) -> DocumentRecord:
    return DocumentRecord.model_validate(
        {"doc_id": doc_id, "filename": f"{doc_id}.pdf", "upload_date": datetime.now(UTC), **more}
    )


def web_page(text: str) -> WebPage:
    return WebPage(
        final_url="https://www.example.org/x",
        title="",
        text=text,
        fetched_at=datetime.now(UTC),
        sha256="",
        content_type="text/html",
    )


def result(*rows: tuple[str | int | float | None, ...], **more: object) -> TableResult:
    table = QueriedTable(
        table_id="t1", doc_id="sales", filename="sales.xlsx", page_number=2, content_hash="h"
    )
    return TableResult.model_validate(
        {
            "sql": "SELECT 1",
            "sql_in_words": "All regions.",
            "columns": ("region", "total"),
            "rows": rows,
            "row_count": len(rows),
            "tables": (table,),
            **more,
        }
    )


PUMP = hit("b1", "manual", "The pump runs at 15 bar.", page_number=3)


def cited(book: CitationBook, doc_id: str, quote: str) -> Citation:
    proof = book.prove(doc_id, quote)
    assert proof is not None
    assert proof[1]
    return proof[0]


def test_the_cited_document_is_searched_before_others_with_the_same_words() -> None:
    hits = (hit("a", "first", "It weighs 40 kg."), hit("b", "second", "It weighs 40 kg."))
    assert cited(CitationBook(hits), "second", "It weighs 40 kg.").doc_id == "second"


@pytest.mark.parametrize("quote", ["", " "])
def test_no_words_prove_nothing(quote: str) -> None:
    page = web_page("Pumps hum.")
    book = CitationBook((PUMP,), pages=(page,), records={"manual": record("manual")})
    assert book.prove("manual", quote) is None
    assert book.prove(page.doc_id, quote) is None


def test_words_that_no_block_and_no_record_hold_are_not_cited() -> None:
    assert CitationBook((PUMP,), records={"manual": record("manual")}).prove("manual", "It is red.") is None


def test_citations_of_every_kind_are_numbered_in_order() -> None:
    page = web_page("Pumps hum.")
    book = CitationBook((PUMP,), pages=(page,), records={"manual": record("manual", author="Jane Doe")})
    proofs = [
        book.prove("manual", "The pump runs at 15 bar."),
        book.prove(page.doc_id, "Pumps hum."),
        book.prove("manual", "Jane Doe"),
        book.hold("manual", "It is red."),
        book.compute(result(("North", 1))),
    ]
    citations = [proof[0] for proof in proofs if proof is not None and proof[1]]
    assert [citation.n for citation in citations] == [1, 2, 3, 4, 5]
    assert [citation.verified for citation in citations] == [True, True, False, False, False]
    assert [book.marker(citation) for citation in citations] == [
        " (Source: manual.pdf, S. 3)[1]",
        " (Source: example.org, web)[2]",
        " (Source: manual.pdf, metadata)[3]",
        " (Source: manual.pdf)[4]",
        " (Source: sales.xlsx, S. 2, computed)[5]",
    ]


def test_a_query_over_several_sheets_names_them_all() -> None:
    tables = [
        QueriedTable(table_id=f"t{n}", doc_id="d", filename=name, page_number=page, content_hash="h")
        for n, (name, page) in enumerate([("a.xlsx", 1), ("a.xlsx", 2), ("a.xlsx", 1), ("b.csv", None)])
    ]
    book = CitationBook(())
    citation, _ = book.compute(result(("North", 1), tables=tuple(tables)))
    assert citation.places == (("a.xlsx", 1), ("a.xlsx", 2), ("b.csv", None))
    assert book.marker(citation) == " (Source: a.xlsx, S. 1; a.xlsx, S. 2; b.csv, computed)[1]"
    many = [table.model_copy(update={"page_number": page}) for page, table in enumerate(tables, start=4)]
    citation, _ = book.compute(result(("North", 1), sql="SELECT 2", tables=tuple(many)))
    assert book.marker(citation) == " (Source: a.xlsx, S. 4; a.xlsx, S. 5; a.xlsx, S. 6; 1 more, computed)[2]"


def test_a_quotation_that_was_not_found_holds_one_number_until_it_is_repaired() -> None:
    book = CitationBook((PUMP, hit("b2", "other", "It is red.")))
    reservation = book.hold("manual", "It runs at 15.")
    assert reservation is not None
    assert reservation[1]
    assert book.hold("manual", "It runs at 15.") == (reservation[0], False)
    assert book.hold("unknown", "x") is None
    assert book.repair(1, "It is red.") == reservation[0], "words of another document"
    repaired = book.repair(1, "The pump runs at 15 bar.")
    assert (repaired.n, repaired.verified, repaired.block_id) == (1, True, "b1")
    assert book.citations == [repaired]


def test_a_caption_repairs_nothing() -> None:
    image = hit("i", "manual", "", block_type="image", image_caption="The pump is red.")
    book = CitationBook((PUMP, image))
    assert book.hold("manual", "x") is not None
    assert not book.repair(1, "The pump is red.").quote


def test_a_quotation_found_in_the_second_number_is_repaired_there() -> None:
    book = CitationBook((PUMP,))
    assert book.hold("manual", "a") is not None
    second = book.hold("manual", "b")
    assert second is not None
    assert book.repair(2, "It is red.") == second[0]
    assert book.repair(2, "The pump runs at 15 bar.").n == 2
    assert [citation.verified for citation in book.citations] == [False, True]


def test_names_of_several_documents_come_with_their_publisher() -> None:
    hits = (hit("a", "one", "It is red.", filename="x.pdf"), hit("b", "two", "It is blue.", filename="X.pdf"))
    records = {doc_id: record(doc_id, published_by=f"Mara {doc_id}") for doc_id in ("one", "two", "manual")}
    book = CitationBook((PUMP, *hits), records=records)
    pump = cited(book, "manual", "The pump runs at 15 bar.")
    assert book.marker(pump) == marker(pump) == " (Source: manual.pdf, S. 3)[1]"
    same_name = CitationBook((hits[0], hits[1].model_copy(update={"filename": "x.pdf"})), records=records)
    assert same_name.marker(cited(same_name, "one", "It is red.")) == " (Source: x.pdf (Mara one))[1]"
    listed = CitationBook((hits[0],), records=records, shared_names=("x.pdf",))
    assert listed.marker(cited(listed, "one", "It is red.")) == " (Source: x.pdf (Mara one))[1]"


def test_a_result_is_cited_once_with_its_first_rows() -> None:
    book = CitationBook((), run_id="r")
    rows = [("a|b", 12345.5), *((f"r{n}", n) for n in range(25))]
    labels = ("Region", "Total")
    citation, is_new = book.compute(result(*rows, labels=labels, sql_in_german="Alle Regionen."), "de-AT")
    assert (is_new, citation.sql_in_words, citation.row_count) == (True, "Alle Regionen.", 26)
    lines = citation.quote.splitlines()
    assert lines[:3] == ["| Region | Total |", "| a\\|b | 12.345,5 |", "| r0 | 0,0 |"]
    assert citation.columns == labels
    assert len(lines) == 21
    assert citation.url == "/api/documents/sales/pages/2?run=r&n=1#cited"
    assert book.compute(result(*rows)) == (citation, False)
    again, is_new = book.compute(result(*rows, sql="SELECT 2", sql_in_german="Alle."), "en")
    assert (again.n, is_new, again.sql_in_words) == (2, True, "All regions.")


@pytest.mark.parametrize(
    ("doc_id", "page_number", "url"),
    [("sales", None, "/api/documents/sales/readable"), ("db-orders", None, "")],
)
def test_a_result_leads_to_its_table_unless_that_is_in_a_database(
    doc_id: str, page_number: int | None, url: str
) -> None:
    table = QueriedTable(table_id="t", doc_id=doc_id, filename="x", page_number=page_number, content_hash="h")
    assert CitationBook(()).compute(result(("a", 1), tables=(table,)))[0].url == url


TALK = hit("t", "talk", "Welcome to all. We start the pump.", start_seconds=0.4, cues="0:0.4 3:83.5")


@pytest.mark.parametrize(
    ("quote", "seconds", "t"), [("Welcome to all.", 0.4, 0), ("We start the pump.", 83.5, 83)]
)
def test_a_moment_of_a_recording_is_that_of_its_words(quote: str, seconds: float, t: int) -> None:
    citation = cited(CitationBook((TALK,), run_id="r"), "talk", quote)
    assert citation.start_seconds == seconds
    assert citation.url == f"/api/documents/talk/readable?run=r&n=1&t={t}#cited"
    assert cited(CitationBook((TALK,)), "talk", quote).url == f"/api/documents/talk/readable?t={t}#t-0"


def test_a_block_without_a_start_is_cited_by_its_document() -> None:
    unstarted = TALK.model_copy(update={"start_seconds": None})
    citation = cited(CitationBook((unstarted,)), "talk", "We start the pump.")
    assert citation.url == "/api/documents/talk/readable"


def test_without_cues_a_recording_is_cited_at_the_start_of_its_block() -> None:
    plain = TALK.model_copy(update={"cues": None, "start_seconds": 61.0})
    citation = cited(CitationBook((plain,)), "talk", "We start the pump.")
    assert (citation.start_seconds, citation.url) == (61.0, "/api/documents/talk/readable?t=61#t-61")
    source = CitationBook((plain,), source_urls={"talk": "https://youtu.be/abc"})
    assert cited(source, "talk", "We start the pump.").url.startswith("https://youtu.be/abc")


@pytest.mark.parametrize(("chars", "is_cut"), [(400, False), (401, True)])
def test_the_words_around_a_quotation_of_the_web_are_cut_beyond_400_characters(
    chars: int, is_cut: bool
) -> None:
    before, after = "".join(f"{n:03} " for n in range(200))[-chars:], (" ab" * 200)[:chars]
    page = web_page(f"{before}Pumps hum.{after}")
    context = cited(CitationBook((), pages=(page,)), page.doc_id, "Pumps hum.").context or ""
    assert (context.startswith("…"), context.endswith("…")) == (is_cut, is_cut)
    assert (context == f"{before}Pumps hum.{after}") is not is_cut
    assert " 198 199 Pumps hum. ab ab" in context


def test_the_words_around_end_after_the_last_fragment_of_a_quotation() -> None:
    page = web_page(f"Two is big. One. Three. Two is big. {'Four. ' * 100}Two is big. {'Five. ' * 200}")
    citation = cited(CitationBook((), pages=(page,)), page.doc_id, "One. … Two is big.")
    assert citation.context is not None
    assert "Four" in citation.context
    assert "Five" not in citation.context


@pytest.mark.parametrize(
    ("filename", "address"),
    [
        ("manual.pdf", "https://contoso.sharepoint.com/sites/hr/manual.pdf#page=3"),
        ("manual.docx", "https://contoso.sharepoint.com/sites/hr/manual.pdf"),
    ],
)
def test_a_citation_links_to_the_place_that_its_document_was_taken_from(filename: str, address: str) -> None:
    pump = PUMP.model_copy(update={"filename": filename})
    book = CitationBook(
        (pump,), source_urls={"manual": "https://contoso.sharepoint.com/sites/hr/manual.pdf"}, run_id="r"
    )
    citation = cited(book, "manual", "The pump runs at 15 bar.")
    assert citation.source_url == address
    assert citation.url == "/api/documents/manual/pages/3?run=r&n=1#cited"


@pytest.mark.parametrize("address", ["javascript:alert(1)", "//contoso.sharepoint.com/x", None])
def test_an_unusual_address_is_not_linked(address: str | None) -> None:
    book = CitationBook((PUMP,), source_urls={"manual": address} if address else {})
    citation = cited(book, "manual", "The pump runs at 15 bar.")
    assert "source_url" not in citation.model_dump()


@pytest.mark.parametrize(
    ("language", "count", "words"),
    [
        ("en", 1, "All regions. 1 cell of “Total” in “Sales” has no value and is not counted: < 5; tbd."),
        ("fr", 2, "All regions. 2 cells of “Total” in “Sales” have no value and are not counted: < 5; tbd."),
        ("de", 1, "Alle. 1 Zelle von „Total“ in „Sales“ hat keinen Wert und zählt nicht mit: < 5; tbd."),
        ("de", 2, "Alle. 2 Zellen von „Total“ in „Sales“ haben keinen Wert und zählen nicht mit: < 5; tbd."),
    ],
)
def test_a_calculation_names_the_cells_that_it_leaves_out(language: str, count: int, words: str) -> None:
    cells = LeftOutCells(table="Sales", column="Total", count=count, remarks=("< 5", "tbd"))
    calculated = result(("North", 1), sql_in_german="Alle.", left_out=(cells,))
    citation, _ = CitationBook(()).compute(calculated, language)
    assert citation.sql_in_words == words
