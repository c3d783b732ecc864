"""`users`: what is asked of the app, what is printed of its report."""

import pytest

from cli.errors import CommandError
from tests.unit.cli.fakes import RecordingApp, done

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
    with pytest.raises(CommandError, match="nobody is there to ask"):
        done(app, "users", "erase", "anna")
    assert app.sent == []
    code, text = done(app, "users", "erase", "anna", "--yes")
    assert (code, app.sent[-1]) == (0, ("DELETE /users/anna", {"documents": "keep"}))
    assert "at work" in text
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
    assert "the right id?" in done(app, "users", "erasure", "anna")[1]
    failed = {**REPORT, "status": "failed", "reason": "Take away their sign-in."}
    app.answers["GET /users/anna/erasure"] = failed
    code, text = done(app, "users", "erasure", "anna")
    assert code == 1
    assert "Take away their sign-in." in text
