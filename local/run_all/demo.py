"""`make demo`: five questions, each asked by two users with different rights, and proof for every answer."""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from local.run_all.api_client import ApiClient, Reply
from local.run_all.conversation import print_citations
from local.run_all.proof import Finding, SampleTexts, check_reply
from local.run_all.sample_documents import Show, show_last_bar, upload_samples, wait_until_ready
from local.run_all.stack import LocalStack
from local.run_all.stack_settings import FREE_PORTS, StackSettings
from samples.acl import SAMPLE_USERS, SampleUser, readable_by
from samples.questions import DEMO_QUESTIONS, SampleQuestion


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
            bring_samples(stack, show_last_bar)
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
    """What was asked and answered, and what is wrong with it."""
    reads = len(readable_by(asked.user))
    print(
        f"{asked.question.query_type}  {asked.user.user_id} (may read {reads} documents): "
        f"{asked.question.text}"
    )
    print("\n".join(f"  {line}" for line in asked.reply.text.strip().splitlines() if line.strip()))
    print_citations(asked.reply)
    verdict = "abstained, as it must" if asked.reply.abstained else f"{len(asked.reply.citations)} citations"
    problems = "; ".join(finding.text for finding in asked.findings)
    print(f"  => {'WRONG: ' + problems if problems else 'ok, ' + verdict} ({asked.seconds:.1f} s)\n")


def conclude(asked: list[Asked]) -> int:
    """The last line, and the exit code."""
    wrong = sum(1 for one in asked if one.findings)
    citations = sum(len(one.reply.citations) for one in asked)
    print(
        f"{len(asked)} answers, {citations} citations checked against the documents, "
        f"{sum(1 for one in asked if one.reply.abstained)} abstentions, {wrong} wrong."
    )
    return 1 if wrong else 0
