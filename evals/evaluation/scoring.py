"""Computes the measures that docs/internals/measuring.md defines. Pure, except that `read_page` reads source
pages.

Every measure is a share, so means and pooled counts are added up alike. A failed call counts as the worst
result.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from evals.evaluation.answer_measures import answer_token_f1
from evals.evaluation.asking import Cited, Outcome
from evals.evaluation.question_set import Question, Target
from evals.evaluation.quotations import Page, occurs_on
from evals.evaluation.ranking_measures import documents_of, first_of_each, hit_at, ndcg_at, recall_at

PageReader = Callable[[str, int | None], Page | None]
"""Returns the page of a file by page number, or None if its text is unknown."""


class Share(NamedTuple):
    """A fraction, as numerator and denominator (1 by default)."""

    part: float
    whole: float = 1.0


Row = dict[str, Share]
"""The measures of one question, by name."""


def measure(outcome: Outcome, read_page: PageReader, *, answers: bool) -> Row:
    """Return all measures that apply to a question, by name. With `answers`, measures of the answer are
    included.
    """
    row = _retrieval(outcome)
    if answers:
        row |= _answer(outcome) | _citations(outcome)
        row |= _quotations(outcome.answer.citations if outcome.answer else (), read_page)
    return row


def combine(rows: Iterable[Row]) -> dict[str, float]:
    """Aggregate the measures of several questions: for each name, divide the sum of numerators by the sum of
    denominators.
    """
    sums: Row = {}
    for row in rows:
        for name, (part, whole) in row.items():
            before = sums.get(name, Share(0.0, 0.0))
            sums[name] = Share(before.part + part, before.whole + whole)
    return {name: round(part / whole, 4) for name, (part, whole) in sums.items() if whole}


def by_kind(questions: Sequence[Question], rows: Sequence[Row]) -> dict[str, float]:
    """Aggregate the measures for each kind of question, with keys `measure.kind`."""
    scores: dict[str, float] = {}
    for kind in sorted({question.kind for question in questions if question.kind}):
        own = [row for question, row in zip(questions, rows, strict=True) if question.kind == kind]
        scores |= {f"{name}.{kind}": value for name, value in combine(own).items()}
    return scores


def is_verbatim(cited: Cited, read_page: PageReader) -> bool | None:
    """Return whether the quotation occurs on its page, or None if the page can't be read."""
    page = read_page(cited.filename, cited.page_number)
    return None if page is None else occurs_on(cited.quote, page)


def _retrieval(outcome: Outcome) -> Row:
    question = outcome.question
    if not question.is_answerable:
        return {}
    row: Row = {}
    pages = outcome.pages or ()
    ranking = _ranking(pages, question)
    row["ndcg@10"] = Share(ndcg_at(ranking, question.grades, 10))
    row["recall@10"] = Share(recall_at(ranking, tuple(question.grades), 10))
    if question.unit != "passage":
        row["doc_recall@5"] = Share(recall_at(documents_of(pages), documents_of(question.grades), 5))
    if question.unit == "page":
        row |= _page_measures(ranking, question, "")
        if question.scope is not None:
            row |= _page_measures(_ranking(outcome.scoped_pages or (), question), question, "_scoped")
    return row


def _ranking(pages: Sequence[Target], question: Question) -> list[Target]:
    """Return the ranking without repeated targets. Targets are pages if the question's labels name pages,
    otherwise documents.
    """
    return first_of_each(pages) if question.unit == "page" else documents_of(pages)


def _page_measures(ranking: Sequence[Target], question: Question, suffix: str) -> Row:
    targets, also = tuple(question.grades), question.also_acceptable
    row = {
        f"page_hit@1{suffix}": Share(hit_at(ranking, targets, 1)),
        f"page_hit@1_tolerant{suffix}": Share(hit_at(ranking, [*targets, *also], 1)),
    }
    for k in (5, 10):
        row[f"page_recall@{k}{suffix}"] = Share(recall_at(ranking, targets, k))
        row[f"page_recall@{k}_tolerant{suffix}"] = Share(recall_at(ranking, targets, k, also))
    return row


def _answer(outcome: Outcome) -> Row:
    question, answer = outcome.question, outcome.answer
    if not question.is_answerable:
        return {"abstained_unanswerable": Share(float(answer is not None and answer.abstained))}
    row = {"false_abstention": Share(float(answer is None or answer.abstained))}
    if question.answers:
        text = answer.text if answer is not None and not answer.abstained else ""
        row["answer_token_f1"] = Share(answer_token_f1(text, question.answers))
    return row


def _citations(outcome: Outcome) -> Row:
    """Return how many of an answer's citations name a correct page or passage, as fractions."""
    question, answer = outcome.question, outcome.answer
    if answer is None or question.unit not in ("page", "passage"):
        return {}
    cited = [
        citation.target if question.unit == "page" else (citation.target[0], None)
        for citation in answer.citations
    ]
    right = sum(target in question.grades for target in cited)
    tolerated = sum(target in question.grades or target in question.also_acceptable for target in cited)
    return {
        "citation_page_precision": Share(right, len(cited)),
        "citation_page_precision_tolerant": Share(tolerated, len(cited)),
    }


def _quotations(citations: Sequence[Cited], read_page: PageReader) -> Row:
    verdicts = [is_verbatim(cited, read_page) for cited in citations if cited.shown_verified]
    checked = [verdict for verdict in verdicts if verdict is not None]
    return {"quotes_verified": Share(sum(checked), len(checked))}
