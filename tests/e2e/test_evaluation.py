"""`evals.evaluation` on a generated set through a running stack, with results that can be predicted."""

import json
from pathlib import Path

import pytest

from evals.evaluation.app import app_of
from evals.evaluation.asking import ask_all
from evals.evaluation.ingesting import ingest
from evals.evaluation.question_set import read_set
from evals.evaluation.result import SetResult, conclude
from evals.evaluation.source_text import SourceTexts
from local.run_all.stack import LocalStack
from tests.e2e.stack_client import HANG_GUARD_S, pdf_of

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(300)]

BALLOONS = "The balloon Saffron carries four passengers to a height of 900 metres."
KITES = "The tail of the kite Vermilion is seven metres long and made of silk."
GLIDERS = "The glider Indigo was built in 1931 by the workshop at Lindow."
QUESTIONS = (
    ("q1", "How many passengers does the balloon Saffron carry?", "balloons.pdf", 1),
    ("q2", "How long is the tail of the kite Vermilion?", "kites.pdf", 1),
    ("q3", "When was the glider Indigo built?", "gliders.md", None),
    ("q4", "What does a ticket for the submarine Cobalt cost?", None, None),
)


def write_set(folder: Path) -> Path:
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "balloons.pdf").write_bytes(pdf_of("Balloons", BALLOONS))
    (folder / "docs" / "kites.pdf").write_bytes(pdf_of("Kites", KITES))
    (folder / "docs" / "gliders.md").write_text(f"# Gliders\n\n{GLIDERS}\n", encoding="utf-8")
    documents = [{"filename": path.name} for path in sorted((folder / "docs").iterdir())]
    queries = [
        {
            "query_id": query_id,
            "query": text,
            "type": "lookup" if filename else "unanswerable",
            "relevant": [{"filename": filename, "page": page}] if filename else [],
            "scope_filename": filename,
        }
        for query_id, text, filename, page in QUESTIONS
    ]
    for name, entries in (("documents.jsonl", documents), ("queries.jsonl", queries)):
        (folder / name).write_text("".join(f"{json.dumps(entry)}\n" for entry in entries), encoding="utf-8")
    return folder


def evaluate(stack: LocalStack, folder: Path) -> SetResult:
    """Evaluate one set as `make eval` does."""
    questions = read_set(folder)
    with app_of(stack) as app:
        ingestion = ingest(app, questions, at_once=3, timeout_s=HANG_GUARD_S)
        outcomes = list(ask_all(app, questions, at_once=2, answers=True))
    return conclude(questions, ingestion, outcomes, SourceTexts(questions).page, answers=True)


def test_a_set_of_ones_own_is_ingested_asked_and_measured(stack: LocalStack, tmp_path: Path) -> None:
    result = evaluate(stack, write_set(tmp_path / "aircraft"))
    assert [outcome.errors for outcome in result.outcomes] == [{}] * 4
    assert result.ingestion.not_ready == ()
    numbers = result.numbers
    for perfect in (
        "page_hit@1",
        "page_recall@10",
        "page_recall@10_scoped",
        "doc_recall@5",
        "citation_page_precision",
        "quotes_verified",
        "abstained_unanswerable",
    ):
        assert numbers[perfect] == 1.0, perfect
    assert numbers["false_abstention"] == 0.0
    assert numbers["quotes_unchecked"] == 0
    assert numbers["quotes_checked"] >= 3
    assert (numbers["questions"], numbers["answerable"], numbers["unanswerable"]) == (4, 3, 1)
    # The generated set has a separate project, so the samples in the same index are not searched.
    filenames = {name for outcome in result.outcomes for name, _ in outcome.pages or ()}
    assert filenames <= {"balloons.pdf", "kites.pdf", "gliders.md"}
