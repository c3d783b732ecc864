"""Tests for the citations of an answer and for conflicting documents."""

from datetime import UTC, datetime

from markdown_it import MarkdownIt

from shared.evidence.citations import CitationBook, marker
from shared.evidence.document_prompt import documents_with_blocks
from shared.evidence.models import Citation, WebPage
from shared.retrieval.models import DocumentRecord, Hit


def hit(block_id: str, doc_id: str, content: str, **more: object) -> Hit:
    return Hit.model_validate(
        {"block_id": block_id, "doc_id": doc_id, "filename": f"{doc_id}.pdf", "content": content, **more}
    )


HITS = (
    hit("b1", "manual", "The pump runs at 15 bar.", page_number=3),
    hit("b2", "manual", "It weighs 40 kg.", page_number=4),
    hit("b3", "report", "Sales rose by 7 percent.", page_number=1),
)


def test_a_citation_names_the_block_where_the_quotation_stands() -> None:
    proof = CitationBook(HITS).prove("manual", "It weighs 40 kg")
    assert proof is not None
    citation, is_new = proof
    assert is_new
    assert (citation.n, citation.block_id, citation.page_number) == (1, "b2", 4)
    assert citation.verified
    assert citation.url == "/api/documents/manual/pages/4"


def test_its_address_leads_to_the_page_by_run_and_number_and_holds_no_word_of_the_document() -> None:
    book = CitationBook((*HITS, hit("b4", "notes", "Doors stay shut.")), run_id="r1")
    book.prove("manual", "It weighs 40 kg")
    book.prove("notes", "Doors stay shut")
    paged, unpaged = (citation.url for citation in book.citations)
    assert paged == "/api/documents/manual/pages/4?run=r1&n=1#cited"
    assert unpaged == "/api/documents/notes/readable?run=r1&n=2#cited"


def test_the_same_quotation_keeps_its_number() -> None:
    book = CitationBook(HITS)
    book.prove("manual", "It weighs 40 kg")
    book.prove("report", "rose by 7 percent")
    again = book.prove("manual", "It  weighs 40 kg")
    assert again is not None
    assert (again[0].n, again[1], len(book.citations)) == (1, False, 2)


def test_a_quotation_from_another_document_is_cited_from_where_it_stands() -> None:
    proof = CitationBook(HITS).prove("manual", "Sales rose by 7 percent")
    assert proof is not None
    assert proof[0].doc_id == "report"


def test_what_stands_nowhere_is_not_cited() -> None:
    book = CitationBook(HITS)
    assert book.prove("manual", "The pump runs at 5 bar.") is None
    assert book.citations == []


def test_a_caption_points_to_its_picture_and_proves_nothing() -> None:
    image = hit(
        "i1", "manual", "", block_type="image", image_caption="Cross-section of valve V2", page_number=2
    )
    proof = CitationBook((image,)).prove("manual", "cross-section of valve V2")
    assert proof is not None
    assert not proof[0].verified
    assert marker(proof[0]) == " (Source: manual.pdf, S. 2, figure)[1]"


def test_text_is_cited_before_a_caption_that_repeats_it() -> None:
    image = hit("i1", "manual", "", block_type="image", image_caption="The pump runs at 15 bar.")
    proof = CitationBook((image, *HITS)).prove("manual", "The pump runs at 15 bar.")
    assert proof is not None
    assert (proof[0].block_id, proof[0].verified) == ("b1", True)


def test_the_marker_names_file_and_page_and_breaks_no_table() -> None:
    book = CitationBook((hit("b", "a|b[1]", "It weighs 40 kg.", page_number=2),))
    proof = book.prove("a|b[1]", "It weighs 40 kg")
    assert proof is not None
    assert marker(proof[0]) == " (Source: a\\|b(1).pdf, S. 2)[1]"


def test_a_hostile_file_name_is_nothing_but_a_name() -> None:
    name = "a\n\n# b <img onerror=x> `c` *d* _e_ f_g &lt; ![h](i)"
    book = CitationBook((hit("b", name, "It weighs 40 kg."),))
    proof = book.prove(name, "It weighs 40 kg")
    assert proof is not None
    marker_text = marker(proof[0])
    assert "\n" not in marker_text
    tokens = MarkdownIt("commonmark", {"html": True}).parse(marker_text)
    kinds = {child.type for token in tokens for child in token.children or []}
    assert kinds <= {"text", "text_special"}
    assert "f_g" in marker_text


def test_without_pages_the_marker_names_the_file() -> None:
    proof = CitationBook((hit("b", "notes", "It weighs 40 kg."),)).prove("notes", "It weighs 40 kg")
    assert proof is not None
    assert marker(proof[0]) == " (Source: notes.pdf)[1]"


def citation(n: int, doc_id: str, quote: str, *, verified: bool = True) -> Citation:
    return Citation(
        n=n,
        doc_id=doc_id,
        block_id=f"{doc_id}-1",
        filename=f"{doc_id}.pdf",
        page_number=1,
        quote=quote,
        verified=verified,
        url="u",
    )


def test_a_citation_says_who_published_its_document() -> None:
    record = DocumentRecord(
        doc_id="notes", filename="notes", upload_date=datetime.now(UTC), published_by="Anna <b>"
    )
    book = CitationBook((hit("b", "notes", "It weighs 40 kg."),), records={"notes": record})
    for proof in (
        book.prove("notes", "It weighs 40 kg"),
        book.hold("notes", "x"),
        book.prove("notes", "published by Anna <b>"),
    ):
        assert proof is not None
        assert proof[0].published_by == "Anna <b>"
    xml = documents_with_blocks(book.hits, book.records)
    assert 'published_by="Anna &lt;b&gt;"' in xml


def test_a_citation_of_the_web_shows_the_words_around_it() -> None:
    text = f"{'before ' * 90}Pumps run at 16 bar. They hum. They weigh 40 kg.{' after' * 90}"
    page = WebPage(
        final_url="https://a.example/x",
        title="",
        text=text,
        fetched_at=datetime.now(UTC),
        sha256="",
        content_type="text/html",
    )
    proof = CitationBook((), pages=(page,)).prove(page.doc_id, "Pumps run at 16 bar. … They weigh 40 kg.")
    assert proof is not None
    context = proof[0].context or ""
    assert context.startswith("… before before ")
    assert context.endswith(" after after …")
    assert context.strip(" …") in text
    assert " before Pumps run at 16 bar. They hum. They weigh 40 kg. after " in context
