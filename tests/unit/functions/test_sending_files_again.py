"""Tests for repeated uploads under one key: the same file is stored once, and a different file is refused."""

from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from shared.platform.names import DOCUMENTS
from shared.wiring import Services
from tests.contract.ingestion.models import DIMENSIONS
from tests.fakes.blob_store import InMemoryBlobStore
from tests.fakes.dying import Death, Died
from tests.unit.functions.asking_app import WRITES
from tests.unit.functions.conftest import AsUser
from tests.unit.functions.http_app import IngestingClient, as_user, connect, problem_of, settings_of_tests

GUIDE = b"# Pumps\n\nThe pump runs at 15 bar."
KEY = {"Idempotency-Key": "2f1c"}


async def send(client: httpx.AsyncClient, content: bytes = GUIDE, **fields: object) -> httpx.Response:
    return await client.post("/documents", data=fields, files={"file": ("guide.md", content)}, headers=KEY)


def version_of(services: Services) -> tuple[int, bytes]:
    assert isinstance(services.blobs, InMemoryBlobStore)
    blobs = services.blobs.containers[DOCUMENTS]
    (name,) = [name for name in blobs if name.endswith("guide.md")]
    return blobs[name].write_number, blobs[name].content


async def test_the_same_file_is_stored_and_ingested_once(
    services: Services, durable: IngestingClient, user: AsUser
) -> None:
    first = await send(user("anna"), acl="hr")
    stored = version_of(services)
    assert len(durable.started) == 1
    again = await send(user("anna"), acl="hr")
    assert (again.status_code, again.json()["doc_id"]) == (202, first.json()["doc_id"])
    assert again.headers["idempotency-replayed"] == "true"
    assert version_of(services) == stored
    assert len(durable.started) == 1


async def test_another_file_or_other_rights_under_the_key_change_nothing(
    services: Services, user: AsUser
) -> None:
    await send(user("anna"), acl="hr")
    stored = version_of(services)
    for content, acl in ((b"# Other", "hr"), (GUIDE, "*")):
        refused = await send(user("anna"), content, acl=acl)
        assert problem_of(refused) == (422, "IdempotencyKeyReusedError")
    assert version_of(services) == stored


async def test_a_document_that_was_deleted_does_not_come_back(
    services: Services, durable: IngestingClient, user: AsUser
) -> None:
    anna = user("anna")
    doc_id = (await send(anna)).json()["doc_id"]
    await durable.run()
    await anna.delete(f"/documents/{doc_id}")
    await durable.run()
    assert problem_of(await send(anna)) == (404, "DocumentNotFoundError")


async def test_an_upload_that_died_is_completed_by_its_repeat(
    monkeypatch: pytest.MonkeyPatch, services: Services, durable: IngestingClient, user: AsUser
) -> None:
    for at in (0, 1, 2):  # the claim, the limit and the completion of the key
        connect(monkeypatch, Death(at, is_behind=at != 2).mortal(services, WRITES))
        with pytest.raises((Died, BaseExceptionGroup)):
            await send(user("anna"))
        connect(monkeypatch, services)
    assert (await send(user("anna"))).status_code == 202
    assert await durable.run() == ["ready"]  # one instance for both requests
    assert version_of(services)[1] == GUIDE


async def test_a_ticket_is_for_the_same_document_each_time(user: AsUser) -> None:
    anna, order = user("anna"), {"filename": "big.pdf"}
    first = await anna.post("/documents/uploads", json=order, headers=KEY)
    again = await anna.post("/documents/uploads", json=order, headers=KEY)
    assert first.json()["doc_id"] == again.json()["doc_id"]
    assert again.headers["idempotency-replayed"] == "true"
    other = await anna.post("/documents/uploads", json={"filename": "other.pdf"}, headers=KEY)
    assert problem_of(other) == (422, "IdempotencyKeyReusedError")
    assert problem_of(await send(anna)) == (422, "IdempotencyKeyReusedError")


async def test_files_that_are_too_large_are_told_the_limit(user: AsUser) -> None:
    response = await user("anna").post("/documents", content=b"", headers={"Content-Length": "900000"})
    streamed = await send(user("anna"), b"x" * 200_001)
    for refused in (response, streamed):
        assert problem_of(refused) == (413, "PayloadTooLargeError")
        assert refused.headers["x-max-body-bytes"] == "200000"


@pytest.mark.parametrize("path", ["/documents", "/documents/uploads"])
async def test_a_repeat_counts_as_a_call_and_not_as_a_document(
    monkeypatch: pytest.MonkeyPatch, app: Starlette, services: Services, path: str
) -> None:
    services.settings = settings_of_tests(
        max_daily_documents=1, rate_limit_per_minute=3, embedding_dimensions=DIMENSIONS
    )
    anna = as_user(app, "anna")
    body: dict[str, Any] = (
        {"files": {"file": ("guide.md", GUIDE)}} if path == "/documents" else {"json": {"filename": "a.pdf"}}
    )
    *served, refused = [await anna.post(path, **body, headers=KEY) for _ in range(4)]
    assert [one.status_code < 300 for one in served] == [True] * 3
    assert [one.headers["ratelimit-remaining"] for one in served] == ["2", "1", "0"]
    assert problem_of(refused) == (429, "TooManyRequestsError")
    state = await services.user_limits.read("anna")
    assert state.used.documents == 1
