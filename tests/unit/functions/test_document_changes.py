"""Tests for changing documents over HTTP: permissions, costs and persistence."""

from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from shared.ingestion.models import Closed, CloseRequest, IngestStep
from shared.ingestion.task import IngestTask
from shared.platform.errors import DependencyError
from shared.platform.names import DOCUMENTS
from shared.platform.search import IndexRow
from shared.wiring import Services
from tests.contract.ingestion.driving import blocks_of, documents_of
from tests.contract.ingestion.models import CountingChatModel, CountingEmbedder
from tests.unit.functions.conftest import AsUser
from tests.unit.functions.http_app import IngestingClient, problem_of

GUIDE = b"# Pumps\n\nThe pump runs at 15 bar.\n\n# Care\n\nOil is changed every year."


@pytest.fixture
async def document(durable: IngestingClient, user: AsUser) -> dict[str, Any]:
    """Ingest a document that Anna owns and the group hr may read."""
    response = await user("anna").post("/documents", data={"acl": "hr"}, files={"file": ("guide.md", GUIDE)})
    assert await durable.run() == ["ready"]
    return dict(response.json())


async def blob_name_of(services: Services, document: dict[str, Any]) -> str:
    state = await services.documents.get(document["doc_id"])
    assert state is not None
    return state.blob_name


def address(document: dict[str, Any]) -> str:
    return f"/documents/{document['doc_id']}"


async def every_change(client: httpx.AsyncClient, document: dict[str, Any]) -> set[int]:
    answers = [
        await client.patch(address(document), json={"title": "x"}),
        await client.put(f"{address(document)}/access", json={"acl": ["*"]}),
        await client.post(f"{address(document)}/reingest"),
        await client.delete(address(document)),
    ]
    return {problem_of(answer)[0] for answer in answers}


async def test_only_its_owner_and_administrators_change_a_document(
    user: AsUser, document: dict[str, Any]
) -> None:
    assert await every_change(user("ben"), document) == {404}
    assert await every_change(user("ben", groups=["hr"]), document) == {403}
    unknown = {**document, "doc_id": "0" * 24}
    assert await every_change(user("anna"), unknown) == {404}
    corrected = await user("olga", roles=["admin"]).patch(address(document), json={"title": "By Olga"})
    assert corrected.status_code == 200
    # The role permits changing the document, but not reading it.
    assert "summary_brief" not in {key for key, value in corrected.json().items() if value}
    assert (await user("anna").get(address(document))).json()["title"] == "By Olga"


async def test_access_changes_cost_no_parsing_and_no_model_call(
    services: Services, durable: IngestingClient, user: AsUser, document: dict[str, Any]
) -> None:
    chat_model, embedder = services.chat_model, services.embedder
    assert isinstance(chat_model, CountingChatModel)
    assert isinstance(embedder, CountingEmbedder)
    before = (len(chat_model.prompts), len(embedder.texts))
    ben = user("ben")
    assert (await ben.get(address(document))).status_code == 404
    opened = await user("anna").put(f"{address(document)}/access", json={"acl": ["ben"], "project_id": "p2"})
    assert (opened.json()["acl"], opened.json()["project_id"]) == (["anna", "ben"], "p2")
    assert (await ben.get(address(document))).status_code == 200
    blocks = await blocks_of(services, await blob_name_of(services, document))
    assert {(tuple(row["access_control_list"]), row["project_id"]) for row in blocks} == {
        (("anna", "ben"), "p2")
    }
    # The event of the sidecar starts nothing.
    await durable.start_new("ingest_document", "event", {"blob_name": await blob_name_of(services, document)})
    assert await durable.run() == ["current"]
    assert (len(chat_model.prompts), len(embedder.texts)) == before


async def test_a_closed_document_is_closed_although_the_indexes_refuse_the_new_list(
    services: Services, user: AsUser, document: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    member = user("ben", groups=["hr"])
    assert len((await member.get("/documents")).json()["documents"]) == 1

    async def refuse(rows: Sequence[IndexRow]) -> None:
        raise DependencyError("The search service is not reached.", "Try again.")

    monkeypatch.setattr(services.content_index, "merge", refuse)
    monkeypatch.setattr(services.documents_index, "merge", refuse)
    anna = user("anna")
    assert (await anna.put(f"{address(document)}/access", json={"acl": []})).status_code == 200
    assert (await member.get(address(document))).status_code == 404
    assert (await member.get("/documents")).json()["documents"] == []
    assert (await member.post("/search", json={"query": "pump"})).json()["results"] == []
    warnings = (await anna.get(address(document))).json()["warnings"]
    assert (
        "The new access list is being applied. People added to it cannot find the document yet." in warnings
    )


async def test_while_a_document_is_worked_on_its_rows_are_closed_all_the_same(
    services: Services, user: AsUser, document: dict[str, Any]
) -> None:
    name = await blob_name_of(services, document)
    holder = IngestStep(blob_name=name, fence="holder")
    at_work = await IngestTask(holder, services).acquire()
    closed = await user("anna").put(f"{address(document)}/access", json={"acl": []})
    assert closed.status_code == 200
    assert {tuple(row["access_control_list"]) for row in await blocks_of(services, name)} == {("anna",)}
    assert (await user("ben", groups=["hr"]).get(address(document))).status_code == 404
    assert (await IngestTask(holder, services).current_state()).wish > at_work.wish, "it must look again"


async def test_corrections_are_in_the_list_the_blocks_and_later_versions(
    services: Services, durable: IngestingClient, user: AsUser, document: dict[str, Any]
) -> None:
    anna = user("anna")
    correction = {"document_type": "guide", "department": None, "tags": ["oil", "bar"], "title": "Oil"}
    corrected = (await anna.patch(address(document), json=correction)).json()
    assert {name: corrected[name] for name in correction} == correction
    assert corrected["edited_fields"] == ["department", "document_type", "tags", "title"]
    blocks = await blocks_of(services, await blob_name_of(services, document))
    assert {(row["document_type"], row["department"]) for row in blocks} == {("guide", None)}
    assert all(row["content_vector"] for row in blocks)

    await anna.post("/documents", files={"file": ("guide.md", GUIDE + b" And more.")})
    assert await durable.run() == ["ready"]
    later = (await anna.get(address(document))).json()
    assert {name: later[name] for name in correction} == correction
    assert (later["version"], later["author"]) == (2, "Groundwork")


async def test_a_document_in_work_shows_corrections_at_once_and_the_ingestion_writes_them(
    services: Services, durable: IngestingClient, user: AsUser, document: dict[str, Any]
) -> None:
    anna, name = user("anna"), await blob_name_of(services, document)
    step = IngestStep(blob_name=name, fence="holder")
    holder = IngestTask(step, services)
    await holder.acquire()
    corrected = await anna.patch(address(document), json={"title": "Now", "document_type": "guide"})
    assert (corrected.status_code, corrected.json()["title"]) == (200, "Now")
    (listed,) = (await anna.get("/documents")).json()["documents"]
    assert (listed["title"], listed["document_type"]) == ("Now", "guide")
    assert problem_of(await anna.post(f"{address(document)}/reingest")) == (409, "ConflictError")
    closed = await holder.close(CloseRequest(step=holder.step, status="ready"))
    assert closed == Closed(again=True)
    await durable.start_new("ingest_document", "holder", {"blob_name": name})
    assert set(await durable.run()) <= {"current"}
    assert (await documents_of(services, name))[0]["title"] == "Now"
    assert {row["document_type"] for row in await blocks_of(services, name)} == {"guide"}
    state = await services.documents.get(document["doc_id"])
    assert state is not None
    assert not state.has_unshown_corrections


@pytest.mark.parametrize(
    "body",
    [{}, {"title": None}, {"title": "  "}, {"owner_id": "ben"}, {"language": "English"}, {"tags": [""]}],
)
async def test_a_correction_that_makes_no_sense_is_refused(
    user: AsUser, document: dict[str, Any], body: dict[str, Any]
) -> None:
    assert problem_of(await user("anna").patch(address(document), json=body))[0] == 400


@pytest.mark.attack("oversized metadata")
@pytest.mark.parametrize(
    "body",
    [
        {"title": "x" * 201},
        {"author": "x" * 201},
        {"author": "Mara\x1b[31m"},
        {"tags": ["x" * 201]},
        {"tags": ["a\x07"]},
        {"tags": ["x"] * 31},
    ],
    ids=["long title", "long author", "escape in author", "long tag", "bell in tag", "many tags"],
)
async def test_a_correction_obeys_the_limits_of_metadata(
    user: AsUser, document: dict[str, Any], body: dict[str, Any]
) -> None:
    assert problem_of(await user("anna").patch(address(document), json=body))[0] == 400
    assert (await user("anna").patch(address(document), json={"author": "x" * 200})).status_code == 200


@pytest.mark.parametrize("body", [{}, {"acl": "hr"}, {"acl": [""]}, {"acl": ["a\nb"]}, {"acl": ["x"] * 501}])
async def test_an_access_list_that_is_none_is_refused_and_changes_nothing(
    user: AsUser, document: dict[str, Any], body: dict[str, Any]
) -> None:
    assert problem_of(await user("anna").put(f"{address(document)}/access", json=body))[0] == 400
    assert (await user("anna").get(address(document))).json()["acl"] == ["anna", "hr"]


async def test_deletion_takes_the_document_from_the_list_at_once_and_the_rest_after(
    services: Services, durable: IngestingClient, user: AsUser, document: dict[str, Any]
) -> None:
    anna, name = user("anna"), await blob_name_of(services, document)
    assert (await anna.delete(address(document))).status_code == 202
    assert (await anna.get("/documents")).json()["count"] == 0
    assert (await anna.delete(address(document))).status_code == 202
    assert await durable.run() == ["removed"]
    assert await blocks_of(services, name) == []
    assert [blob async for blob in services.blobs.list_blobs(DOCUMENTS)] == []
    assert problem_of(await anna.delete(address(document)))[0] == 404


async def test_after_three_failed_tries_a_file_is_left_alone_until_somebody_asks(
    services: Services, durable: IngestingClient, user: AsUser
) -> None:
    anna = user("anna")
    upload = (await anna.post("/documents", files={"file": ("broken.md", b"\x00\x01" * 50)})).json()
    outcomes = await durable.run()
    for occasion in range(4):
        name = await blob_name_of(services, upload)
        await durable.start_new("ingest_document", f"again-{occasion}", {"blob_name": name})
        outcomes += await durable.run()
    assert outcomes == ["failed", "failed", "failed", "current", "current"]
    failed = (await anna.get(address(upload))).json()
    assert (failed["status"], failed["failed_tries"]) == ("failed", 3)

    # Access to a quarantined file can be changed, and its history is kept.
    closed = (await anna.put(f"{address(upload)}/access", json={"acl": ["ben"]})).json()
    assert (closed["status"], closed["acl"]) == ("failed", ["anna", "ben"])
    assert (await anna.post(f"{address(upload)}/reingest")).status_code == 202
    assert await durable.run() == ["failed"]
    assert (await anna.get(address(upload))).json()["failed_tries"] == 1


async def test_ingesting_once_more_makes_all_of_it_anew_and_the_same(
    services: Services, durable: IngestingClient, user: AsUser, document: dict[str, Any]
) -> None:
    before = await blocks_of(services, await blob_name_of(services, document))
    assert (await user("anna").post(f"{address(document)}/reingest")).status_code == 202
    assert await durable.run() == ["ready"]
    assert await blocks_of(services, await blob_name_of(services, document)) == before
    assert (await user("anna").get(address(document))).json()["version"] == 1
