"""The measure of comparisons: which questions it asks, and what it counts as citing all documents."""

import json
from pathlib import Path

from evals.comparisons.measuring import Asked, as_row, conclude, over_several
from evals.evaluation.question_set import Question, read_set

BOTH = Question(
    "q", "How do they differ?", unit="document", grades={("a.pdf", None): 1.0, ("b c.pdf", None): 1.0}
)


def asked(*cited: str, abstained: bool = False, subagents: int = 0) -> Asked:
    answer = {
        "abstained": abstained,
        "citations": [{"filename": name} for name in cited],
        "sub_agents": [{"profile": "comparator", "status": "done"}] * subagents,
    }
    return Asked(BOTH, {"answer": answer}, 2.0)


def test_only_questions_whose_labels_name_several_documents_are_asked(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"")
    labels = {"one": ["a.pdf"], "twice the same": ["a.pdf", "a.pdf"], "two": ["a.pdf", "b.pdf"], "none": []}
    queries = [
        {
            "query_id": name,
            "query": name,
            "relevant": [{"filename": file, "page": place} for place, file in enumerate(files, 1)],
        }
        for name, files in labels.items()
    ]
    (tmp_path / "documents.jsonl").write_text(json.dumps({"filename": "a.pdf", "path": "a.pdf"}))
    (tmp_path / "queries.jsonl").write_text("\n".join(json.dumps(query) for query in queries))
    assert [question.query_id for question in over_several(read_set(tmp_path))] == ["two"]


def test_an_answer_cites_all_only_when_every_document_is_there() -> None:
    arm = conclude("arm", [asked("a.pdf", "b  c.pdf"), asked("a.pdf", "x.pdf"), asked(abstained=True)])
    assert arm.numbers["all_cited"] == 0.5
    assert arm.numbers["all_cited_of_questions"] == 0.3333
    assert arm.numbers["cited_of_named"] == 0.75
    assert (arm.numbers["answered"], arm.numbers["abstained"]) == (2, 1)


def test_a_call_that_failed_is_a_question_without_an_answer() -> None:
    arm = conclude("arm", [Asked(BOTH, None, 1.0, "502: no"), asked("a.pdf", "b c.pdf", subagents=2)])
    assert (arm.numbers["failed"], arm.numbers["all_cited"]) == (1, 1.0)
    assert arm.numbers["all_cited_of_questions"] == 0.5
    assert (arm.numbers["with_sub_agents"], arm.numbers["sub_agents"]) == (1, 2)


def test_of_each_question_it_is_told_which_documents_are_missing() -> None:
    row = as_row(asked("a.pdf", subagents=1))
    assert row["missing"] == ["b c.pdf"]
    assert row["sub_agents"] == {"comparator done": 1}
