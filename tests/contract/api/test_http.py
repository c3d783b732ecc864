"""The HTTP API as seen by a client: answers, streams, and errors in a uniform format."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from samples.acl import ANNA, BEN
from samples.questions import FIRST_QUESTION
from tests.contract.api.described import Described
from tests.contract.api.every_call import call_everything
from tests.sample_app import SampleApp

pytestmark = pytest.mark.contract
HANG_GUARD_S = 120.0


@pytest.fixture(name="described", scope="module")
def make_described(app: SampleApp) -> Described:
    return Described(httpx.get(f"{app.base_url}/api/openapi.json", timeout=HANG_GUARD_S).json())


@pytest.fixture(name="anna", scope="module")
def make_anna(app: SampleApp, described: Described) -> Iterator[httpx.Client]:
    yield from client(app, app.token(ANNA), described)


@pytest.fixture(name="ben", scope="module")
def make_ben(app: SampleApp, described: Described) -> Iterator[httpx.Client]:
    yield from client(app, app.token(BEN), described)


@pytest.fixture(name="nobody", scope="module")
def make_nobody(app: SampleApp, described: Described) -> Iterator[httpx.Client]:
    yield from client(app, "not.a.token", described)


def client(app: SampleApp, token: str, described: Described) -> Iterator[httpx.Client]:
    """Yield a client whose responses are compared with the description."""
    with httpx.Client(
        base_url=f"{app.base_url}/api",
        headers={"Authorization": f"Bearer {token}"},
        timeout=HANG_GUARD_S,
        event_hooks={"response": [described.check]},
    ) as http_client:
        yield http_client


def stream(caller: httpx.Client, run_id: str, after: int | None = None) -> list[str]:
    headers = {} if after is None else {"Last-Event-ID": str(after)}
    answer = caller.get(f"/runs/{run_id}/events", headers=headers)
    assert answer.headers["content-type"].startswith("text/event-stream")
    return answer.text.split("\n\n")[:-1]


def assert_problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert (problem["status"], problem["title"]) == (status, code)
    assert problem["detail"]
    assert problem["hints"]
    return problem


def test_a_stream_can_be_read_again_from_any_event(anna: httpx.Client) -> None:
    response = anna.post("/chat", json={"question": FIRST_QUESTION.text})
    run_id = response.headers["x-run-id"]
    whole = response.text.split("\n\n")[:-1]
    assert [frame.split("\n")[0] for frame in whole] == [f"id: {n}" for n in range(1, len(whole) + 1)]
    assert stream(anna, run_id) == whole
    assert stream(anna, run_id, after=5) == whole[5:]
    seen = anna.get(f"/runs/{run_id}/events", headers={"Last-Event-ID": str(len(whole))})
    assert (seen.status_code, seen.content) == (204, b"")


def test_a_run_started_in_the_background_tells_where_it_stands(anna: httpx.Client) -> None:
    started = anna.post("/chat", json={"question": FIRST_QUESTION.text}, headers={"Prefer": "respond-async"})
    assert started.status_code == 202
    view = started.json()
    assert started.headers["location"] == f"/api/runs/{view['run_id']}"
    stream(anna, view["run_id"])
    ended = anna.get(f"/runs/{view['run_id']}").json()
    assert (ended["status"], ended["answer"]["abstained"]) == ("completed", False)
    assert ended["answer"]["citations"][0]["verified"] is True


def test_one_json_answer_is_to_be_had(anna: httpx.Client) -> None:
    answered = anna.post("/chat", json={"question": FIRST_QUESTION.text, "stream": False})
    assert answered.status_code == 200
    assert "6.5 bar" in answered.json()["answer"]["text"]


def test_a_run_of_somebody_else_is_not_there(anna: httpx.Client, ben: httpx.Client) -> None:
    run_id = anna.post("/chat", json={"question": "x", "stream": False}).json()["run_id"]
    for path in (f"/runs/{run_id}", f"/runs/{run_id}/events", "/runs/missing"):
        assert_problem(ben.get(path), 404, "NotFoundError")


@pytest.mark.parametrize("number", ["seven", "9" * 5000])
def test_a_last_event_id_that_is_no_number_is_refused(anna: httpx.Client, number: str) -> None:
    run_id = anna.post("/chat", json={"question": "x", "stream": False}).json()["run_id"]
    answer = anna.get(f"/runs/{run_id}/events", headers={"Last-Event-ID": number})
    assert_problem(answer, 400, "InvalidRequestError")


def test_documents_are_listed_and_filtered_within_rights(anna: httpx.Client, ben: httpx.Client) -> None:
    of_anna = {document["filename"] for document in anna.get("/documents").json()["documents"]}
    of_ben = {document["filename"] for document in ben.get("/documents").json()["documents"]}
    assert "memo-impeller-alloy.txt" in of_anna - of_ben
    assert "leave-policy.pdf" in of_ben - of_anna
    policies = ben.get("/documents", params={"document_type": "policy"}).json()
    assert [document["filename"] for document in policies["documents"]] == ["leave-policy.pdf"]
    assert anna.get("/documents", params={"limit": "1"}).json()["count"] == 1


def test_a_document_and_its_file_are_for_its_readers(anna: httpx.Client, ben: httpx.Client) -> None:
    listed = ben.get("/documents", params={"filename": "leave-policy.pdf"}).json()["documents"]
    doc_id = listed[0]["doc_id"]
    assert ben.get(f"/documents/{doc_id}").json()["title"] == listed[0]["title"]
    file = ben.get(f"/documents/{doc_id}/content")
    assert file.content.startswith(b"%PDF-")
    assert file.headers["content-type"] == "application/pdf"
    assert file.headers["x-content-type-options"] == "nosniff"
    for path in (f"/documents/{doc_id}", f"/documents/{doc_id}/content", "/documents/it's"):
        assert_problem(anna.get(path), 404, "DocumentNotFoundError")


def test_a_search_gives_passages_within_rights(anna: httpx.Client, ben: httpx.Client) -> None:
    query = {"query": "maximum operating pressure of the Heron 400", "top_k": 3}
    search_result = anna.post("/search", json=query).json()
    assert search_result["result_count"] == 3
    assert (search_result["results"][0]["filename"], search_result["results"][0]["page_number"]) == (
        "heron-400-manual.pdf",
        4,
    )
    assert all(
        hit["filename"] != "heron-400-manual.pdf" for hit in ben.post("/search", json=query).json()["results"]
    )
    limited = anna.post(
        "/search", json={**query, "filters": {"document_type": ["report", "price_list"]}}
    ).json()
    assert {hit["filename"].split("-")[0] for hit in limited["results"]} <= {"annual", "price"}
    unknown = anna.post("/search", json={**query, "filters": {"access_control_list": "*"}})
    assert "document_type" in assert_problem(unknown, 400, "InvalidQueryError")["hints"][0]


def test_health_needs_no_identity(nobody: httpx.Client) -> None:
    assert nobody.get("/health").json() == {"status": "ok"}
    assert nobody.get("/health/ready").json() == {"status": "ok", "failed": {}}


def test_examples_can_be_sent_as_they_stand(anna: httpx.Client, described: Described) -> None:
    for name in ("chat", "search", "create_thread", "mcp", "complete_chat", "make_upload_ticket"):
        (path, method), call = described.call_named(name)
        body = call["requestBody"]["content"]["application/json"]["example"]
        answer = anna.request(method, path, json=body)
        assert answer.status_code in (200, 201), (name, answer.text)


def test_every_call_answers_as_it_is_described(
    anna: httpx.Client, nobody: httpx.Client, app: SampleApp, described: Described
) -> None:
    app.put_in_workspace(ANNA.user_id, "notes.md")
    for administrator in client(app, app.token(BEN, "admin"), described):
        succeeded = call_everything(anna, nobody, administrator, described)
        everything = {operation["operationId"] for operation in described.operations()}
        # Not called are a stream that lasts STREAM_SECONDS, a route for the Bot Service, and an import from
        # the web.
        assert everything - succeeded == {"document_events", "receive_activity", "import_page"}
