"""Tests for converting reports to findings: complete statements, each quotation proved or dropped."""

import json
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from shared.answering.findings import (
    MAX_FINDINGS,
    MAX_TEXT_CHARS,
    Material,
    Proved,
    is_whole,
    proved_report,
    read_partial,
)
from shared.answering.profiles import PROFILES, ComparatorReport, DocReaderReport, EvidenceReport, WebReport
from shared.retrieval.models import Hit
from shared.tools.models import WebHit

OLD, NEW = "The maximum pressure is 230 bar.", "The maximum pressure is 250 bar."
PAGE = WebHit(url="https://a.example/p", title="Presses", text="A press of this kind takes 250 bar.")


def hit(doc_id: str, content: str, **changes: Any) -> Hit:
    return Hit(block_id=f"{doc_id}-0", doc_id=doc_id, filename=f"{doc_id}.pdf", content=content, **changes)


def material() -> Material:
    return Material([hit("old", OLD), hit("new", NEW)], [PAGE])


def proved(report: type[BaseModel], **parts: Any) -> Proved:
    return proved_report(report, parts, material())


def claim(text: str, *proofs: tuple[str, str], **more: Any) -> dict[str, Any]:
    return {"text": text, "proofs": [{"doc_id": one, "quote": quote} for one, quote in proofs], **more}


def side(doc_id: str, statement: str, quote: str = "") -> dict[str, str]:
    return {"doc_id": doc_id, "statement": statement, "quote": quote}


def test_a_claim_with_a_verbatim_quotation_is_proved_where_it_stands() -> None:
    (finding,) = proved(DocReaderReport, claims=[claim("It takes 250 bar.", ("new", NEW))]).findings
    assert (finding.kind, finding.text) == ("claim", "It takes 250 bar.")
    assert [(one.doc_id, one.block_id, one.quote) for one in finding.proofs] == [("new", "new-0", NEW)]


def test_a_quotation_from_another_document_than_named_is_of_the_one_where_it_stands() -> None:
    (finding,) = proved(DocReaderReport, claims=[claim("X", ("old", NEW))]).findings
    assert finding.proofs[0].doc_id == "new"


@pytest.mark.parametrize(
    "quote", ["The maximum pressure is 260 bar.", "The minimum pressure is 250 bar.", ""]
)
def test_a_quotation_that_stands_nowhere_takes_its_claim_with_it(quote: str) -> None:
    result = proved(DocReaderReport, claims=[claim("X", ("new", quote))])
    assert (result.findings, result.dropped) == ((), 1)


def test_a_claim_keeps_the_proofs_that_hold() -> None:
    result = proved(DocReaderReport, claims=[claim("X", ("new", NEW), ("old", "Made up entirely."))])
    assert [one.quote for one in result.findings[0].proofs] == [NEW]
    assert result.dropped == 1


def test_captions_prove_nothing() -> None:
    picture = hit("new", "", block_type="image", image_caption="A gauge that shows 250 bar.")
    parts = {"claims": [claim("X", ("new", "A gauge that shows 250 bar."))]}
    assert proved_report(DocReaderReport, parts, Material([picture])).findings == ()


def test_evidence_without_proof_is_kept_as_unsupported() -> None:
    claims = [claim("It takes 250 bar.", ("new", NEW), confidence=0.9), claim("It sings.", confidence=0.8)]
    backed, bare = proved(EvidenceReport, claims=claims).findings
    assert (backed.confidence, bool(backed.proofs)) == (0.9, True)
    assert (bare.confidence, bare.proofs) == (0.0, ())


@pytest.mark.parametrize(
    ("confidence", "expected"), [(7.0, 1.0), (-1.0, 0.0), (float("nan"), 0.0), (0.4, 0.4)]
)
def test_a_confidence_is_a_share(confidence: float, expected: float) -> None:
    result = proved(EvidenceReport, claims=[claim("X", ("new", NEW), confidence=confidence)])
    assert result.findings[0].confidence == expected


def test_a_similarity_needs_two_documents_else_it_is_a_claim() -> None:
    both = claim("Both name a maximum.", ("old", OLD), ("new", NEW))
    one = claim("One names it.", ("old", OLD), ("old", "Made up entirely."))
    kinds = [finding.kind for finding in proved(ComparatorReport, similarities=[both, one]).findings]
    assert kinds == ["similarity", "claim"]


def test_a_difference_tells_each_side_by_its_file() -> None:
    contrast = {"dimension": "pressure", "sides": [side("old", "230 bar", OLD), side("new", "250 bar", NEW)]}
    (finding,) = proved(ComparatorReport, differences=[contrast]).findings
    assert (finding.kind, finding.dimension) == ("difference", "pressure")
    assert finding.text == "old.pdf: 230 bar; new.pdf: 250 bar"
    assert {one.doc_id for one in finding.proofs} == {"old", "new"}


def test_a_side_that_says_nothing_is_a_side() -> None:
    contrast = {"dimension": "noise", "sides": [side("old", "230 bar", OLD), side("new", "not stated")]}
    assert proved(ComparatorReport, differences=[contrast]).findings[0].kind == "difference"


def test_a_bad_quotation_is_dropped_and_its_finding_kept() -> None:
    contrast = {
        "dimension": "p",
        "sides": [side("old", "230 bar", OLD), side("new", "9 bar", "It is 9 bar.")],
    }
    result = proved(ComparatorReport, differences=[contrast], conflicts=[contrast])
    assert result.dropped == 2
    assert {one.kind for one in result.findings} == {"difference"}
    (finding,) = result.findings
    assert finding.text == "old.pdf: 230 bar; new.pdf: 9 bar (not proved)"
    assert [proof.quote for proof in finding.proofs] == [OLD]


def test_a_contrast_without_any_proof_is_kept_as_not_proved() -> None:
    contrast = {"dimension": "p", "sides": [side("old", "9 bar", "It is 9 bar."), side("new", "not stated")]}
    (finding,) = proved(ComparatorReport, differences=[contrast]).findings
    assert (finding.text, finding.proofs) == ("old.pdf: 9 bar (not proved); new.pdf: not stated", ())


def test_a_conflict_needs_a_proof_on_two_sides() -> None:
    contrast = {"dimension": "p", "sides": [side("old", "230", OLD), side("new", "250", NEW)]}
    silent = {"dimension": "q", "sides": [side("old", "230", OLD), side("new", "says nothing")]}
    kinds = [finding.kind for finding in proved(ComparatorReport, conflicts=[contrast, silent]).findings]
    assert kinds == ["conflict", "difference"]


def test_a_page_of_the_web_proves_what_stands_on_it_and_on_no_other() -> None:
    quote = "A press of this kind takes 250 bar."
    sources = [
        {"url": PAGE.url, "title": "as given by the model", "quote": quote},
        {"url": "https://b.example", "title": "B", "quote": quote},
    ]
    result = proved(WebReport, claims=[{"text": "250 bar", "sources": sources}], trust_notes=["A vendor."])
    (finding,) = result.findings
    assert [(one.url, one.title) for one in finding.proofs] == [(PAGE.url, "Presses")]
    assert (finding.kind, result.dropped, result.uncertainty) == ("web", 1, ("A vendor.",))


def test_a_web_claim_is_not_proved_by_a_document_nor_a_claim_by_the_web() -> None:
    web = [{"text": "X", "sources": [{"url": "new", "title": "", "quote": NEW}]}]
    assert proved(WebReport, claims=web).findings == ()
    assert proved(DocReaderReport, claims=[claim("X", ("new", PAGE.text))]).findings == ()


def test_what_is_no_item_is_passed_over() -> None:
    strange: list[Any] = [
        None,
        7,
        "text",
        [],
        {"text": "no proofs"},
        claim("It takes 250 bar.", ("new", NEW)),
    ]
    result = proved(DocReaderReport, claims=strange, sections="none", uncertainty=[" Open.\n ", 3, "Open."])
    assert len(result.findings) == 1
    assert result.uncertainty == ("Open.",)


def test_a_statement_said_again_counts_once_and_long_ones_are_cut() -> None:
    again = [claim("It  takes\n250 bar.", ("new", NEW)), claim("it takes 250 BAR.", ("new", NEW))]
    assert len(proved(DocReaderReport, claims=again).findings) == 1
    long = proved(DocReaderReport, claims=[claim("word " * 1000, ("new", NEW))]).findings[0]
    assert len(long.text) <= MAX_TEXT_CHARS + 2
    endless = [claim(f"Claim {number}.", ("new", NEW)) for number in range(500)]
    assert len(proved(DocReaderReport, claims=endless).findings) == MAX_FINDINGS


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_every_part_of_every_report_can_be_read(profile: Any) -> None:
    """Check that every field of every report is read, so that a new field can't be overlooked."""
    values: dict[type, Any] = {str: "Open."}
    for name, field in profile.report.model_fields.items():
        kind = get_args(field.annotation)[0]
        item = values.get(kind) or _filled(kind)
        result = proved_report(profile.report, {name: [item]}, material())
        assert result.findings or result.uncertainty


def _filled(kind: type[BaseModel]) -> dict[str, Any]:
    values: dict[str, Any] = {
        "text": "X",
        "heading": "H",
        "summary": "S",
        "confidence": 0.9,
        "dimension": "D",
        "proofs": [{"doc_id": "new", "quote": NEW}],
        "sides": [side("old", "230", OLD), side("new", "250", NEW)],
        "sources": [{"url": PAGE.url, "title": "", "quote": PAGE.text}],
    }
    return {name: values[name] for name in kind.model_fields}


WHOLE = json.dumps(
    {
        "sections": [{"heading": "Safety", "summary": "Limits."}],
        "claims": [claim("It takes 230 bar.", ("old", OLD)), claim("It takes 250 bar.", ("new", NEW))],
        "uncertainty": ["Who checks it is open."],
    }
)


def test_a_report_cut_anywhere_gives_whole_statements_only_and_never_takes_one_back() -> None:
    before = 0
    for end in range(len(WHOLE) + 1):
        parts = read_partial(WHOLE[:end])
        findings = proved_report(DocReaderReport, parts or {}, material()).findings
        assert {finding.text for finding in findings} <= {"Limits.", "It takes 230 bar.", "It takes 250 bar."}
        assert len(findings) >= before
        before = len(findings)
    assert before == 3


def test_a_report_is_whole_when_its_last_part_is_there() -> None:
    assert is_whole(read_partial(WHOLE), DocReaderReport)
    assert not is_whole(read_partial(WHOLE[: WHOLE.index('"uncertainty"')]), DocReaderReport)
    assert not is_whole(None, DocReaderReport)


@pytest.mark.parametrize("text", ["", "I am sorry.", "[1, 2]", "null", '"{', "{'claims': []}", "{" * 9000])
def test_what_is_no_report_is_none(text: str) -> None:
    parts = read_partial(text)
    assert not parts
    assert proved_report(DocReaderReport, parts or {}, material()).findings == ()


def test_a_fence_around_the_report_is_passed_over() -> None:
    assert is_whole(read_partial(f"Here it is:\n```json\n{WHOLE}\n```"), DocReaderReport)
