"""Questions that go on with the one before them in a thread, through the whole stack."""

from typing import Any

import httpx
import pytest

from local.run_all.stack import LocalStack
from samples.acl import ANNA
from tests.e2e.stack_client import HANG_GUARD_S

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def ask(stack: LocalStack, thread_id: str, question: str) -> dict[str, Any]:
    answered = httpx.post(
        f"{stack.base_url}/api/chat",
        json={"question": question, "thread_id": thread_id, "stream": False},
        headers={"Authorization": f"Bearer {stack.token(ANNA)}"},
        timeout=HANG_GUARD_S,
    )
    assert answered.status_code == 200, answered.text
    return dict(answered.json()["answer"])


def thread(stack: LocalStack) -> str:
    made = httpx.post(
        f"{stack.base_url}/api/threads",
        json={"title": "Follow-ups"},
        headers={"Authorization": f"Bearer {stack.token(ANNA)}"},
        timeout=HANG_GUARD_S,
    )
    assert made.status_code == 201, made.text
    return str(made.json()["thread_id"])


def test_a_fragment_asks_the_question_before_of_something_else(stack: LocalStack) -> None:
    thread_id = thread(stack)
    assert "48.2 million" in ask(stack, thread_id, "What was the revenue in the annual report 2023?")["text"]
    assert "53.7 million" in ask(stack, thread_id, "And 2024?")["text"]


def test_it_is_the_document_that_was_cited_before(stack: LocalStack) -> None:
    thread_id = thread(stack)
    ask(stack, thread_id, "What was the revenue in the annual report 2023?")
    assert "Tobias Renner" in ask(stack, thread_id, "Who wrote it?")["text"]


def test_a_pronoun_stands_for_what_was_spoken_of(stack: LocalStack) -> None:
    thread_id = thread(stack)
    ask(stack, thread_id, "What is the maximum operating pressure of the Heron 400?")
    answer = ask(stack, thread_id, "And what is its maximum operating pressure in bar?")
    assert "6.5 bar" in answer["text"]
    assert "heron-400-manual.pdf" in [citation["filename"] for citation in answer["citations"]]
