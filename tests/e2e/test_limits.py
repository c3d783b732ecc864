"""Personal limits and idempotency keys on a running host: races, a kill in between, and reported values."""

import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from local.run_all.stack import LocalStack
from local.run_all.tokens import mint_token
from samples.acl import ANNA, SampleUser
from samples.questions import FIRST_QUESTION
from tests.e2e.stack_client import client_of, eventually
from tests.e2e.streams.wire import frames_of
from tests.e2e.sub_agents.hosts import configured

pytestmark = [pytest.mark.e2e, pytest.mark.attack("floods")]
QUESTION = {"question": FIRST_QUESTION.text}


def person(stack: LocalStack, name: str) -> httpx.Client:
    """Return a client for a new person, unknown to other tests, with Anna's rights."""
    user = SampleUser(f"{name}-{uuid.uuid4().hex[:8]}", name, ANNA.department, ANNA.groups)
    return client_of(stack, mint_token(user, stack.secrets.token_secret))


def ask(client: httpx.Client, key: str | None = None, **changes: Any) -> httpx.Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    return client.post("/chat", json={**QUESTION, **changes}, headers=headers)


def test_ten_at_once_under_one_key_are_one_run(stack: LocalStack) -> None:
    with person(stack, "twins") as client, ThreadPoolExecutor(10) as threads:
        answers = list(threads.map(lambda _: ask(client, "same"), range(10)))
        assert {one.status_code for one in answers} == {200}
        assert len({one.headers["x-run-id"] for one in answers}) == 1
        assert len({one.content for one in answers}) == 1
        assert "event: complete" in answers[0].text
        (thread,) = client.get("/threads").json()["threads"]
        assert thread["turn_count"] == 1
        assert ask(client, "same", deep=True).status_code == 422


def test_a_repeat_after_a_kill_goes_on_with_the_run(stack: LocalStack) -> None:
    with person(stack, "killed") as client:
        with client.stream("POST", "/chat", json=QUESTION, headers={"Idempotency-Key": "k"}) as response:
            run_id = response.headers["x-run-id"]
            first = next(response.iter_raw())
            stack.kill_host()
        stack.start_host()
        again = ask(client, "k")
        assert again.headers["x-run-id"] == run_id
        assert again.headers["idempotency-replayed"] == "true"
        seen = frames_of(first)
        assert frames_of(again.content)[: len(seen)] == seen
        assert "event: complete" in again.text


@pytest.fixture(name="strict", scope="module")
def make_strict(stack: LocalStack) -> Iterator[LocalStack]:
    with configured(stack, RATE_LIMIT_PER_MINUTE="20", MAX_CONCURRENT_RUNS="2") as strict:
        yield strict


def test_more_runs_than_allowed_wait_their_turn(strict: LocalStack) -> None:
    with person(strict, "many") as client, ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda _: ask(client, stream=False), range(6)))
        assert sorted(one.status_code for one in answers)[:2] == [200, 200]
        refused = [one for one in answers if one.status_code == 429]
        assert refused
        assert {one.json()["title"] for one in refused} == {"TooManyRunsError"}
        assert all(int(one.headers["retry-after"]) > 0 for one in refused)
        # All runs have ended. Each slot is released at the same time as the last event is sent.
        eventually(lambda: ask(client, stream=False).status_code == 200)


def test_more_calls_than_allowed_are_refused_until_one_comes_back(strict: LocalStack) -> None:
    with person(strict, "fast") as client, person(strict, "other") as other:
        query = {"query": "pressure", "top_k": 1}
        began, accepted_count = time.monotonic(), 0
        while (refused := client.post("/search", json=query)).status_code == 200:
            accepted_count += 1
        # Twenty requests are allowed at once, and one more every three seconds that the loop takes.
        assert 20 <= accepted_count <= 21 + (time.monotonic() - began) / 3
        assert refused.status_code == 429
        assert refused.json()["title"] == "TooManyRequestsError"
        assert refused.headers["ratelimit-remaining"] == "0"
        wait_s = int(refused.headers["retry-after"])
        assert 1 <= wait_s <= 3
        assert client.get("/threads").status_code == 200  # cheap requests are not counted
        assert other.post("/search", json=query).status_code == 200
        time.sleep(wait_s)
        assert client.post("/search", json=query).status_code == 200
