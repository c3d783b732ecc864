"""Summaries through the whole stack: of two documents, with a foreign document, and with a dying host."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from azure.storage.blob import BlobServiceClient

from local.run_all.demo import documents_of
from local.run_all.stack import LocalStack
from samples.acl import ANNA, BEN, SampleUser
from tests.e2e.stack_client import eventually
from tests.e2e.sub_agents.hosts import configured

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SLOW_MODEL = {"CHAT_MODEL": "groundwork-extractive@ttft=700", "SUMMARY_WINDOW_TOKENS": "300"}


def id_of(stack: LocalStack, user: SampleUser, filename: str) -> str:
    (doc_id,) = [one["doc_id"] for one in documents_of(stack, user) if one["filename"] == filename]
    return str(doc_id)


def has_ended(view: dict[str, Any]) -> bool:
    return bool(view["status"] != "running")


def wait_for(caller: httpx.Client, summary_id: str, done: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return the first view of the summary for which the condition holds."""

    def find_view() -> dict[str, Any] | None:
        view: dict[str, Any] = caller.get(f"/summaries/{summary_id}").json()
        return view if done(view) else None

    return eventually(find_view)


@pytest.fixture(scope="module")
def slow_stack(stack: LocalStack) -> Iterator[LocalStack]:
    """Yield the same stack with a slow model and many small windows."""
    with configured(stack, **SLOW_MODEL) as running:
        yield running


def quotes_are_on_their_pages(caller: httpx.Client, result: dict[str, Any]) -> None:
    """Check that a search within the cited document finds the block of each quotation, on the cited page."""
    for citation in result["citations"]:
        assert citation["verified"]
        body = {"query": citation["quote"], "top_k": 50, "filters": {"doc_id": citation["doc_id"]}}
        hits = caller.post("/search", json=body).json()["results"]
        (block,) = [hit for hit in hits if hit["block_id"] == citation["block_id"]]
        # A quotation may consist of a table row and its header.
        assert all(line in block["content"] for line in citation["quote"].splitlines())
        assert block["page_number"] == citation["page_number"]


def test_two_documents_are_summarised_and_a_foreign_one_is_not_found(
    stack: LocalStack, anna: httpx.Client, ben: httpx.Client
) -> None:
    manual, report = id_of(stack, ANNA, "heron-400-manual.pdf"), id_of(stack, ANNA, "annual-report-2024.pdf")
    foreign = id_of(stack, BEN, "leave-policy.pdf")
    order = {"doc_ids": [manual, foreign, report], "focus": "What is the maximum operating pressure?"}
    response = anna.post(
        "/summaries", json=order, headers={"Prefer": "wait=60", "Idempotency-Key": "two-documents"}
    )
    assert response.status_code == 200, response.text
    view = response.json()
    result = view["result"]
    assert (view["status"], view["progress"]) == ("completed", 1.0)
    assert [one["status"] for one in result["documents"]] == ["done", "not_found", "done"]
    assert result["documents"][1]["filename"] == ""
    assert result["warnings"] == [f"There is no document {foreign!r}."]
    assert "(Source: heron-400-manual.pdf, S. " in result["summary"]
    assert "(Source: annual-report-2024.pdf, S. " in result["summary"]
    assert "6.5 bar" in result["key_findings"][0]["text"]
    assert any(one["unit"] == "bar" for one in result["metrics"])
    assert result["tags"]
    quotes_are_on_their_pages(anna, result)

    again = anna.post("/summaries", json=order, headers={"Idempotency-Key": "two-documents"})
    assert (again.status_code, again.json()["summary_id"]) == (200, view["summary_id"])
    other = anna.post("/summaries", json={"doc_ids": [report]}, headers={"Idempotency-Key": "two-documents"})
    assert other.status_code == 422
    path = f"/summaries/{view['summary_id']}"
    for method, target in (("GET", path), ("POST", f"{path}/cancel"), ("DELETE", path)):
        assert ben.request(method, target).status_code == 404
    assert anna.post(f"{path}/cancel").status_code == 409
    assert anna.delete(path).status_code == 204
    assert anna.get(path).status_code == 404
    with BlobServiceClient.from_connection_string(stack.storage_connection_string) as blobs:
        for container, prefix in (("work", f"runs/{view['summary_id']}"), ("run-log", view["summary_id"])):
            client = blobs.get_container_client(container)
            assert list(client.list_blob_names(name_starts_with=prefix)) == []


def test_a_host_killed_in_the_middle_completes_the_summary(
    slow_stack: LocalStack, anna: httpx.Client
) -> None:
    doc_ids = [id_of(slow_stack, ANNA, name) for name in ("heron-400-manual.pdf", "annual-report-2024.pdf")]
    response = anna.post("/summaries", json={"doc_ids": doc_ids})
    assert response.status_code == 202
    assert response.headers["Location"] == response.json()["status_url"]
    summary_id = response.json()["summary_id"]
    before = wait_for(anna, summary_id, lambda view: sum(c["windows_done"] for c in view["children"]) >= 2)
    assert before["status"] == "running"
    assert 0 < before["progress"] < 1
    slow_stack.kill_host()
    slow_stack.start_host()
    view = wait_for(anna, summary_id, has_ended)
    result = view["result"]
    assert view["status"] == "completed"
    assert [one["status"] for one in result["documents"]] == ["done", "done"]
    assert [child["windows"] for child in view["children"]] == [
        child["windows_done"] for child in view["children"]
    ]
    assert {one["citation"]["doc_id"] for one in result["key_findings"]} == set(doc_ids)
    quotes_are_on_their_pages(anna, result)


def test_a_summary_is_cancelled_while_it_is_at_work(slow_stack: LocalStack, anna: httpx.Client) -> None:
    order = {"doc_ids": [id_of(slow_stack, ANNA, "heron-400-manual.pdf")]}
    summary_id = anna.post("/summaries", json=order).json()["summary_id"]
    wait_for(anna, summary_id, lambda view: view["children"][0]["windows"] > 0)
    for _ in range(2):
        cancelled = anna.post(f"/summaries/{summary_id}/cancel")
        assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    time.sleep(3)  # without the cancellation, the summary would have made progress
    assert anna.get(f"/summaries/{summary_id}").json()["status"] == "cancelled"
