"""The whole stack from the outside: samples, new documents, runs read later, two concurrent stacks."""

import json
from pathlib import Path

import httpx
import psutil
import pytest

from local.run_all.api_client import ApiClient
from local.run_all.demo import ask_one
from local.run_all.proof import SampleTexts
from local.run_all.stack import LocalStack
from samples.acl import ANNA, BEN, SAMPLE_USERS, SampleUser
from samples.questions import DEMO_QUESTIONS, FIRST_QUESTION, SampleQuestion
from tests.e2e.stack_client import HANG_GUARD_S, drop, pdf_of, post_chat, wait_until_ended
from tests.e2e.stack_fixture import environment_without_model, settings_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.mark.parametrize("user", SAMPLE_USERS, ids=lambda user: user.user_id)
@pytest.mark.parametrize(
    "question", [FIRST_QUESTION, *DEMO_QUESTIONS], ids=lambda question: question.text[:30].replace(" ", "-")
)
def test_a_sample_question_is_answered_with_proof_and_within_rights(
    stack: LocalStack, question: SampleQuestion, user: SampleUser
) -> None:
    result = ask_one(stack, question, user, SampleTexts(stack.data / "samples"))
    assert [finding.text for finding in result.findings] == [], result.reply.text


def test_a_pdf_of_ones_own_is_answerable_without_a_restart(stack: LocalStack) -> None:
    fact = "The sundial in the yard of the Ludlow depot was gilded in 1937 for 68 guineas."
    drop(stack, "sundial-report.pdf", pdf_of("Sundial Report", fact))
    assert wait_until_ended(stack, "sundial-report.pdf")["status"] == "ready"
    question = "For how many guineas was the sundial gilded?"
    reply = ApiClient(stack.base_url, stack.token(ANNA)).ask(question)
    assert "68 guineas" in reply.text
    assert [(cited["filename"], cited["page_number"]) for cited in reply.citations] == [
        ("sundial-report.pdf", 1)
    ]
    of_ben = ApiClient(stack.base_url, stack.token(BEN)).ask(question)
    assert "68 guineas" not in of_ben.text
    assert "sundial-report.pdf" not in {cited["filename"] for cited in of_ben.citations}
    assert "sundial-report" not in of_ben.everything_seen


def test_a_run_can_be_started_and_read_later(stack: LocalStack) -> None:
    headers = {"Authorization": f"Bearer {stack.token(ANNA)}", "Prefer": "respond-async"}
    started = httpx.post(
        f"{stack.base_url}/api/chat",
        json={"question": FIRST_QUESTION.text},
        headers=headers,
        timeout=HANG_GUARD_S,
    )
    assert started.status_code == 202
    run_id = started.json()["run_id"]
    assert started.headers["location"] == f"/api/runs/{run_id}"
    events = list(ApiClient(stack.base_url, stack.token(ANNA)).resume(run_id, 0))
    assert events[-1].name == "complete"
    of_ben = httpx.get(
        f"{stack.base_url}/api/runs/{run_id}",
        headers={"Authorization": f"Bearer {stack.token(BEN)}"},
        timeout=HANG_GUARD_S,
    )
    assert of_ben.status_code == 404


def test_no_key_stands_in_a_command_line(stack: LocalStack) -> None:
    processes = psutil.Process().children(recursive=True)
    assert len(processes) >= 4, "host, worker, search and model server"
    lines = "\n".join(" ".join(process.cmdline()) for process in processes)
    for key in (stack.secrets.search_key, stack.secrets.model_key, stack.secrets.token_secret):
        assert key not in lines


@pytest.mark.nightly
def test_two_stacks_run_side_by_side_and_share_nothing(stack: LocalStack, tmp_path: Path) -> None:
    with LocalStack(settings_for(tmp_path / "second"), environment=environment_without_model()) as second:
        drop(second, "lonely.md", b"# Lonely\n\nThe second stack has a ferret called Biscuit.\n")
        assert wait_until_ended(second, "lonely.md")["status"] == "ready"
        listed = ApiClient(second.base_url, second.token(ANNA)).get("/api/documents")["documents"]
        assert [document["filename"] for document in listed] == ["lonely.md"]
        body = json.dumps({"question": "What is the ferret called?"}).encode()
        assert post_chat(second, body, stack.token(ANNA)).status_code == 401
        first = ApiClient(stack.base_url, stack.token(ANNA)).get("/api/documents?limit=100")["documents"]
        assert "lonely.md" not in [document["filename"] for document in first]
