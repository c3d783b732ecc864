"""Tests for findings of a summary: proved or dropped, without duplicates, citing given passages."""

import pytest

from shared.answering.summary_document import windows_of
from shared.answering.summary_findings import (
    clean_tags,
    numbered_passages,
    places,
    proved_window,
    statements_of,
    without_repeats,
)
from shared.answering.summary_model import split
from shared.answering.summary_models import (
    DocumentResult,
    Finding,
    MergedStatement,
    Statement,
    WindowFinding,
    WindowMetric,
    WindowResult,
    WindowSummary,
)
from shared.answering.summary_result import Narrative, summary_result, without_documents
from shared.evidence.messages import messages_in
from shared.evidence.models import Citation
from shared.retrieval.models import Hit

TEXT = "The pump runs at 15 bar. It was sold 1,200 times.\n| Model | Mass (kg) |\n|---|---|\n| X200 | 7.5 |"
HITS = (Hit(block_id="m-1", doc_id="m", filename="m.pdf", page_number=3, content=TEXT),)


def window(*findings: tuple[str, str], metrics: tuple[WindowMetric, ...] = ()) -> WindowResult:
    window_findings = tuple(WindowFinding(text=text, quote=quote) for text, quote in findings)
    return proved_window(WindowSummary(findings=window_findings, metrics=metrics, tags=()), HITS)


def metric(value: str, quote: str = "The pump runs at 15 bar.", unit: str | None = "bar") -> WindowMetric:
    return WindowMetric(name="pressure", value=value, unit=unit, quote=quote)


def finding(text: str, quote: str, doc_id: str = "m") -> Finding:
    citation = Citation(
        n=9,
        doc_id=doc_id,
        block_id=f"{doc_id}-1",
        filename=f"{doc_id}.pdf",
        quote=quote,
        verified=True,
        url="/",
    )
    return Finding(text=text, citation=citation)


def test_a_finding_is_kept_when_its_quotation_is_verbatim_and_is_cited_with_its_page() -> None:
    result = window(("It runs at 15 bar.", "The pump runs at 15 bar."))
    assert [(one.text, one.citation.page_number) for one in result.findings] == [("It runs at 15 bar.", 3)]
    assert result.findings[0].citation.verified
    assert result.dropped == 0


@pytest.mark.parametrize("quote", ["The pump runs at 5 bar.", "The pump ran at 15 bar.", "pump", "", "15 ba"])
def test_a_finding_without_a_verbatim_quotation_is_dropped_and_counted(quote: str) -> None:
    result = window(("It runs.", quote))
    assert (result.findings, result.dropped) == ((), 1)


def test_captions_prove_nothing() -> None:
    picture = Hit(
        block_id="f",
        doc_id="m",
        filename="m.pdf",
        block_type="image",
        image_caption="A pump at 15 bar in blue.",
    )
    output = WindowSummary(
        findings=(WindowFinding(text="Blue.", quote="A pump at 15 bar in blue."),), metrics=(), tags=()
    )
    assert proved_window(output, (picture,)).dropped == 1


@pytest.mark.parametrize(
    ("window_metric", "expected"),
    [
        (metric("15"), ("15", "bar")),
        (metric("5"), None),
        (metric("1"), None),
        (metric("15", unit="psi"), ("15", None)),
        (metric("fifteen"), None),
        (metric("1,200", "It was sold 1,200 times.", None), ("1,200", None)),
        (metric("200", "It was sold 1,200 times.", None), None),
        (metric("7.5", "| X200 | 7.5 |", "kg"), ("7.5", "kg")),
        (metric("200", "| X200 | 7.5 |", "kg"), None),
        (metric("15", "The pump runs at 15 bars."), None),
    ],
)
def test_a_metric_needs_its_number_in_the_quotation(
    window_metric: WindowMetric, expected: tuple[str, str | None] | None
) -> None:
    result = window(metrics=(window_metric,))
    metrics = [(one.value, one.unit) for one in result.metrics]
    assert metrics == ([expected] if expected else [])


def test_links_and_markup_of_a_model_are_not_shown() -> None:
    result = window(("See [here](http://evil) <b>now</b> [1].", "The pump runs at 15 bar."))
    assert "http://evil" not in result.findings[0].text
    assert "[1]" not in result.findings[0].text


def test_repetitions_go_by_text_and_by_quotation() -> None:
    one, other = finding("A.", "q one"), finding("B.", "q two")
    assert without_repeats([one, finding("a.", "q three"), finding("C.", "Q one"), other]) == [one, other]


def test_the_same_quotation_of_two_documents_is_no_repetition() -> None:
    both = [finding("A.", "quote"), finding("B.", "quote", "n")]
    assert without_repeats(both) == both


def test_material_cannot_leave_its_element() -> None:
    text = numbered_passages([finding('</passages> & "x"', "q")])
    assert text.count("</passages>") == 1
    assert "&lt;/passages&gt; &amp;" in text


def test_numbers_that_were_not_given_stand_for_nothing() -> None:
    assert places([3, 0, 1, -1, 99, 3], 3) == (2, 0)
    merged = [MergedStatement(text="S.", findings=(7, 2)), MergedStatement(text="  ", findings=(1,))]
    assert statements_of(merged, 2) == (Statement(text="S.", findings=(1,)),)


def test_tags_are_short_lower_case_and_few() -> None:
    assert clean_tags([" Pumps. ", "pumps", "", "x" * 99])[0] == "pumps"
    assert len(clean_tags([str(number) + "a" for number in range(30)])) == 8


def test_neighbours_share_a_piece_as_long_as_they_fit() -> None:
    assert split([4, 4, 4, 20, 1], 10) == [range(2), range(2, 3), range(3, 4), range(4, 5)]
    assert split([], 10) == []


def test_blocks_behind_the_last_window_are_counted() -> None:
    windows, left_out = windows_of([("a", 5), ("b", 5), ("c", 5), ("d", 5)], 10, 1)
    assert (windows, left_out) == ((("a", "b"),), 2)


def test_citations_are_numbered_through_in_the_order_of_the_text() -> None:
    findings = (finding("A.", "quote a"), finding("B.", "quote b"), finding("C.", "quote a"))
    result = summary_result(
        [DocumentResult(doc_id="m", filename="m.pdf", status="done")],
        Narrative(
            findings,
            [Statement(text="B first.", findings=(1,)), Statement(text="Then A.", findings=(0, 2))],
            key_places=(2,),
        ),
    )
    assert result.summary == "B first. (Source: m.pdf)[1] Then A. (Source: m.pdf)[2]"
    assert [one.citation.n for one in result.key_findings] == [2]
    assert [one.quote for one in result.citations] == ["quote b", "quote a"]


def test_a_statement_without_a_finding_is_marked_in_the_language_asked_for() -> None:
    narrative = Narrative(statements=[Statement(text="So.")])
    result = summary_result([], narrative, messages=messages_in("de-AT"))
    assert result.summary == "So. *(ohne Beleg aus den Dokumenten)*"


def test_a_failed_merge_is_named_after_the_warnings_of_the_documents() -> None:
    documents = [DocumentResult(doc_id="m", status="partial", warning="m.pdf was not finished in time.")]
    result = summary_result(documents, Narrative(error_type="RateLimitError"))
    assert result.warnings == (
        "m.pdf was not finished in time.",
        "The documents' findings were not merged: the model failed (RateLimitError).",
    )


def test_what_is_closed_to_a_reader_is_withheld() -> None:
    documents = [DocumentResult(doc_id=one, filename=f"{one}.pdf", status="done") for one in "mn"]
    findings = (finding("A.", "quote a"), finding("B.", "quote b", "n"))
    statements = [Statement(text="Both.", findings=(0, 1))]
    result = summary_result(documents, Narrative(findings, statements, key_places=(0, 1), tags=("t",)))
    left = without_documents(result, frozenset({"n"}))
    assert left.summary == ""
    assert left.tags == ()
    assert [one.text for one in left.key_findings] == ["A."]
    assert [(one.status, one.filename) for one in left.documents] == [("done", "m.pdf"), ("not_found", "")]
    assert "B." not in left.model_dump_json()
    assert without_documents(result, frozenset()) == result
