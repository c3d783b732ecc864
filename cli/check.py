"""`check`: an end-to-end test of an app, which uploads a file, asks about it, checks the citation and deletes
the file.

The file contains a random fact, so an answer with this fact must come from the file. The file is always
deleted.
"""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from cli.api import Api, segment
from cli.commands import Call, app, option
from cli.errors import DONE, NOT_ALL_WELL, CommandError
from cli.terminal import Terminal

_LOOK_EVERY_S = 0.5
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"  # random codes contain no vowels, so that they form no real word
_GONE = 404
_BROKEN = 500
_UNAVAILABLE = 503
_CLEARING_S = 60  # time limit for deleting the file, long enough for a brief outage


@dataclass
class _Trial:
    """State and results of one test. Times are in seconds."""

    api: Api
    until: float
    station: str
    value: str
    was_sent: bool = False
    doc_id: str = ""
    thread_id: str = ""
    steps: list[dict[str, Any]] = field(default_factory=list)

    @property
    def filename(self) -> str:
        return f"groundwork-check-{self.station.lower()}.md"

    @property
    def text(self) -> str:
        sentence = f"The calibration value of station {self.station} is {self.value} millibar."
        return (
            f"# Station {self.station}\n\n{sentence}\n\nThis file was made by a check and is deleted by it.\n"
        )


@app.add("check")
def check(
    call: Call,
    *,
    timeout: Annotated[float, option("--timeout", "S", "Time limit for the whole test, in seconds")] = 300,
) -> int:
    """Upload a file, ask about it, check the citation, and delete the file."""
    station = "".join(secrets.choice(_LETTERS) for _ in range(6))
    value = f"{1000 + secrets.randbelow(9000)}.{secrets.randbelow(10)}"
    trial = _Trial(call.api, time.monotonic() + timeout, station, value)
    steps = (
        ("the app and what it needs answer", _ready),
        ("a file can be uploaded", _upload),
        ("it is ingested", _wait_until_ingested),
        ("a question about it is answered", _ask_and_verify),
    )
    try:
        all_well = all(_run_step(trial, call.terminal, name, step) for name, step in steps)
    finally:
        is_clean = _run_step(trial, call.terminal, "it is deleted with everything derived from it", _delete)
    if call.terminal.as_json:
        call.terminal.json({"url": call.api.url, "ok": all_well and is_clean, "steps": trial.steps})
    return DONE if all_well and is_clean else NOT_ALL_WELL


def _run_step(trial: _Trial, terminal: Terminal, name: str, step: Callable[[_Trial], str]) -> bool:
    began = time.monotonic()
    fault = ""
    try:
        detail = step(trial)
    except CommandError as failed:
        detail, fault = "", " ".join([str(failed), *failed.hints])
    seconds = round(time.monotonic() - began, 2)
    trial.steps.append({"step": name, "ok": not fault, "seconds": seconds, "detail": fault or detail})
    if not terminal.as_json:
        why = f": {fault or detail}" if fault or detail else ""
        terminal.say(
            f"{'failed' if fault else 'ok':<7}{seconds:>7.2f} s  {name}{why}", "red" if fault else ""
        )
    return not fault


def _ready(trial: _Trial) -> str:
    # The first call creates tables and indexes, without which a new deployment isn't ready.
    trial.api.call("GET", "/documents", params={"limit": 1})
    answered = trial.api.send("GET", "/health/ready", also=_UNAVAILABLE)
    if answered.status_code != _UNAVAILABLE:
        return ""
    missing = ", ".join(f"{name} ({error})" for name, error in answered.json()["failed"].items())
    raise CommandError(f"The app cannot reach: {missing}.")


def _upload(trial: _Trial) -> str:
    trial.was_sent = True
    files = {"file": (trial.filename, trial.text.encode(), "text/markdown")}
    trial.doc_id = str(trial.api.call("POST", "/documents", files=files)["doc_id"])
    return trial.filename


def _wait_until_ingested(trial: _Trial) -> str:
    while (document := trial.api.call("GET", f"/documents/{segment(trial.doc_id)}"))["status"] != "ready":
        if document["status"] == "failed":
            raise CommandError(str(document.get("status_reason")), str(document.get("hint") or ""))
        _wait(trial, f"it is still {document['status']}")
    return ""


def _ask_and_verify(trial: _Trial) -> str:
    question = f"What is the calibration value of station {trial.station}?"
    run = trial.api.call("POST", "/chat", json={"question": question, "stream": False})
    trial.thread_id = str(run["thread_id"])
    while run["status"] == "running":
        _wait(trial, "the question is not answered yet")
        run = trial.api.call("GET", f"/runs/{segment(run['run_id'])}")
    answer = run.get("answer") or {}
    proofs = [one for one in answer.get("citations", ()) if one["verified"] and one["doc_id"] == trial.doc_id]
    if run["status"] != "completed":
        raise CommandError(str(run.get("error") or f"The run is {run['status']}."))
    if trial.value not in answer["text"]:
        raise CommandError("The answer lacks the value stated in the file.")
    if not any(trial.value in proof["quote"] for proof in proofs):
        raise CommandError("The answer has no verified citation of the file.")
    return f"“{proofs[0]['quote']}”"


def _delete(trial: _Trial) -> str:
    # The clean-up gets at least _CLEARING_S seconds, even after the deadline of the test.
    trial.until = max(trial.until, time.monotonic() + _CLEARING_S)
    try:
        if trial.thread_id:
            trial.api.call("DELETE", f"/threads/{segment(trial.thread_id)}")
    finally:
        detail = _file_deleted(trial)
    return detail


def _file_deleted(trial: _Trial) -> str:
    doc_id = trial.doc_id or _find_upload(trial)
    if not doc_id:
        return "there was none"
    while True:
        try:
            trial.api.call("DELETE", f"/documents/{segment(doc_id)}")
        except CommandError as refused:
            if refused.status == _GONE:
                return ""
            is_ours = refused.status is not None and refused.status < _BROKEN
            if is_ours or time.monotonic() >= trial.until:
                raise CommandError(f"{trial.filename} may still exist. {refused}", *refused.hints) from None
        _wait(trial, f"{trial.filename} is still there")


def _find_upload(trial: _Trial) -> str:
    """Return the id of the uploaded file if the upload got no response, or "" if it can't be found. The list
    starts with documents in progress.
    """
    if not trial.was_sent:
        return ""
    listed = trial.api.call("GET", "/documents", params={"limit": 100})["documents"]
    return next((str(one["doc_id"]) for one in listed if one["filename"] == trial.filename), "")


def _wait(trial: _Trial, why: str) -> None:
    if time.monotonic() >= trial.until:
        raise CommandError(f"Timed out: {why}.")
    time.sleep(_LOOK_EVERY_S)
