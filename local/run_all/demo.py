"""`make demo`: five questions, each asked by two users with different rights, and proof for every answer."""

import tempfile
import textwrap
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from local.run_all.api_client import ApiClient, Reply
from local.run_all.proof import Finding, SampleTexts, check_reply
from local.run_all.sample_documents import ProgressBar, Show, upload_samples, wait_until_ready
from local.run_all.stack import LocalStack
from local.run_all.stack_settings import FREE_PORTS, StackSettings
from samples.acl import ACCESS, SAMPLE_USERS, SampleUser, readable_by
from samples.questions import DEMO_QUESTIONS, SampleQuestion

SHOWN_LINES = 4
SHOWN_CHARACTERS = 160


@dataclass(frozen=True)
class Asked:
    """One question as one user asked it, and what is wrong with the answer."""

    question: SampleQuestion
    user: SampleUser
    reply: Reply
    seconds: float
    findings: list[Finding]


def run_demo() -> int:
    """Start a stack of its own, ask, report, stop. Returns the exit code: 0 = everything proved."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="groundwork-demo-", ignore_cleanup_errors=True) as folder:
        with LocalStack(StackSettings(FREE_PORTS, Path(folder))) as stack:
            print(f"Model: {stack.model.description}")
            bring_samples(stack, ProgressBar())
            print(f"Ready after {time.monotonic() - started:.1f} s.\n")
            asked = ask_all(stack)
        for one in asked:
            report(one)
    return conclude(asked)


def bring_samples(stack: LocalStack, show: Show) -> None:
    """Upload the samples and wait until all can be asked about."""
    upload_samples(stack)
    wait_until_ready(stack, show)


def ask_all(stack: LocalStack) -> list[Asked]:
    """Every demo question as every sample user."""
    texts = SampleTexts(stack.data / "samples")
    return [ask_one(stack, question, user, texts) for question in DEMO_QUESTIONS for user in SAMPLE_USERS]


def ask_one(stack: LocalStack, question: SampleQuestion, user: SampleUser, texts: SampleTexts) -> Asked:
    """One question as one user, checked."""
    started = time.monotonic()
    reply = ApiClient(stack.base_url, stack.token(user)).ask(question.text)
    seconds = time.monotonic() - started
    findings = check_reply(reply, user, question.expectation(user), texts)
    return Asked(question, user, reply, seconds, findings)


def report(asked: Asked) -> None:
    """What was asked and the beginning of the answer, where it comes from, and what is wrong with it."""
    reads = len(readable_by(asked.user))
    if asked.user == SAMPLE_USERS[0]:
        print(f"{asked.question.query_type}: {asked.question.text}\n")
    print(f"  {asked.user.user_id}, who may read {reads} of {len(ACCESS)} documents ({asked.seconds:.1f} s):")
    lines = [line.strip() for line in asked.reply.text.splitlines() if line.strip()]
    for line in lines[:SHOWN_LINES]:
        print(textwrap.indent(textwrap.shorten(line, SHOWN_CHARACTERS, placeholder=" ..."), "  | "))
    if len(lines) > SHOWN_LINES:
        print(f"  | ... {len(lines) - SHOWN_LINES} more lines")
    print(f"  {_verdict(asked)}\n")


def _verdict(asked: Asked) -> str:
    if asked.findings:
        return "WRONG: " + "; ".join(finding.text for finding in asked.findings)
    if asked.reply.abstained:
        return "ok: abstains, as it must"
    places = Counter(
        f"{cited['filename']} p. {cited['page_number']}" if cited.get("page_number") else cited["filename"]
        for cited in asked.reply.citations
    )
    shown = ", ".join(f"{place} ({count})" if count > 1 else place for place, count in places.items())
    return (
        f"ok: {len(asked.reply.citations)} citations proved: {shown}" if shown else "ok: lists, cites nothing"
    )


def conclude(asked: list[Asked]) -> int:
    """The last line, and the exit code."""
    wrong = sum(1 for one in asked if one.findings)
    citations = sum(len(one.reply.citations) for one in asked)
    print(
        f"{len(asked)} answers, {citations} citations checked against the documents, "
        f"{sum(1 for one in asked if one.reply.abstained)} abstentions, {wrong} wrong."
    )
    return 1 if wrong else 0
