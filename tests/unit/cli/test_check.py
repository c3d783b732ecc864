"""Tests for `check`: every partial failure of an app is reported, and the uploaded file is always deleted."""

import json
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.unit.cli.fakes import AnsweringApi, ReadTerminal, run

DOC = "d" * 24
Run = dict[str, Any]


class App:
    """An app that ingests a file at once and answers from it, unless a test overrides its responses."""

    def __init__(self, change: Callable[[Run], Run] = lambda run: run, status: str = "ready") -> None:
        self.sent: list[str] = []
        self.is_there = False
        self.refusals: dict[str, list[httpx.Response]] = {}
        self._change = change
        self._status = status
        self._fact = ""
        self._filename = ""

    def answer(self, request: httpx.Request) -> httpx.Response:
        call = f"{request.method} {request.url.path.removeprefix('/api')}"
        self.sent.append(call)
        if call == "POST /documents":
            self._fact = re.findall(r"The calibration.*?millibar\.", request.content.decode())[0]
            self._filename = re.findall(r"groundwork-check-\w+\.md", request.content.decode())[0]
            self.is_there = True
        if self.refusals.get(call):
            return self.refusals[call].pop(0)
        if call == "GET /documents":
            listed = [{"doc_id": DOC, "filename": self._filename}] if self.is_there else []
            return httpx.Response(200, json={"documents": listed})
        if call == "POST /documents":
            return httpx.Response(202, json={"doc_id": DOC})
        return self._deleted(call) if call.startswith("DELETE") else self._read(call)

    def _deleted(self, call: str) -> httpx.Response:
        if call.startswith("DELETE /threads/"):
            return httpx.Response(204)
        was_there, self.is_there = self.is_there, False
        return httpx.Response(202 if was_there else 404, json={"detail": "gone"})

    def _read(self, call: str) -> httpx.Response:
        if call == "POST /chat":
            return httpx.Response(200, json=self._change(self._run()))
        return httpx.Response(200, json={"status": self._status, "status_reason": "No.", "hint": "Try."})

    def _run(self) -> Run:
        citation = {"doc_id": DOC, "verified": True, "quote": self._fact}
        answer = {"text": self._fact, "citations": [citation]}
        return {"run_id": "r", "thread_id": "t", "status": "completed", "answer": answer}


def checked(app: App, *more: str) -> tuple[int, list[dict[str, Any]]]:
    terminal = ReadTerminal(as_json=True)
    code = run(AnsweringApi(app.answer), terminal, "check", *more)
    return code, json.loads(terminal.out.getvalue())["steps"]


def test_all_is_well_and_nothing_is_left() -> None:
    app = App()
    code, steps = checked(app)
    assert (code, [step["ok"] for step in steps]) == (0, [True] * 5)
    assert not app.is_there
    assert "DELETE /threads/t" in app.sent


def other_words(run: Run) -> Run:
    return {**run, "answer": {**run["answer"], "text": "The documents do not say."}}


def not_verified(run: Run) -> Run:
    citation = {**run["answer"]["citations"][0], "verified": False}
    return {**run, "answer": {**run["answer"], "citations": [citation]}}


def from_elsewhere(run: Run) -> Run:
    citation = {**run["answer"]["citations"][0], "doc_id": "e" * 24}
    return {**run, "answer": {**run["answer"], "citations": [citation]}}


def failed(run: Run) -> Run:
    return {**run, "status": "failed", "answer": None, "error": "The model is away."}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (other_words, "lacks the value"),
        (not_verified, "no verified citation"),
        (from_elsewhere, "no verified citation"),
        (failed, "The model is away."),
    ],
)
def test_an_answer_that_is_not_right_fails_and_the_file_goes(
    change: Callable[[Run], Run], message: str
) -> None:
    app = App(change)
    code, steps = checked(app)
    assert (code, [step["ok"] for step in steps]) == (1, [True, True, True, False, True])
    assert message in steps[3]["detail"]
    assert not app.is_there


def test_a_file_that_is_refused_by_the_ingestion_ends_it() -> None:
    app = App(status="failed")
    code, steps = checked(app)
    assert (code, [step["ok"] for step in steps]) == (1, [True, True, False, True])
    assert steps[2]["detail"] == "No. Try."


def test_what_takes_too_long_is_given_up_and_the_file_goes() -> None:
    app = App(status="embedding")
    code, steps = checked(app, "--timeout", "0")
    assert (code, steps[2]["ok"]) == (1, False)
    assert "still embedding" in steps[2]["detail"]
    assert not app.is_there


def test_a_file_whose_upload_was_not_answered_is_found_and_goes() -> None:
    app = App()
    app.refusals["POST /documents"] = [httpx.Response(502, json={"detail": "The answer was lost."})]
    code, steps = checked(app)
    assert (code, [step["ok"] for step in steps]) == (1, [True, False, True])
    assert not app.is_there


def test_the_file_goes_though_the_thread_stays() -> None:
    app = App()
    app.refusals["DELETE /threads/t"] = [httpx.Response(503, json={"detail": "The table is away."})]
    code, steps = checked(app)
    assert (code, steps[-1]["ok"], app.is_there) == (1, False, False)
    assert "The table is away." in steps[-1]["detail"]


def test_a_service_that_is_away_for_a_moment_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.check._LOOK_EVERY_S", 0)
    app = App()
    app.refusals[f"DELETE /documents/{DOC}"] = [httpx.Response(502, json={"detail": "Away."})] * 2
    code, steps = checked(app)
    assert (code, steps[-1]["ok"], app.is_there) == (0, True, False)


@pytest.mark.parametrize(("status", "clearing_s"), [(403, 60), (502, 0)])
def test_a_file_that_cannot_be_deleted_is_named(
    status: int, clearing_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.check._CLEARING_S", clearing_s)
    app = App()
    app.refusals[f"DELETE /documents/{DOC}"] = [httpx.Response(status, json={"detail": "Not now."})]
    code, steps = checked(app, "--timeout", "0")
    assert (code, steps[-1]["ok"]) == (1, False)
    assert re.search(r"groundwork-check-\w+\.md may still exist. Not now", steps[-1]["detail"])


def test_what_the_app_cannot_reach_is_named_and_nothing_is_sent() -> None:
    app = App()
    failed = {"status": "unavailable", "failed": {"search": "NetworkError"}}
    app.refusals["GET /health/ready"] = [httpx.Response(503, json=failed)]
    code, steps = checked(app)
    assert (code, [step["ok"] for step in steps]) == (1, [False, True])
    assert "search (NetworkError)" in steps[0]["detail"]
    assert "POST /documents" not in app.sent
