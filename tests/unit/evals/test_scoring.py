"""Tests for the scores of a report, calculated from the responses of the app."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from evals.compare import compare
from evals.evaluation.asking import Answer, Cited, Outcome, read_answer
from evals.evaluation.ingesting import Ingested, Ingestion
from evals.evaluation.question_set import Question, QuestionSet, SourceFile, Target
from evals.evaluation.quotations import PlainPage, bare
from evals.evaluation.report import Origin, as_json, as_json_lines, as_markdown
from evals.evaluation.result import SetResult, conclude

PAGES = {("kites.pdf", 3): PlainPage(bare("The tail is two metres long."))}
LOOKUP = Question(
    "q1",
    "How long is the tail?",
    "lookup",
    "page",
    {("kites.pdf", 3): 1.0},
    frozenset({("kites.pdf", 4)}),
    answers=("two metres",),
)
UNANSWERABLE = Question("q2", "Who sewed it?", "unanswerable")
ABSTENTION = Answer("The documents do not say.", abstained=True)


def cited(page: int, quote: str, *, shown_verified: bool = True) -> Cited:
    return Cited(("kites.pdf", page), "kites.pdf", page, quote, shown_verified)


def result_of(outcomes: Sequence[Outcome], *, answers: bool = True) -> SetResult:
    sources = (SourceFile("kites.pdf", text="-"), SourceFile("wings.pdf", text="-"))
    questions = QuestionSet("toys", sources, tuple(outcome.question for outcome in outcomes), left_out=1)
    ingestion = Ingestion((Ingested("kites.pdf", "ready"), Ingested("wings.pdf", "failed", "encrypted")), 2.5)
    return conclude(
        questions, ingestion, outcomes, lambda name, page: PAGES.get((name, page or 0)), answers=answers
    )


def numbers_of(*outcomes: Outcome, answers: bool = True) -> dict[str, float]:
    return result_of(outcomes, answers=answers).numbers


def test_pages_are_ranked_by_the_first_hit_of_each() -> None:
    hits: tuple[Target, ...] = (("kites.pdf", 4), ("kites.pdf", 4), ("wings.pdf", 1), ("kites.pdf", 3))
    numbers = numbers_of(Outcome(LOOKUP, pages=hits), answers=False)
    assert numbers["page_hit@1"] == 0.0
    assert numbers["page_hit@1_tolerant"] == 1.0
    assert numbers["page_recall@5"] == numbers["page_recall@10"] == numbers["recall@10"] == 1.0
    assert numbers["ndcg@10"] == 0.5  # the relevant page is the third distinct one
    assert numbers["doc_recall@5"] == 1.0
    assert numbers["page_recall@10.lookup"] == 1.0


def test_the_scope_is_measured_on_its_own() -> None:
    question = replace(LOOKUP, scope="kites.pdf")
    numbers = numbers_of(Outcome(question, pages=(), scoped_pages=(("kites.pdf", 3),)), answers=False)
    assert numbers["page_recall@10"] == 0.0
    assert numbers["page_recall@10_scoped"] == 1.0
    assert numbers["page_recall@10_tolerant_scoped"] == 1.0


def test_passages_are_ranked_as_documents() -> None:
    question = Question("q", "?", "lookup", "passage", {("p1.txt", None): 1.0})
    numbers = numbers_of(Outcome(question, pages=(("p2.txt", 1), ("p1.txt", 2))), answers=False)
    assert numbers["recall@10"] == 1.0
    assert 0.6 < numbers["ndcg@10"] < 0.7
    assert not {"page_hit@1", "doc_recall@5", "page_hit@1_tolerant"} & set(numbers)


def test_a_search_that_failed_counts_as_nothing_found() -> None:
    failed = Outcome(LOOKUP, errors={"search": "503: away"})
    successful_outcome = Outcome(LOOKUP, pages=(("kites.pdf", 3),))
    numbers = numbers_of(failed, successful_outcome, answers=False)
    assert numbers["page_recall@5"] == 0.5
    assert numbers["failed_searches"] == 1
    assert numbers["questions"] == 2


def test_an_app_that_is_out_of_order_is_told_from_a_bad_one() -> None:
    failed = Outcome(LOOKUP, errors={"search": "503: away"})
    assert result_of([failed, failed]).nothing_worked
    assert not result_of([failed, Outcome(LOOKUP, pages=())]).nothing_worked
    assert not result_of([]).nothing_worked


def test_abstention_is_right_where_nothing_answers_and_wrong_elsewhere() -> None:
    numbers = numbers_of(
        Outcome(UNANSWERABLE, answer=ABSTENTION),
        Outcome(UNANSWERABLE, answer=Answer("Ida did.", abstained=False)),
        Outcome(LOOKUP, answer=ABSTENTION),
        Outcome(LOOKUP, answer=Answer("Two metres. [1]", abstained=False)),
        Outcome(LOOKUP, errors={"answer": "500: broken"}),
        Outcome(UNANSWERABLE, errors={"answer": "500: broken"}),
    )
    assert numbers["abstained_unanswerable"] == pytest.approx(1 / 3, abs=1e-4)
    assert numbers["false_abstention"] == pytest.approx(2 / 3, abs=1e-4)
    assert numbers["answer_token_f1"] == pytest.approx(1 / 3, abs=1e-4)
    assert (numbers["answered"], numbers["abstained"], numbers["failed_answers"]) == (2, 2, 2)


def test_citations_are_pooled_and_held_against_the_labels() -> None:
    first = Answer("-", abstained=False, citations=(cited(3, "tail"), cited(4, "x"), cited(9, "y")))
    second = Answer("-", abstained=False, citations=(cited(3, "tail"),))
    numbers = numbers_of(Outcome(LOOKUP, answer=first), Outcome(LOOKUP, answer=second))
    assert numbers["citation_page_precision"] == 0.5
    assert numbers["citation_page_precision_tolerant"] == 0.75


def test_only_quotations_shown_as_verified_are_checked_and_unreadable_pages_are_told() -> None:
    answer = Answer(
        "-",
        abstained=False,
        citations=(
            cited(3, "two metres long"),
            cited(3, "three metres long"),
            cited(3, "invented, and marked so", shown_verified=False),
            cited(7, "on a scan"),
        ),
    )
    result = result_of([Outcome(UNANSWERABLE, answer=answer)])
    assert result.numbers["quotes_verified"] == 0.5
    assert (result.numbers["quotes_checked"], result.numbers["quotes_unchecked"]) == (2, 1)
    assert result.numbers["quotes_shown_verified"] == 3
    assert [quote.quote for _, quote in result.false_quotes] == ["three metres long"]


def test_a_run_without_an_answer_is_a_failure() -> None:
    with pytest.raises(ValueError, match="the status failed"):
        read_answer({"status": "failed", "answer": None})


def test_the_report_has_its_numbers_its_origin_and_what_went_wrong() -> None:
    wrong = Answer("-", abstained=False, citations=(cited(3, "three metres"),))
    result = result_of(
        [
            Outcome(LOOKUP, pages=(("kites.pdf", 3),), answer=wrong, search_seconds=0.3),
            Outcome(LOOKUP, errors={"search": "503: away", "answer": "500: broken"}),
        ]
    )
    origin = Origin("extractive", "abc")
    report = json.loads(as_json([result], origin))
    assert set(report) == {"sets", "model", "commit"}
    assert report["sets"]["toys"]["page_hit@1"] == 0.5
    assert all(isinstance(value, int | float) for value in report["sets"]["toys"].values())
    text = as_markdown([result], origin)
    for expected in ("| page_hit@1 | 0.5 |", "wings.pdf: failed encrypted", "q1, answer: 500: broken"):
        assert expected in text
    assert "kites.pdf, page 3: three metres" in text
    assert [json.loads(line)["first_rank"] for line in as_json_lines([result]).splitlines()] == [1, None]


def test_two_reports_are_compared_measure_by_measure() -> None:
    old = {"sets": {"toys": {"ndcg@10": 0.5, "gone": 1.0}, "old": {}}, "commit": "a", "model": "m"}
    new = {"sets": {"toys": {"ndcg@10": 0.75, "same": 1.0}, "new": {}}, "commit": "b", "model": "m"}
    text = compare(old, new)
    assert "| ndcg@10 | 0.5 | 0.75 | +0.25 |" in text
    assert "| gone | 1 |  |  |" in text
    assert "Only in the old: old." in text
    assert "Only in the new: new." in text
