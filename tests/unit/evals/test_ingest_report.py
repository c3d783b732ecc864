"""Tests for the ingestion report: selected files, counted outcomes and known messages."""

import json
from pathlib import Path

import pytest

from evals.ingest_report.corpus import find_files
from evals.ingest_report.report import Ending, FileReport, ending_of, summarize
from evals.word_recall import word_recall
from shared.ingestion import parser_process
from shared.ingestion.parser_process import _Worker
from shared.ingestion.parser_worker import ParseJob


def put(path: Path, text: str = "words") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_every_file_is_found_and_references_are_no_documents(tmp_path: Path) -> None:
    put(tmp_path / "b" / "manual.docx")
    put(tmp_path / "a.md")
    put(tmp_path / ".hidden" / "c.md")
    reference = put(tmp_path / "reference" / "manual.docx.md")
    files = find_files(tmp_path)
    assert [(file.name, file.reference) for file in files] == [("a.md", None), ("b/manual.docx", reference)]


def test_the_reference_may_lie_beside_the_folder(tmp_path: Path) -> None:
    put(tmp_path / "docs" / "a.pdf")
    reference = put(tmp_path / "reference" / "a.pdf.md")
    assert [file.reference for file in find_files(tmp_path / "docs")] == [reference]


def test_a_manifest_says_what_is_there(tmp_path: Path) -> None:
    put(tmp_path / "docs" / "a.PDF")
    put(tmp_path / "docs" / "unlisted.pdf")
    put(tmp_path / "documents.jsonl", json.dumps({"path": "docs/a.PDF", "reference_md": "truth/a.md"}) + "\n")
    (file,) = find_files(tmp_path)
    assert (file.name, file.reference) == ("docs/a.PDF", tmp_path / "truth" / "a.md")


@pytest.mark.parametrize("folder", [".", "absent"])
def test_a_folder_without_files_is_refused(tmp_path: Path, folder: str) -> None:
    with pytest.raises(ValueError, match="There is no"):
        find_files(tmp_path / folder)


@pytest.mark.parametrize(
    ("status", "reason", "warnings", "ending"),
    [
        ("ready", None, (), "ready"),
        ("ready", None, ("Page 3 holds no text.",), "ready_with_warning"),
        ("failed", "The PDF is encrypted and needs a password.", (), "failed"),
        ("failed", "A step of the ingestion ended without an answer.", (), "crashed"),
        ("failed", "The document could not be ingested because of an internal error.", (), "crashed"),
    ],
)
def test_an_ending_is_told_from_the_documents_own_words(
    status: str, reason: str | None, warnings: tuple[str, ...], ending: str
) -> None:
    assert ending_of(status, reason, warnings) == ending


def test_the_parsers_words_for_lateness_and_crashes_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = {"source": tmp_path / "a", "target": tmp_path / "b"}
    job = ParseJob(**paths, filename="a.txt", max_tokens=99, max_blocks=9)
    worker = _Worker(384 << 20)
    assert ending_of("failed", worker.ask(job, timeout_s=0).reason, ()) == "timed_out"
    monkeypatch.setattr(
        parser_process, "_START", "import os; {path!r}; print('ready', flush=True); os.abort()"
    )
    assert ending_of("failed", worker.ask(job, timeout_s=60).reason, ()) == "crashed"


def entry(name: str, status: Ending, recall: float | None = None) -> FileReport:
    return FileReport(
        file=name, status=status, seconds=1, size_bytes=9, pages=2, blocks=3, word_recall=recall
    )


def test_the_summary_counts_each_file_once_and_medians_by_suffix() -> None:
    files = [
        entry("a.PDF", "ready", 0.5),
        entry("b.pdf", "ready", 0.9),
        entry("c.pdf", "ready_with_warning", 1.0),
        entry("d.docx", "failed"),
        entry("v1.2/LICENSE", "timed_out", 0.25),
        entry("e.md", "crashed"),
    ]
    summary = summarize(files, 12.34).summary
    counts = (summary.ready, summary.ready_with_warning, summary.failed, summary.crashed, summary.timed_out)
    assert counts == (2, 1, 1, 1, 1)
    assert summary.median_recall == {"": 0.25, ".pdf": 0.9}
    assert (summary.files, summary.pages, summary.blocks, summary.seconds) == (6, 12, 18, 12.3)


@pytest.mark.parametrize(
    ("reference", "text", "recall"),
    [
        ("the red pump", "The pump, red.", 1.0),
        ("one two three four", "one two", 0.5),
        ("yes yes yes yes", "yes", 0.25),
        ("", "anything", 1.0),
        ("<!-- image -->", "", 1.0),
        ("**bold** and `code`", "bold and code", 1.0),
        ("[the manual](https://example.org/a_(b)) ![a pump](pump.png)", "the manual a pump", 1.0),
        ("R&amp;D in my\\_file", "R&D in my_file", 1.0),
        ("| a | b |\n| --- | --- |\n| 1 | 2 |", "a b 1 2", 1.0),
        ("- [x] done", "done", 1.0),
    ],
)
def test_recall_counts_the_words_a_reader_sees(reference: str, text: str, recall: float) -> None:
    assert word_recall(reference, text) == recall
