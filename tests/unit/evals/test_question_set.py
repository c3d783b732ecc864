"""Tests for reading question sets in the uniform format."""

import json
from pathlib import Path

import pytest

from evals.evaluation.question_set import Question, find_sets, name_key, read_set


def write_lines(path: Path, *entries: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries), encoding="utf-8")


def set_of_pages(folder: Path, *queries: object) -> Path:
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "kites.pdf").write_bytes(b"%PDF-")
    write_lines(folder / "documents.jsonl", {"filename": "kites.pdf", "path": "docs/kites.pdf", "bytes": 5})
    write_lines(folder / "queries.jsonl", *queries)
    return folder


def query(**fields: object) -> dict[str, object]:
    return {"query_id": "q1", "query": "How long is the tail?", "relevant": [], "answer": None, **fields}


def only_question(folder: Path, **fields: object) -> Question:
    return read_set(set_of_pages(folder, query(**fields))).questions[0]


def test_a_question_names_pages(tmp_path: Path) -> None:
    question = only_question(
        tmp_path,
        relevant=[{"filename": "kites.pdf", "page": 3}],
        also_acceptable=[{"filename": "kites.pdf", "page": 4}],
        scope_filename="kites.pdf",
        answer="two metres",
        type="figure",
        evidence_sources=["unknown fields are passed over"],
    )
    assert question.unit == "page"
    assert question.grades == {("kites.pdf", 3): 1.0}
    assert question.also_acceptable == {("kites.pdf", 4)}
    assert (question.scope, question.answers, question.kind) == ("kites.pdf", ("two metres",), "figure")


def test_a_question_without_pages_names_documents(tmp_path: Path) -> None:
    question = only_question(tmp_path, relevant=[{"filename": "kites.pdf", "page": None}])
    assert (question.unit, question.grades) == ("document", {("kites.pdf", None): 1.0})


def test_a_question_without_anything_relevant_is_unanswerable(tmp_path: Path) -> None:
    question = only_question(tmp_path)
    assert (question.unit, question.is_answerable, question.answers) == ("none", False, ())


def test_passages_become_small_files_with_their_title(tmp_path: Path) -> None:
    write_lines(tmp_path / "passages.jsonl", {"passage_id": "p/1 a", "title": "Kites", "text": "They fly."})
    relevant = [{"passage_id": "p/1 a", "grade": 2}]
    write_lines(tmp_path / "queries.jsonl", query(relevant=relevant, answers=["they", "fly"], answer=4))
    question_set = read_set(tmp_path)
    assert question_set.sources[0].content() == b"Kites\n\nThey fly."
    assert question_set.questions[0].grades == {(question_set.sources[0].key, None): 2.0}
    assert question_set.questions[0].unit == "passage"
    assert question_set.questions[0].answers == ("they", "fly", "4")


def test_labels_that_are_not_to_be_trusted_are_left_out_and_counted(tmp_path: Path) -> None:
    good, bad, sql = (
        query(),
        query(query_id="q2", label_ok=False),
        query(query_id="q3", gold_sql=["SELECT 1"]),
    )
    question_set = read_set(set_of_pages(tmp_path, bad, good, sql), limit=1)
    assert [question.query_id for question in question_set.questions] == ["q1"]
    assert question_set.left_out == 2


def test_a_sample_of_the_questions_is_taken_where_there_is_one(tmp_path: Path) -> None:
    set_of_pages(tmp_path, query(), query(query_id="q2"))
    write_lines(tmp_path / "queries_1000.jsonl", query(query_id="q2"))
    assert [question.query_id for question in read_set(tmp_path).questions] == ["q2"]
    assert len(read_set(tmp_path, "queries.jsonl").questions) == 2
    assert len(read_set(tmp_path, "queries.jsonl", limit=1).questions) == 1


def test_names_are_compared_composed_and_with_single_blanks() -> None:
    assert name_key("Cafe\u0301  menu.pdf") == name_key("Caf\u00e9 menu.pdf")


def test_sets_are_found_by_name_or_all_together(tmp_path: Path) -> None:
    set_of_pages(tmp_path / "b", query())
    set_of_pages(tmp_path / "a", query())
    (tmp_path / "no-set").mkdir()
    assert [folder.name for folder in find_sets(tmp_path, "")] == ["a", "b"]
    assert [folder.name for folder in find_sets(tmp_path, "b, a")] == ["b", "a"]
    assert find_sets(tmp_path / "a", "") == [tmp_path / "a"]
    with pytest.raises(ValueError, match="no question set: no-set"):
        find_sets(tmp_path, "a,no-set")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "queries.jsonl, line 2 is not JSON"),
        ("[]", "line 2 is not a JSON object"),
        ('{"query_id": "q2"}', "line 2 has no query"),
        (
            '{"query_id": "q2", "query": "?", "relevant": [{"page": 1}]}',
            "has neither filename nor passage_id",
        ),
    ],
)
def test_a_line_of_another_form_is_named(tmp_path: Path, line: str, message: str) -> None:
    set_of_pages(tmp_path, query())
    with (tmp_path / "queries.jsonl").open("a") as lines:
        lines.write(line + "\n")
    with pytest.raises(ValueError, match=message):
        read_set(tmp_path)


def test_a_document_that_is_not_there_is_named(tmp_path: Path) -> None:
    set_of_pages(tmp_path, query())
    (tmp_path / "docs" / "kites.pdf").unlink()
    with pytest.raises(ValueError, match=r"documents\.jsonl, line 1: there is no file"):
        read_set(tmp_path)
