"""The command line with the running stack, as used by people and scripts."""

import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from cli.__main__ import main
from local.run_all.stack import ROOT, LocalStack
from samples.acl import ANNA
from samples.questions import FIRST_QUESTION
from tests.e2e.cutting_proxy import CuttingProxy
from tests.e2e.stack_client import HANG_GUARD_S, pdf_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

# This question is answered with sub-agents.
LONG = "Compare the revenue in the annual report 2023 and the annual report 2024."
AMBIGUOUS = "What was the total revenue according to the annual report?"


def environment(stack: LocalStack, **more: str) -> dict[str, str]:
    variables = {
        "GROUNDWORK_URL": stack.base_url,
        "GROUNDWORK_TOKEN": stack.token(ANNA),
        "GROUNDWORK_HTTP_PORT": str(stack.ports.http),
        "GROUNDWORK_DATA": str(stack.data),
        "XDG_CONFIG_HOME": str(stack.data / "config"),
        "XDG_STATE_HOME": str(stack.data / "state"),
    }
    return {**os.environ, **variables, **more}


def run(stack: LocalStack, module: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env=environment(stack, **more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def run_here(stack: LocalStack, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, because thirty starts of Python take ten seconds."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name, value in environment(stack, **more).items():
            patch.setenv(name, value)
        code = main(arguments)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def result(stack: LocalStack, *arguments: str) -> Any:
    """Return the JSON of a successful command."""
    done = run_here(stack, *arguments, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("work") / "Müller's files"
    (path / "deep").mkdir(parents=True)
    (path / "ferry.pdf").write_bytes(pdf_of("Ferries", "The ferry to Ostholm leaves at 6:40 every morning."))
    (path / "deep" / "ferry.pdf").write_bytes(pdf_of("Ferries", "The ferry to Westholm leaves at noon."))
    (path / "deep" / "tool.exe").write_bytes(b"MZ")
    (path / ".hidden.txt").write_bytes(b"hidden")
    return path


def test_a_folder_is_uploaded_asked_about_listed_and_not_sent_again(stack: LocalStack, folder: Path) -> None:
    upload = run(
        stack, "cli", "upload", str(folder), "--project", "ferries", "--acl", "engineering", "--json"
    )
    outcomes = {outcome["path"]: outcome for outcome in json.loads(upload.stdout)}
    assert {path: outcome["status"] for path, outcome in outcomes.items()} == {
        "Müller's files/deep/ferry.pdf": "ready",
        "Müller's files/deep/tool.exe": "refused",
        "Müller's files/ferry.pdf": "ready",
    }
    assert ".exe" in outcomes["Müller's files/deep/tool.exe"]["reason"]
    assert upload.returncode == 1

    answer = run(stack, "cli", "ask", "When does the ferry to Ostholm leave?")
    assert answer.returncode == 0, answer.stderr
    assert "6:40" in answer.stdout
    assert "ferry.pdf, page 1, published by Anna Bergqvist (verified)" in answer.stdout

    listed = result(stack, "documents", "--project", "ferries")
    assert [document["filename"] for document in listed] == ["ferry.pdf", "ferry.pdf"]

    again = run_here(stack, "upload", str(folder / "deep" / ".."), "--acl", "engineering")
    assert "(2 were already there)" in again.stdout, again.stderr
    doc_id = outcomes["Müller's files/ferry.pdf"]["doc_id"]
    assert result(stack, "documents", "access", doc_id, "--private")["acl"] in ([], ["anna"])
    corrected = result(stack, "documents", "edit", doc_id, "--title", "Timetable", "--tag", "ferry")
    assert (corrected["title"], corrected["tags"]) == ("Timetable", ["ferry"])
    ambiguous = run_here(stack, "documents", "show", "ferry.pdf")
    assert (ambiguous.returncode, doc_id in ambiguous.stderr) == (2, True)
    deletions = result(stack, "documents", "delete", *(one["doc_id"] for one in listed), "--yes")
    assert {one["status"] for one in deletions} == {"deleting"}


def test_an_unknown_reader_is_rejected_with_a_suggestion(stack: LocalStack, tmp_path: Path) -> None:
    file = tmp_path / "tram.txt"
    file.write_text("The tram to Nordholm leaves at 8:15.")
    (rejected,) = json.loads(run_here(stack, "upload", str(file), "--acl", "Ben Okafro", "--json").stdout)
    assert (rejected["status"], "'Ben Okafro'" in rejected["reason"]) == ("refused", True)

    (document,) = result(stack, "upload", str(file))
    done = run_here(
        stack, "documents", "access", document["doc_id"], "--acl", "Ben Okafro", "--acl", "engineering"
    )
    assert done.returncode != 0
    assert "No known person or group has the name 'Ben Okafro'" in done.stderr
    assert "Did you mean Ben" in done.stderr
    assert result(stack, "documents", "access", document["doc_id"])["acl"] in ([], ["anna"])
    result(stack, "documents", "delete", document["doc_id"], "--yes")


def test_a_table_is_ready_when_its_new_hints_are_applied(stack: LocalStack, tmp_path: Path) -> None:
    table, hints = tmp_path / "fares.csv", tmp_path / "fares.csv.tables.yaml"
    table.write_text("Harbour,Fare\nOstholm,120\n")
    (before,) = result(stack, "upload", str(table))
    hints.write_text("tables: 7\n")
    (after,) = result(stack, "upload", str(hints))
    assert (after["doc_id"], after["status"]) == (before["doc_id"], "ready")
    assert "fares.csv.tables.yaml" in after["reason"]  # a warning of the ingestion that has read the hints
    result(stack, "documents", "delete", before["doc_id"], "--yes")


def test_an_answer_survives_connections_that_break(stack: LocalStack) -> None:
    before = ids_of_threads(stack)
    with CuttingProxy(stack.ports.http, [900, 500, 1500]) as proxy:
        answer = run_here(stack, "ask", FIRST_QUESTION.text, GROUNDWORK_URL=proxy.url)
    assert answer.returncode == 0, answer.stderr
    assert "6.5 bar" in answer.stdout
    assert proxy.cuts == 3
    assert "The connection broke" in answer.stderr
    assert "continuing after event" in answer.stderr
    assert len(ids_of_threads(stack) - before) == 1


def ids_of_threads(stack: LocalStack) -> set[str]:
    """Return the ids of the newest threads."""
    return {thread["thread_id"] for thread in result(stack, "threads", "--limit", "10")}


def test_a_question_back_is_answered_at_the_terminal(stack: LocalStack) -> None:
    near, far = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "cli", "ask", AMBIGUOUS],
        cwd=ROOT, env=environment(stack, TERM="dumb"), stdin=far, stdout=subprocess.PIPE, stderr=far,
    ) as asking:  # fmt: skip
        os.close(far)
        read_until(near, "Number, or words:")
        os.write(near, b"the 2023 one\n")
        assert asking.stdout is not None
        answer = asking.stdout.read().decode()
        assert asking.wait(120) == 0
    os.close(near)
    assert "48.2 million" in answer


def test_a_question_back_that_nobody_answers_waits_for_another_command(stack: LocalStack) -> None:
    process = run(stack, "cli", "ask", AMBIGUOUS, "--json")
    assert process.returncode == 4, process.stderr
    waiting = json.loads(process.stdout)
    assert len(waiting["clarification"]["options"]) == 2
    refused = run_here(stack, "runs", "answer", waiting["run_id"], "7")
    assert (refused.returncode, "no option 7" in refused.stderr) == (2, True)
    answered = result(stack, "runs", "answer", waiting["run_id"], "2")
    assert answered["run_id"] == waiting["run_id"]
    assert answered["citations"]


def read_until(descriptor: int, words: str) -> str:
    seen, deadline = "", time.monotonic() + HANG_GUARD_S
    while words not in seen and time.monotonic() < deadline:
        seen += os.read(descriptor, 4096).decode(errors="replace")
    assert words in seen
    return seen


def test_an_interruption_cancels_the_run(stack: LocalStack) -> None:
    with subprocess.Popen(
        # A process in the background ignores SIGINT, and child processes would inherit this.
        ["env", "--default-signal=INT", sys.executable, "-u", "-m", "cli", "ask", LONG, "--deep"],
        cwd=ROOT, env=environment(stack), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as asking:  # fmt: skip
        assert asking.stderr is not None
        run_id = asking.stderr.readline().removeprefix("Run ").strip()
        asking.send_signal(signal.SIGINT)
        messages = asking.stderr.read()
        assert asking.wait(120) == 130, messages
    assert f"Run {run_id} is cancelled" in messages
    assert result(stack, "runs", "show", run_id)["status"] == "cancelled"


def test_threads_runs_search_and_memory_by_command(stack: LocalStack) -> None:
    answer = result(stack, "ask", FIRST_QUESTION.text, "--quiet")
    thread, run_id = answer["thread_id"], answer["run_id"]
    follow_up = result(stack, "ask", "And what is its weight?", "--thread", "last")
    assert follow_up["thread_id"] == thread
    assert result(stack, "threads", "rename", thread, "Pumps")["title"] == "Pumps"
    assert result(stack, "threads", "show", thread)[0]["question"] == FIRST_QUESTION.text
    assert result(stack, "runs", "rate", run_id, "5", "--comment", "Good.")["rating"] == 5
    assert result(stack, "search", "operating pressure", "--top", "2")[0]["filename"]
    assert result(stack, "status")["ready"] is True
    events = run_here(stack, "runs", "events", run_id, "--json").stdout.splitlines()
    assert json.loads(events[-1])["event"] == "complete"
    assert [json.loads(line)["id"] for line in events] == list(range(1, len(events) + 1))
    result(stack, "threads", "delete", thread, "--yes")
    assert run_here(stack, "threads", "show", thread).returncode == 2


def test_a_user_of_the_stack_signs_in_by_name(stack: LocalStack) -> None:
    signed_in = run_here(stack, "login", "--dev-user", "admin", GROUNDWORK_TOKEN="")
    assert signed_in.returncode == 0, signed_in.stderr
    for words in (("metrics", "quality"), ("metrics", "subagents")):
        process = run_here(stack, *words, "--json", GROUNDWORK_TOKEN="", GROUNDWORK_URL="")
        assert process.returncode == 0, process.stderr
        assert json.loads(process.stdout)["until"]
    assert run_here(stack, "logout").returncode == 0
    refused = run_here(stack, "whoami", GROUNDWORK_TOKEN="")
    assert (refused.returncode, "not signed in" in refused.stderr) == (2, True)


def test_everything_agrees_and_make_audit_says_so(stack: LocalStack) -> None:
    give_up = time.monotonic() + HANG_GUARD_S
    # Documents deleted by earlier tests may not be removed yet.
    while (audited := run(stack, "local.audit")).returncode != 0:
        assert time.monotonic() < give_up, audited.stdout + audited.stderr
        time.sleep(1)
    assert "Everything agrees" in audited.stdout
    refused = run_here(stack, "audit")
    assert (refused.returncode, "admin" in refused.stderr) == (2, True)
