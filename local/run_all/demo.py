"""`make demo`: ask the demo questions as users with different rights, and check every answer."""

import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.answers import with_page_labels
from local.run_all.api_client import ApiClient, Reply, StreamEvent
from local.run_all.proof import Finding, SampleTexts, check_reply
from local.run_all.stack import DOCUMENTS_CONTAINER, LocalStack, upload_changed
from local.run_all.stack_settings import FREE_PORTS, CallRefusedError, StackError, StackSettings
from samples.acl import ACCESS, SAMPLE_USERS, SampleUser, readable_by
from samples.generate import generate
from samples.questions import DEMO_QUESTIONS, SampleQuestion

DISCARDING_STATES = ("restarted", "discarded")


class StreamPrinter:
    """A callback that prints answer tokens as they arrive. If a step restarts, it notes that the answer
    starts over.
    """

    def __init__(self) -> None:
        self._is_mid_line = False

    def __call__(self, event: StreamEvent) -> None:
        if event.name == "token":
            text = with_page_labels(event.data["text"])  # no event contains only a part of a source
            print(text, end="", flush=True)
            self._is_mid_line = not text.endswith("\n")
        elif event.name == "status" and event.data.get("state") in DISCARDING_STATES and self._is_mid_line:
            print("\n  (the answer starts over)")
            self._is_mid_line = False

    def finish(self) -> None:
        """End the current line, if any."""
        if self._is_mid_line:
            print(flush=True)


def print_citations(reply: Reply) -> None:
    """Print one line per citation: number, file, page, whether it is verified, and the quotation."""
    for citation in reply.citations:
        page = f", page {citation['page_number']}" if citation.get("page_number") else ""
        proof = "verified" if citation["verified"] else "NOT VERIFIED"
        print(f'  [{citation["n"]}] {citation["filename"]}{page} ({proof}): "{citation["quote"]}"')


READY_TIMEOUT_S = 300.0
POLL_S = 0.3
BAR_WIDTH = 30
Show = Callable[[int, int, str], None]


def upload_samples(stack: LocalStack) -> list[str]:
    """Generate the samples in the data folder, upload the new and changed ones, and return their names."""
    files = generate(stack.data / "samples")
    metadata: dict[Path, dict[str, str]] = {path: {"acl": ",".join(ACCESS[path.name])} for path in files}
    return upload_changed(stack.storage_connection_string, DOCUMENTS_CONTAINER, metadata)


def wait_until_ready(stack: LocalStack, show: Show) -> None:
    """Wait until all samples are ready. The status is polled as the sample users, who together can read every
    sample.

    Raises:
        StackError: if a document fails, a server exits or READY_TIMEOUT_S passes.
    """
    deadline = time.monotonic() + READY_TIMEOUT_S
    while True:
        stack.check()
        documents = _statuses(stack)
        _refuse_failed(documents)
        waiting = [name for name in sorted(ACCESS) if documents.get(name, {}).get("status") != "ready"]
        current = next((f"{name}: {documents[name]['status']}" for name in waiting if name in documents), "")
        show(len(ACCESS) - len(waiting), len(ACCESS), current)
        if not waiting:
            return
        if time.monotonic() > deadline:
            raise StackError(f"Not ready after {READY_TIMEOUT_S:.0f} s: {', '.join(waiting)}.")
        time.sleep(POLL_S)


def _statuses(stack: LocalStack) -> dict[str, dict[str, Any]]:
    statuses: dict[str, dict[str, Any]] = {}
    for user in SAMPLE_USERS:
        for document in documents_of(stack, user):
            if document["filename"] in readable_by(user):
                statuses[document["filename"]] = document
    return statuses


def documents_of(stack: LocalStack, user: SampleUser) -> list[dict[str, Any]]:
    """Return the documents that a user can read, or an empty list while the app responds with a server
    error.
    """
    api = ApiClient(stack.base_url, stack.token(user))
    try:
        return list(api.get("/api/documents?limit=100")["documents"])
    except CallRefusedError as refused:
        if refused.status < 500:
            raise
        # The API may fail while the first ingestion creates the indexes. The caller's deadline limits the
        # wait.
        return []


def _refuse_failed(documents: dict[str, dict[str, Any]]) -> None:
    for name, document in documents.items():
        if document.get("status") == "failed":
            raise StackError(f"{name} could not be ingested: {document.get('status_reason')}")


class ProgressBar:
    """Progress bar that is redrawn in place on a terminal, and printed once per change elsewhere."""

    def __init__(self) -> None:
        self._shown = -1

    def __call__(self, done: int, total: int, current: str) -> None:
        """Show that `done` of `total` items are ready, and the current item."""
        filled = BAR_WIDTH * done // total
        line = f"  [{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {done}/{total}  {current}"
        if sys.stdout.isatty():
            print(f"\r{line:<100.100}", end="\n" if done == total else "", flush=True)
        elif done != self._shown:
            print(line, flush=True)
        self._shown = done


SHOWN_LINES = 4
SHOWN_CHARACTERS = 160


@dataclass(frozen=True)
class Asked:
    """The reply to a question asked by one user, with the faults found in it."""

    question: SampleQuestion
    user: SampleUser
    reply: Reply
    seconds: float
    findings: list[Finding]


def run_demo() -> int:
    """Start a stack, ask all demo questions and print a report. Return 0 if no answer has a fault, otherwise
    1.
    """
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="groundwork-demo-", ignore_cleanup_errors=True) as folder:
        with LocalStack(StackSettings(FREE_PORTS, Path(folder))) as stack:
            print(f"Model: {stack.model.description}")
            bring_samples(stack, ProgressBar())
            print(f"Ready after {time.monotonic() - started:.1f} s.\n")
            answers = ask_all(stack)
        for one in answers:
            report(one)
    return conclude(answers)


def bring_samples(stack: LocalStack, show: Show) -> None:
    """Upload the samples and wait until all are ready."""
    upload_samples(stack)
    wait_until_ready(stack, show)


def ask_all(stack: LocalStack) -> list[Asked]:
    """Ask every demo question as every sample user, and return the checked replies."""
    texts = SampleTexts(stack.data / "samples")
    return [ask_one(stack, question, user, texts) for question in DEMO_QUESTIONS for user in SAMPLE_USERS]


def ask_one(stack: LocalStack, question: SampleQuestion, user: SampleUser, texts: SampleTexts) -> Asked:
    """Ask one question as one user and check the reply."""
    started = time.monotonic()
    reply = ApiClient(stack.base_url, stack.token(user)).ask(question.text)
    seconds = time.monotonic() - started
    findings = check_reply(reply, user, question.expectation(user), texts)
    return Asked(question, user, reply, seconds, findings)


def report(answer: Asked) -> None:
    """Print a question with the beginning of the answer, its sources and any faults."""
    reads = len(readable_by(answer.user))
    if answer.user == SAMPLE_USERS[0]:
        print(f"{answer.question.query_type}: {answer.question.text}\n")
    print(
        f"  {answer.user.user_id}, who may read {reads} of {len(ACCESS)} documents ({answer.seconds:.1f} s):"
    )
    lines = [line.strip() for line in with_page_labels(answer.reply.text).splitlines() if line.strip()]
    for line in lines[:SHOWN_LINES]:
        print(textwrap.indent(textwrap.shorten(line, SHOWN_CHARACTERS, placeholder=" ..."), "  | "))
    if len(lines) > SHOWN_LINES:
        print(f"  | ... {len(lines) - SHOWN_LINES} more lines")
    print(f"  {_verdict(answer)}\n")


def _verdict(answer: Asked) -> str:
    if answer.findings:
        return "WRONG: " + "; ".join(finding.text for finding in answer.findings)
    if answer.reply.abstained:
        return "ok: abstains, as expected"
    places = Counter(
        f"{cited['filename']} p. {cited['page_number']}" if cited.get("page_number") else cited["filename"]
        for cited in answer.reply.citations
    )
    places_text = ", ".join(f"{place} ({count})" if count > 1 else place for place, count in places.items())
    return (
        f"ok: {len(answer.reply.citations)} citations proved: {places_text}"
        if places_text
        else "ok: lists, cites nothing"
    )


def conclude(answers: list[Asked]) -> int:
    """Print the totals and return the exit code: 1 if any answer has a fault."""
    wrong = sum(1 for one in answers if one.findings)
    citations = sum(len(one.reply.citations) for one in answers)
    print(
        f"{len(answers)} answers, {citations} citations checked against the documents, "
        f"{sum(1 for one in answers if one.reply.abstained)} abstentions, {wrong} wrong."
    )
    return 1 if wrong else 0
