"""Feedback and quality metrics through the whole stack: a user rates and opens, an administrator reads."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from azure.data.tables import TableServiceClient

from local.run_all.stack import LocalStack
from local.run_all.tokens import mint_token
from samples.acl import BEN
from tests.e2e.stack_client import ask, client_of, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

QUIET_S = 1.0  # data recorded after the last event of a run arrives within some hundredths of a second
WORDS = "The drawing on page 4 was what I needed."


@pytest.fixture(name="administrator")
def make_administrator(stack: LocalStack) -> Iterator[httpx.Client]:
    with client_of(stack, mint_token(BEN, stack.secrets.token_secret, roles=("admin",))) as client:
        yield client


def measured(administrator: httpx.Client, **query: str) -> dict[str, Any]:
    response = administrator.get("/metrics/quality", params={"hours": "1", **query})
    assert response.status_code == 200, response.text
    metrics: dict[str, Any] = response.json()
    return metrics


def measured_at_last(
    administrator: httpx.Client, is_there: Callable[[dict[str, Any]], bool], **query: str
) -> dict[str, Any]:
    """Return the metrics once they include the data that is recorded after an answer's last event."""

    def read_metrics() -> dict[str, Any] | None:
        metrics = measured(administrator, **query)
        return metrics if is_there(metrics) else None

    return eventually(read_metrics)


def settled(administrator: httpx.Client, **query: str) -> dict[str, Any]:
    """Return the metrics once questions of other tests, which share this stack, no longer change them."""
    metrics = measured(administrator, **query)
    while True:
        time.sleep(QUIET_S)
        last, metrics = metrics, measured(administrator, **query)
        if metrics["answers"] == last["answers"]:
            return metrics


def rows_with(stack: LocalStack, words: str) -> list[str]:
    """Return the tables that contain these words."""
    with TableServiceClient.from_connection_string(stack.storage_connection_string) as service:
        return [
            table.name
            for table in service.list_tables()
            if any(words in str(dict(row)) for row in service.get_table_client(table.name).list_entities())
        ]


def test_a_rated_and_opened_answer_counts_and_its_words_go_with_the_thread(
    stack: LocalStack, anna: httpx.Client, administrator: httpx.Client
) -> None:
    before = settled(administrator)
    run = ask(anna)
    after = measured_at_last(administrator, lambda metrics: metrics["answers"] != before["answers"])
    assert after["answers"]["answered"] == before["answers"]["answered"] + 1
    assert after["measures"]["citation_accuracy"]["of"] == before["measures"]["citation_accuracy"][
        "of"
    ] + len(run["answer"]["citations"])
    assert after["times"]["first_token_p50_ms"] is not None
    assert after["times"]["latency_p95_ms"] >= after["times"]["first_token_p50_ms"]

    path = f"/runs/{run['run_id']}"
    feedback = {"rating": 5, "thumb": "up", "reasons": ["helpful"], "comment": WORDS}
    assert anna.put(f"{path}/feedback", json=feedback).status_code == 200
    for _ in range(2):
        assert anna.post(f"{path}/openings", json={"n": 1}).status_code == 204
    rated = measured(administrator)
    assert rated["ratings"]["distribution"][4] == before["ratings"]["distribution"][4] + 1
    assert rated["ratings"]["reasons"]["helpful"] == before["ratings"]["reasons"].get("helpful", 0) + 1
    opened = [metrics["measures"]["click_through_rate"] for metrics in (after, rated)]
    shares = [round((rate["value"] or 0) * rate["of"]) for rate in opened]
    assert shares[1] == shares[0] + 1
    messages = anna.get(f"/threads/{run['thread_id']}/messages").json()["messages"]
    assert [message["feedback"]["comment"] for message in messages] == [WORDS]

    assert rows_with(stack, WORDS) == ["runs"]
    assert anna.delete(f"/threads/{run['thread_id']}").status_code == 204
    eventually(lambda: not rows_with(stack, WORDS))
    assert measured(administrator)["ratings"]["rated"] == rated["ratings"]["rated"]
