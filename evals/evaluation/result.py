"""The result of a question set: aggregated measures, counts and examples for readers. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evals.evaluation.answer_measures import percentile
from evals.evaluation.asking import Cited, Outcome
from evals.evaluation.ingesting import Ingestion
from evals.evaluation.question_set import QuestionSet
from evals.evaluation.ranking_measures import documents_of, rank_of_first
from evals.evaluation.scoring import PageReader, Row, by_kind, combine, is_verbatim, measure


@dataclass(frozen=True)
class SetResult:
    """The measures, counts and outcomes of one question set.

    Attributes:
        measures: numbers by name, as in the JSON report.
        kinds: numbers by `measure.kind`; part of `measures` there.
        counts: numbers of questions, documents and quotations.
        rows: measures of each outcome, in order.
        false_quotes: quotations shown as verified that are not on the page.
    """

    name: str
    measures: dict[str, float]
    kinds: dict[str, float]
    counts: dict[str, float]
    outcomes: tuple[Outcome, ...]
    rows: tuple[Row, ...]
    ingestion: Ingestion
    false_quotes: tuple[tuple[str, Cited], ...] = ()

    @property
    def nothing_worked(self) -> bool:
        """Whether every search failed, in which case the measures are meaningless."""
        return bool(self.outcomes) and all("search" in outcome.errors for outcome in self.outcomes)

    @property
    def numbers(self) -> dict[str, float]:
        """All measures and counts in one flat mapping."""
        return {**self.measures, **self.counts, **self.kinds}


def conclude(
    questions: QuestionSet,
    ingestion: Ingestion,
    outcomes: Sequence[Outcome],
    read_page: PageReader,
    *,
    answers: bool,
) -> SetResult:
    """Compute the measures of all outcomes and aggregate them over the set. `read_page` provides source
    pages, against which quotations are checked.
    """
    rows = [_applicable(measure(outcome, read_page, answers=answers), questions) for outcome in outcomes]
    measures = combine(rows) | _latencies(outcomes)
    verdicts = [
        (outcome.question.query_id, cited, is_verbatim(cited, read_page))
        for outcome in outcomes
        for cited in (outcome.answer.citations if outcome.answer else ())
        if cited.shown_verified
    ]
    counts = _counts(questions, ingestion, outcomes)
    if answers:
        counts |= _answer_counts(outcomes)
        counts["quotes_checked"] = sum(verdict is not None for *_, verdict in verdicts)
        counts["quotes_unchecked"] = sum(verdict is None for *_, verdict in verdicts)
    return SetResult(
        name=questions.name,
        measures=measures,
        kinds=by_kind([outcome.question for outcome in outcomes], rows),
        counts=counts,
        outcomes=tuple(outcomes),
        rows=tuple(rows),
        ingestion=ingestion,
        false_quotes=tuple((query_id, cited) for query_id, cited, verdict in verdicts if verdict is False),
    )


def first_rank(outcome: Outcome) -> int | None:
    """Return the rank of the first correct target, counted from 1 without repeated targets. Return None if no
    target is correct.
    """
    question, pages = outcome.question, outcome.pages or ()
    ranking = list(dict.fromkeys(pages)) if question.unit == "page" else documents_of(pages)
    return rank_of_first(ranking, question.grades)


def _applicable(row: Row, questions: QuestionSet) -> Row:
    """Remove the tolerant measures from a question's measures if no question of the set has acceptable
    alternatives.
    """
    if any(question.also_acceptable for question in questions.questions):
        return row
    return {name: share for name, share in row.items() if "_tolerant" not in name}


def _latencies(outcomes: Sequence[Outcome]) -> dict[str, float]:
    latencies = {}
    for prefix, seconds in (
        ("latency", [outcome.answer_seconds for outcome in outcomes]),
        ("search_latency", [outcome.search_seconds for outcome in outcomes]),
    ):
        for share in (50, 95):
            value = percentile((one for one in seconds if one is not None), share / 100)
            if value is not None:
                latencies[f"{prefix}_p{share}_s"] = round(value, 3)
    return latencies


def _counts(questions: QuestionSet, ingestion: Ingestion, outcomes: Sequence[Outcome]) -> dict[str, float]:
    answerable = sum(outcome.question.is_answerable for outcome in outcomes)
    return {
        "questions": len(outcomes),
        "answerable": answerable,
        "unanswerable": len(outcomes) - answerable,
        "left_out": questions.left_out,
        "failed_searches": _count_failures(outcomes, ("search", "scoped search")),
        "documents": len(questions.sources),
        **_ingestion_counts(ingestion),
    }


def _ingestion_counts(ingestion: Ingestion) -> dict[str, float]:
    """Return counts and duration of the ingestion, or an empty dictionary if it was skipped with --keep."""
    if not ingestion.documents:
        return {}
    return {
        "documents_not_ready": len(ingestion.not_ready),
        "documents_there_before": sum(document.was_there for document in ingestion.documents),
        "ingest_seconds": ingestion.seconds,
    }


def _answer_counts(outcomes: Sequence[Outcome]) -> dict[str, float]:
    answers = [outcome.answer for outcome in outcomes if outcome.answer is not None]
    abstained = Counter(answer.abstained for answer in answers)
    citations = [cited for answer in answers for cited in answer.citations]
    return {
        "answered": abstained[False],
        "abstained": abstained[True],
        "failed_answers": _count_failures(outcomes, ("answer",)),
        "citations": len(citations),
        "quotes_shown_verified": sum(cited.shown_verified for cited in citations),
    }


def _count_failures(outcomes: Iterable[Outcome], calls: Sequence[str]) -> int:
    return sum(any(call in outcome.errors for call in calls) for outcome in outcomes)
