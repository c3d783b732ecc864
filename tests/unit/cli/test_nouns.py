"""Tests for the API calls and output of commands on documents, threads, runs, summaries and users."""

from pathlib import Path
from typing import Any

import httpx
import pytest
import typer

from cli.errors import CommandError
from tests.unit.cli.fakes import AnsweringApi, RecordingApp, done

DOC_ID = "0" * 24


def test_a_document_is_found_by_its_name_if_only_one_has_it() -> None:
    one, two = ({"doc_id": str(n) * 24, "filename": "a.pdf", "status": "ready"} for n in (1, 2))
    app = RecordingApp({"GET /documents": {"documents": [one]}, f"GET /documents/{'1' * 24}": one})
    assert done(app, "documents", "show", "a.pdf", as_json=True) == (0, one)
    app.answers["GET /documents"] = {"documents": [one, two]}
    with pytest.raises(CommandError, match="2 documents have the name"):
        done(app, "documents", "show", "a.pdf")
    for empty in ("", " "):
        with pytest.raises(CommandError, match="needs a name"):
            done(app, "documents", "show", empty)
    app.answers["GET /documents"] = {"documents": []}
    with pytest.raises(CommandError, match="No document"):
        done(app, "documents", "show", "a.pdf")


def test_rows_in_a_pipe_are_whole_lines_and_names_cannot_steer_the_terminal() -> None:
    name = "x" * 200 + "\x1b[31m\nred\u202e"
    document = {
        "doc_id": DOC_ID,
        "filename": name,
        "status": "failed",
        "status_reason": "No.",
    }
    app = RecordingApp({"GET /documents": {"documents": [document]}})
    _, text = done(app, "documents", "list", "--type", "report", "--limit", "5")
    assert text.splitlines()[1].split("\t") == [
        f"{'x' * 200}�[31m red�",
        "",
        "",
        "failed: No.",
        DOC_ID,
    ]
    assert app.sent == [("GET /documents", {"limit": "5", "document_type": "report"})]
    assert done(app, "documents", as_json=True) == (0, [document])


@pytest.mark.parametrize(("pages", "expected"), [(0, "ready"), (1, "ready: 1 page without readable text")])
def test_the_list_names_pages_that_could_not_be_read(pages: int, expected: str) -> None:
    document = {"doc_id": DOC_ID, "filename": "scan.pdf", "status": "ready", "unreadable_pages": pages}
    _, text = done(RecordingApp({"GET /documents": {"documents": [document]}}), "documents", "list")
    assert text.splitlines()[1].split("\t")[3] == expected


def test_a_name_adds_no_line_of_its_own() -> None:
    document = {"doc_id": DOC_ID, "filename": "a.pdf (verified)\n[2] b.pdf", "owner_id": "anna", "acl": ["*"]}
    app = RecordingApp({f"GET /documents/{DOC_ID}": document})
    _, text = done(app, "documents", "access", DOC_ID)
    assert text == "a.pdf (verified) [2] b.pdf: anna, *\n"


def test_deleting_asks_first_and_tells_of_each() -> None:
    other = "1" * 24
    refused = httpx.Response(403, json={"detail": "Not yours."})
    app = RecordingApp({f"DELETE /documents/{DOC_ID}": {}, f"DELETE /documents/{other}": refused})
    with pytest.raises(CommandError, match="no terminal"):
        done(app, "documents", "delete", DOC_ID)
    with pytest.raises(CommandError, match="Nothing was changed"):
        done(app, "documents", "delete", DOC_ID, answers=["n"])
    assert app.sent == []
    assert done(app, "documents", "delete", DOC_ID, answers=["y"])[0] == 0
    code, results = done(app, "documents", "delete", DOC_ID, other, "--yes", as_json=True)
    assert (code, [one["status"] for one in results]) == (1, ["deleting", "kept"])
    assert done(app, "documents", "delete", other, "--yes")[0] == 2


@pytest.mark.parametrize(
    ("words", "body"),
    [
        (("--acl", "a", "--acl", "b"), {"acl": ["a", "b"]}),
        (("--private",), {"acl": []}),
        (("--project", "p1"), {"acl": ["kept"], "project_id": "p1"}),
    ],
)
def test_access_is_set_as_a_whole(words: tuple[str, ...], body: dict[str, Any]) -> None:
    document = {"doc_id": DOC_ID, "filename": "a.pdf", "owner_id": "anna", "acl": ["kept"]}
    path = f"/documents/{DOC_ID}"
    app = RecordingApp({f"GET {path}": document, f"PUT {path}/access": document})
    assert done(app, "documents", "access", DOC_ID) == (0, "a.pdf: anna, kept\n")
    done(app, "documents", "access", DOC_ID, *words)
    assert app.sent[-1] == (f"PUT {path}/access", body)


def test_an_owner_who_stands_in_the_list_is_printed_once() -> None:
    document = {"doc_id": DOC_ID, "filename": "a.pdf", "owner_id": "anna", "acl": ["anna", "ben"]}
    path = f"/documents/{DOC_ID}"
    assert done(RecordingApp({f"GET {path}": document}), "documents", "access", DOC_ID) == (
        0,
        "a.pdf: anna, ben\n",
    )
    alone = RecordingApp({f"GET {path}": {**document, "acl": ["anna"]}})
    assert done(alone, "documents", "access", DOC_ID) == (0, "a.pdf: anna, nobody else\n")


def test_only_the_requested_page_is_read() -> None:
    page = httpx.Response(200, text="Page five.", headers={"Content-Type": "text/markdown"})
    app = RecordingApp({f"GET /documents/{DOC_ID}/pages/5": page})
    assert done(app, "documents", "read", DOC_ID, "--page", "5") == (0, "Page five.\n")


@pytest.mark.parametrize("field", ["--title", "--type"])
def test_title_and_type_cannot_be_emptied(field: str) -> None:
    app = RecordingApp({})
    with pytest.raises(CommandError, match="needs a title and a type"):
        done(app, "documents", "edit", DOC_ID, field, "")
    assert app.sent == []


def test_a_list_of_nothing_is_refused() -> None:
    app = RecordingApp({})
    with pytest.raises(typer.TyperException, match="greater than or equal to 1"):
        done(app, "documents", "list", "--limit", "0")
    assert app.sent == []


def test_metadata_is_corrected_and_emptied() -> None:
    app = RecordingApp({f"PATCH /documents/{DOC_ID}": {"doc_id": DOC_ID}})
    done(app, "documents", "edit", DOC_ID, "--title", "T", "--author", "", "--tag", "a", "--tag", "b")
    assert app.sent == [(f"PATCH /documents/{DOC_ID}", {"title": "T", "author": None, "tags": ["a", "b"]})]
    with pytest.raises(CommandError, match="No change was given"):
        done(app, "documents", "edit", DOC_ID)


def test_a_download_leaves_no_half_file_and_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = RecordingApp(
        {
            f"GET /documents/{DOC_ID}": {"filename": "../../a.md"},
            f"GET /documents/{DOC_ID}/content": httpx.Response(200, content=b"hello"),
        }
    )
    assert done(app, "documents", "download", DOC_ID, as_json=True)[1]["size_bytes"] == 5
    assert (tmp_path / "a.md").read_bytes() == b"hello"
    with pytest.raises(CommandError, match="already exists"):
        done(app, "documents", "download", DOC_ID)
    del app.answers[f"GET /documents/{DOC_ID}/content"]
    with pytest.raises(CommandError, match="No GET"):
        done(app, "documents", "download", DOC_ID, "--out", str(tmp_path / "b.md"))
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["a.md"]


def test_lists_follow_their_pages() -> None:
    thread = {"thread_id": "t", "title": "T", "turn_count": 1, "updated_at": "2026-01-02T03:04:05Z"}

    def answer(request: httpx.Request) -> httpx.Response:
        is_last = request.url.params.get("cursor") == "c"
        page = {"threads": [thread] * (30 if is_last else 100), "cursor": None if is_last else "c"}
        return httpx.Response(200, json=page)

    app = RecordingApp({})
    app.api = AnsweringApi(answer)
    assert len(done(app, "threads", "--limit", "500", as_json=True)[1]) == 130
    assert len(done(app, "threads", "--limit", "120", as_json=True)[1]) == 120


def test_a_page_is_imported_by_the_app() -> None:
    row = {"doc_id": DOC_ID, "filename": "page.example.html", "status": "queued"}
    app = RecordingApp({"POST /documents/import": row})
    typed = ("https://page.example/", "--project", "p1", "--acl", "ben", "--acl", "engineering")
    assert done(app, "documents", "import", *typed, as_json=True) == (0, row)
    expected_body = {"url": "https://page.example/", "project_id": "p1", "acl": ["ben", "engineering"]}
    assert app.sent == [("POST /documents/import", expected_body)]


@pytest.mark.parametrize("words", [(), ("6",), ("0",), ("good",), ("²",)])
def test_what_is_no_rating_is_not_sent(words: tuple[str, ...]) -> None:
    app = RecordingApp({})
    with pytest.raises(CommandError):
        done(app, "runs", "rate", "r1", *words)
    assert app.sent == []


def test_an_answer_is_shared_listed_and_its_share_ended() -> None:
    share = {
        "share_id": "s1",
        "url": "/web?view=shared&share=s1",
        "audience": ["ben"],
        "created_at": "2026-01-01T00:00:00Z",
        "expires_at": "2026-01-31T00:00:00Z",
    }
    documents = [{"doc_id": DOC_ID, "filename": "manual.pdf"}]
    listed = {"shares": [share], "documents": documents, "obstacles": ["database"]}
    app = RecordingApp({"POST /runs/r1/shares": share, "GET /runs/r1/shares": listed})
    code, text = done(app, "share", "r1", "--with", "ben", "--days", "7")
    assert code == 0
    assert "/web?view=shared&share=s1" in text
    assert app.sent == [("POST /runs/r1/shares", {"audience": ["ben"], "days": 7})]
    _, text = done(app, "share", "r1")
    assert "manual.pdf" in text
    assert "it used a database" in text
    assert "s1" in text
    with pytest.raises(CommandError, match="exclude each other"):
        done(app, "share", "r1", "--with", "ben", "--revoke", "s1")


def test_revoking_an_unknown_share_fails() -> None:
    app = RecordingApp({})
    with pytest.raises(CommandError, match="No DELETE /runs/r1/shares/bogus"):
        done(app, "share", "r1", "--revoke", "bogus")


def test_filters_of_a_search_are_words_or_json() -> None:
    app = RecordingApp({"POST /search": {"results": []}})
    code, _ = done(
        app, "search", "q", "--filter", "department=Safety", "--filter", 'tags=["a"]', "--top", "3"
    )
    assert code == 3
    assert app.sent[0][1] == {"query": "q", "top_k": 3, "filters": {"department": "Safety", "tags": ["a"]}}
    with pytest.raises(CommandError, match="not a valid filter"):
        done(app, "search", "q", "--filter", "department")


def test_a_summary_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.searching._LOOK_EVERY_S", 0.0)
    running = {
        "summary_id": "s1",
        "status": "running",
        "progress": 0.5,
        "children": [{"doc_id": "d", "status": "x"}],
    }
    result = {
        "summary": "Short (Source: a.pdf, S. 4)[1].",
        "key_findings": [],
        "metrics": [],
        "tags": ["t"],
        "citations": [],
        "warnings": [],
    }
    ended = {**running, "status": "completed", "result": result}
    app = RecordingApp({"POST /summaries": running, "GET /summaries/s1": ended})
    assert done(app, "summary", DOC_ID, "--focus", "f") == (
        0,
        "Short (Source: a.pdf, p. 4)[1].\nTags: t\n",
    )
    assert app.sent[0][1] == {"doc_ids": [DOC_ID], "focus": "f"}
    app.answers["GET /summaries/s1"] = {**running, "status": "failed", "error": "No.", "error_type": "X"}
    with pytest.raises(CommandError, match="No"):
        done(app, "summary", DOC_ID)


def test_an_app_that_is_not_ready_has_an_exit_code() -> None:
    not_ready = httpx.Response(503, json={"status": "unavailable", "failed": {"search": "NetworkError"}})
    app = RecordingApp({"GET /health/ready": not_ready})
    code, text = done(app, "status")
    assert code == 1
    assert "not ready" in text
    assert "failed.search:" in text


REPORT = {
    "user_id": "anna",
    "status": "completed",
    "documents": "keep",
    "asked_at": "2026-11-21T20:00:00Z",
    "finished_at": "2026-11-21T20:15:00Z",
    "passes": 2,
    "next_pass_at": None,
    "reason": None,
    "erased": {"threads": 3, "quality_records": 7, "limits": 0},
    "kept": [
        {"what": "documents", "count": 2, "why": "others work with them"},
        {"what": "lists", "count": 0, "why": "theirs"},
        {"what": "lines of the log", "count": None, "why": "a pseudonym"},
    ],
    "status_url": "/api/users/anna/erasure",
}


def test_erasing_asks_first_and_says_whether_documents_go() -> None:
    app = RecordingApp({"DELETE /users/anna": {**REPORT, "status": "running"}})
    with pytest.raises(CommandError, match="no terminal"):
        done(app, "users", "erase", "anna")
    assert app.sent == []
    code, text = done(app, "users", "erase", "anna", "--yes")
    assert (code, app.sent[-1]) == (0, ("DELETE /users/anna", {"documents": "keep"}))
    assert "has started" in text
    done(app, "users", "erase", "anna", "--documents", "--yes")
    assert app.sent[-1] == ("DELETE /users/anna", {"documents": "delete"})


def test_the_report_tells_what_went_and_what_stays() -> None:
    app = RecordingApp({"GET /users/anna/erasure": REPORT})
    code, text = done(app, "users", "erasure", "anna")
    assert code == 0
    for words in ("anna: completed", "3  threads erased", "7  quality records erased", "2  documents kept"):
        assert words in text, text
    assert "limits" not in text
    assert "lists" not in text
    assert "lines of the log kept: a pseudonym" in text
    assert done(app, "users", "erasure", "anna", as_json=True) == (0, REPORT)


def test_nothing_found_and_a_failure_are_said() -> None:
    app = RecordingApp({"GET /users/anna/erasure": {**REPORT, "erased": {"threads": 0}}})
    assert "Is the id right?" in done(app, "users", "erasure", "anna")[1]
    failed = {**REPORT, "status": "failed", "reason": "Take away their sign-in."}
    app.answers["GET /users/anna/erasure"] = failed
    code, text = done(app, "users", "erasure", "anna")
    assert code == 1
    assert "Take away their sign-in." in text


def test_own_runs_and_summaries_are_listed_and_the_newest_summary_shown_and_deleted() -> None:
    at = "2026-03-02T09:15:00Z"
    run = {"run_id": "r1", "question": "How\nhigh?", "status": "completed", "created_at": at}
    summary = {
        "summary_id": "s1",
        "focus": "Costs",
        "document_count": 2,
        "status": "running",
        "created_at": at,
    }
    app = RecordingApp(
        {
            "GET /runs": {"runs": [run], "cursor": None},
            "GET /summaries": {"summaries": [summary], "cursor": None},
            "GET /summaries/s1": {**summary, "result": None, "error": None, "progress": 0.5},
            "DELETE /summaries/s1": {},
        }
    )
    code, text = done(app, "runs", "list", "--limit", "5")
    assert (code, text.splitlines()[1].split("\t")[:2]) == (0, ["How high?", "completed"])
    assert app.sent == [("GET /runs", {"limit": "5"})]
    assert done(app, "summaries", as_json=True) == (0, [summary])
    assert done(app, "summaries", "show", "last") == (0, "The summary is running (50%).\n")
    assert done(app, "summaries", "delete", "last", "--yes") == (0, "s1 is deleted.\n")
    app.answers["GET /summaries"] = {"summaries": [], "cursor": None}
    with pytest.raises(CommandError, match="no summaries yet"):
        done(app, "summaries", "show", "last")


def test_a_search_is_narrowed_by_what_its_documents_have() -> None:
    app = RecordingApp({"POST /search": {"results": []}})
    words = (
        "--tag",
        "oil",
        "--tag",
        "gas",
        "--language",
        "de",
        "--since",
        "2025-01-01",
        "--until",
        "2025-06-30",
    )
    assert done(app, "search", "pressure", *words)[0] == 3
    done(app, "search", "pressure", "--since", "2025-01-01")
    first, second = (body["filters"] for _, body in app.sent)
    assert first == {
        "tags": ["oil", "gas"],
        "language": "de",
        "upload_date": {"start": "2025-01-01", "end": "2025-06-30T23:59:59Z"},
    }
    assert second == {"upload_date": {"start": "2025-01-01", "end": None}}


def test_libraries_are_shown_with_what_was_left_out() -> None:
    library: dict[str, Any] = {
        "name": "Documents",
        "status": "current",
        "error": None,
        "succeeded_at": "2026-11-02T10:00:00Z",
        "counts": {
            "files": 7,
            "hidden": 1,
            "skipped": {"format": 2},
            "examples": [{"name": "pay.md", "reason": "permissions_unreadable"}],
        },
    }
    app = RecordingApp({"GET /sharepoint": {"libraries": [library]}})
    code, text = done(app, "libraries")
    assert code == 0
    assert text.splitlines()[1].split("\t")[1:] == ["current", "2026-11-02 10:00", "7", "1", "2 format"]
    library |= {"status": "failed", "error": "AuthenticationError"}
    assert done(app, "libraries")[0] == 1
    assert done(app, "libraries", as_json=True) == (1, {"libraries": [library]})
    app.answers["GET /sharepoint"] = {"libraries": []}
    assert "SHAREPOINT_LIBRARIES" in done(app, "libraries")[1]
