"""A document's life through the running stack: uploaded, asked about, corrected,
shared, restricted, deleted.
"""

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from local.run_all.api_client import ApiClient
from local.run_all.stack import LocalStack
from samples.acl import ANNA, BEN, SampleUser
from shared.access.identity import sign_dev_token
from tests.e2e.stack_client import client_of, eventually, pdf_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

QUESTION = "How many barrels of cider did the press in Marston yield?"
FACT = "The press in Marston yielded 77 barrels of cider in 2023."


@pytest.fixture
def admin(stack: LocalStack) -> Iterator[httpx.Client]:
    claims = {"sub": "olga", "roles": ["admin"], "exp": int(time.time()) + 3600}
    with client_of(stack, sign_dev_token(claims, stack.secrets.token_secret)) as client:
        yield client


def send(client: httpx.Client, name: str, content: bytes, **fields: Any) -> dict[str, Any]:
    response = client.post("/documents", data=fields, files={"file": (name, content)})
    assert response.status_code == 202, response.text
    assert response.headers["location"] == f"/api/documents/{response.json()['doc_id']}"
    return dict(response.json())


def until_ended(client: httpx.Client, doc_id: str, version: int = 1) -> dict[str, Any]:
    """Return the document once the ingestion of this version, or of a later one, has ended."""

    def ended() -> dict[str, Any] | None:
        document = client.get(f"/documents/{doc_id}").json()
        has_ended = document["status"] in ("ready", "failed")
        return dict(document) if has_ended and (document["version"] or version) >= version else None

    return eventually(ended)


def ask(stack: LocalStack, user: SampleUser) -> str:
    return ApiClient(stack.base_url, stack.token(user)).ask(QUESTION).text


@pytest.fixture
def document(anna: httpx.Client) -> Iterator[dict[str, Any]]:
    """Yield a ready document of Anna's, which is deleted afterwards."""
    upload = send(anna, "cider report.pdf", pdf_of("Cider Report", FACT), project_id="orchard")
    assert (upload["filename"], upload["may_change"]) == ("cider report.pdf", True)
    yield until_ended(anna, upload["doc_id"])
    # Until all data of the document is deleted.
    eventually(lambda: anna.delete(f"/documents/{upload['doc_id']}").status_code == 404)


def test_an_uploaded_document_tells_how_it_came_about(document: dict[str, Any]) -> None:
    assert (document["status"], document["project_id"], document["owner_id"]) == ("ready", "orchard", "anna")
    assert [phase["status"] for phase in document["history"]][-1] == "ready"
    assert sum(phase["model_calls"] for phase in document["history"]) >= 2


def test_access_changes_hold_for_the_next_question(
    stack: LocalStack, anna: httpx.Client, ben: httpx.Client, document: dict[str, Any]
) -> None:
    address = f"/documents/{document['doc_id']}"
    assert "77 barrels" in ask(stack, ANNA)
    assert "77 barrels" not in ask(stack, BEN)
    # The response must equal the response for a document that doesn't exist.
    assert ben.get(address).json()["title"] == "DocumentNotFoundError"
    assert {ben.patch(address, json={"title": "x"}).status_code, ben.delete(address).status_code} == {404}

    opened = anna.put(f"{address}/access", json={"acl": [BEN.user_id]})
    assert opened.json()["acl"] == [ANNA.user_id, BEN.user_id]
    assert "77 barrels" in ask(stack, BEN)
    assert ben.get(address).json()["acl"] is None
    assert ben.delete(address).status_code == 403
    assert ben.put(f"{address}/access", json={"acl": ["*"]}).status_code == 403

    closed = anna.put(f"{address}/access", json={"acl": []})
    assert closed.json()["acl"] == [ANNA.user_id]
    assert "77 barrels" not in ask(stack, BEN)


def test_corrections_and_access_survive_a_new_version(anna: httpx.Client, document: dict[str, Any]) -> None:
    address = f"/documents/{document['doc_id']}"
    corrected = anna.patch(address, json={"title": "Cider of Marston", "department": "cellar"}).json()
    assert (corrected["title"], corrected["edited_fields"]) == ("Cider of Marston", ["department", "title"])
    anna.put(f"{address}/access", json={"acl": [BEN.user_id]})
    changed = pdf_of("Cider Report", FACT, "It is bottled in May.")
    assert send(anna, "cider report.pdf", changed)["doc_id"] == document["doc_id"]
    second = until_ended(anna, document["doc_id"], version=2)
    assert (second["version"], second["title"], second["department"]) == (2, "Cider of Marston", "cellar")
    assert second["acl"] == [ANNA.user_id, BEN.user_id]


def test_a_deleted_document_is_found_no_more(
    stack: LocalStack, anna: httpx.Client, document: dict[str, Any]
) -> None:
    assert anna.delete(f"/documents/{document['doc_id']}").status_code == 202
    assert anna.get(f"/documents/{document['doc_id']}").status_code == 404
    assert "77 barrels" not in ask(stack, ANNA)
    eventually(lambda: anna.delete(f"/documents/{document['doc_id']}").status_code == 404)


def test_a_large_file_goes_straight_to_the_storage(anna: httpx.Client) -> None:
    ticket = anna.post("/documents/uploads", json={"filename": "tülip 'guide'.md", "acl": ["hr"]})
    assert ticket.status_code == 201, ticket.text
    content = b"# Tulips\n\nTulips sleep."
    response = httpx.put(ticket.json()["url"], content=content, headers=ticket.json()["headers"], timeout=60)
    assert response.status_code == 201
    eventually(lambda: anna.get(f"/documents/{ticket.json()['doc_id']}").status_code == 200)
    document = until_ended(anna, ticket.json()["doc_id"])
    assert (document["status"], document["acl"]) == ("ready", [ANNA.user_id, "hr"])
    part = anna.get(f"/documents/{document['doc_id']}/content", headers={"Range": "bytes=2-7"})
    assert (part.status_code, part.content) == (206, b"Tulips")
    anna.delete(f"/documents/{document['doc_id']}")


def test_whoever_watches_sees_how_far_their_documents_are_and_no_others(
    stack: LocalStack, anna: httpx.Client, ben: httpx.Client
) -> None:
    secret = send(ben, "secret-plan.txt", b"Nobody knows of this plan.")
    with anna.stream("GET", "/documents/events") as stream:
        document = send(anna, "watched.txt", b"A watched pot never boils.")
        seen: list[tuple[str, dict[str, Any]]] = []
        deleted = False
        for name, event in events(stream):
            seen.append((name, event))
            if event["doc_id"] != document["doc_id"]:
                continue
            if name == "removed":
                break
            if event["status"] == "ready" and not deleted:
                anna.delete(f"/documents/{document['doc_id']}")
                deleted = True
    assert secret["doc_id"] not in {event["doc_id"] for _, event in seen}
    ben.delete(f"/documents/{secret['doc_id']}")


def events(stream: httpx.Response) -> Iterator[tuple[str, dict[str, Any]]]:
    name = ""
    for line in stream.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def test_an_audit_is_for_administrators_and_finds_nothing(anna: httpx.Client, admin: httpx.Client) -> None:
    assert anna.get("/maintenance/audit").status_code == 403
    assert anna.post("/maintenance/reconcile").status_code == 403

    def agreement() -> dict[str, Any] | None:
        report: dict[str, Any] = admin.get("/maintenance/audit").json()
        return report if report["agrees"] else None

    report = eventually(agreement)
    assert report["counts"]["files"] == report["counts"]["states"] > 0
    reconciled = admin.post("/maintenance/reconcile").json()
    assert (reconciled["removed_orphans"], reconciled["left"]) == (0, 0)
