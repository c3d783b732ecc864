"""Tests for the paged list of documents: complete, ordered, and limited to readable documents."""

from typing import Any

import pytest

from shared.documents.ids import document_id
from shared.documents.listing import ListPosition, encode_position
from shared.wiring import Services
from tests.unit.functions.conftest import AsUser
from tests.unit.functions.http_app import IngestingClient, problem_of

READY = [f"ready-{number}.md" for number in range(5)]
IN_WORK = [f"in-work-{number}.md" for number in range(3)]


async def send(user: AsUser, name: str, who: str = "anna") -> None:
    content = f"# Pump {name}\n\nThe pump {name} runs at 15 bar.".encode()
    response = await user(who).post("/documents", data={"acl": who}, files={"file": (name, content)})
    assert response.status_code == 202


@pytest.fixture
async def uploads(durable: IngestingClient, user: AsUser) -> None:
    """Upload documents of Anna and Ben, some of which are ready while others are still in progress."""
    for name in READY:
        await send(user, name)
    await send(user, "of-ben.md", "ben")
    assert set(await durable.run()) == {"ready"}
    for name in reversed(IN_WORK):
        await send(user, name)
    await send(user, "of-ben-in-work.md", "ben")


async def pages(user: AsUser, limit: int, **metadata: str) -> list[list[str]]:
    names_by_page: list[list[str]] = []
    parameters: dict[str, Any] = {"limit": limit, **metadata}
    while True:
        page = (await user("anna").get("/documents", params=parameters)).json()
        assert page["count"] == len(page["documents"])
        names_by_page.append([document["filename"] for document in page["documents"]])
        if page["cursor"] is None:
            return names_by_page
        parameters["cursor"] = page["cursor"]


@pytest.mark.usefixtures("uploads")
@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 7])
async def test_pages_hold_everything_once_and_in_order(user: AsUser, limit: int) -> None:
    names_by_page = await pages(user, limit)
    assert [name for page in names_by_page for name in page] == [*IN_WORK, *reversed(READY)]
    assert {len(page) for page in names_by_page[:-1]} <= {limit}
    assert 0 < len(names_by_page[-1]) <= limit


@pytest.mark.usefixtures("uploads")
async def test_a_list_can_be_of_one_status(user: AsUser) -> None:
    assert await pages(user, 2, status="working") == [IN_WORK[:2], IN_WORK[2:]]
    assert await pages(user, 8, status="working", q="WORK-1") == [["in-work-1.md"]]
    assert await pages(user, 8, status="failed") == [[]]
    assert await pages(user, 8, status="ready") == [[*reversed(READY)]]
    refused = await user("anna").get("/documents", params={"status": "lost"})
    assert problem_of(refused) == (400, "InvalidRequestError")


@pytest.mark.usefixtures("uploads")
async def test_documents_have_one_of_several_tags(user: AsUser) -> None:
    documents = (await user("anna").get("/documents", params={"status": "ready"})).json()["documents"]
    for document, tags in zip(documents, (["oil"], ["water"], ["steam"]), strict=False):
        changed = await user("anna").patch(f"/documents/{document['doc_id']}", json={"tags": tags})
        assert changed.status_code == 200
    response = await user("anna").get("/documents", params={"tags": ["oil", "steam"]})
    assert {one["doc_id"] for one in response.json()["documents"]} == {
        documents[0]["doc_id"],
        documents[2]["doc_id"],
    }


@pytest.mark.usefixtures("uploads")
async def test_one_page_that_holds_all_is_the_last(user: AsUser) -> None:
    assert await pages(user, 8) == [[*IN_WORK, *reversed(READY)]]


@pytest.mark.usefixtures("uploads")
async def test_pages_of_a_narrower_list_hold_complete_ones_alone(user: AsUser) -> None:
    assert await pages(user, 1, filename="ready-3.md") == [["ready-3.md"]]
    assert await pages(user, 1, filename="in-work-1.md") == [[]]


@pytest.mark.usefixtures("uploads")
async def test_a_new_version_in_work_is_listed_as_the_document_that_it_is_still(
    user: AsUser, durable: IngestingClient
) -> None:
    assert set(await durable.run()) == {"ready"}
    await send(user, "in-work-1.md")
    (filenames,) = await pages(user, 100)
    assert sorted(filenames) == sorted([*IN_WORK, *READY])


async def test_a_cursor_of_somewhere_else_is_refused(user: AsUser) -> None:
    for cursor in ("x", encode_position(ListPosition(doc_id="a")), "5"):
        answer = await user("anna").get("/documents", params={"cursor": cursor})
        assert problem_of(answer) == (400, "InvalidRequestError")


async def test_pages_go_on_behind_the_longest_names_that_the_storage_takes(
    services: Services, user: AsUser
) -> None:
    """Check long names: uploads are shortened, but blobs may have names of up to 1,024 characters."""
    await send(user, "z.md")
    (listed,) = (await user("anna").get("/documents")).json()["documents"]
    state = await services.documents.get(listed["doc_id"])
    assert state is not None
    names = [f"{number}{'漢' * 1022}x" for number in range(3)]
    for name in names:
        await services.documents.create(
            state.model_copy(update={"doc_id": document_id(name), "blob_name": name, "filename": name})
        )
    assert await pages(user, 1) == [[name] for name in (*names, "z.md")]


@pytest.mark.usefixtures("uploads")
async def test_a_list_can_be_sorted_a_page_at_a_time(user: AsUser) -> None:
    assert await pages(user, 2, sort="filename") == [READY[:2], READY[2:4], READY[4:]]
    refused = await user("anna").get("/documents", params={"sort": "filename", "cursor": "elsewhere"})
    assert problem_of(refused)[0] == 400


@pytest.mark.usefixtures("uploads")
async def test_a_sorted_list_repeats_nothing_when_the_index_lags(user: AsUser, services: Services) -> None:
    for listed in (await user("anna").get("/documents", params={"status": "ready"})).json()["documents"]:
        if listed["filename"] in READY[:2]:
            state = await services.documents.get(listed["doc_id"])
            assert state is not None
            closed = state.rights.model_copy(update={"acl": ("ben",), "owner_id": "ben"})
            changed = {"rights": closed, "wanted_rights": closed}
            await services.documents.replace(state.model_copy(update=changed))
    assert await pages(user, 2, sort="filename") == [READY[2:4], READY[4:]]


@pytest.mark.usefixtures("uploads")
async def test_a_document_that_is_called_so_comes_first(user: AsUser) -> None:
    matches = (await user("anna").get("/documents", params={"q": "ready-3.md"})).json()["documents"]
    assert matches[0]["filename"] == "ready-3.md"


@pytest.mark.usefixtures("uploads")
async def test_categories_are_counted_of_what_a_search_finds(user: AsUser) -> None:
    listing = (await user("anna").get("/documents", params={"q": "pump"})).json()
    counted = (await user("anna").get("/documents/facets", params={"q": "pump"})).json()
    nothing = (await user("anna").get("/documents/facets", params={"q": "zephyr"})).json()
    assert counted["document_count"] == listing["count"] > 0
    assert (nothing["document_count"], nothing["tags"]) == (0, [])


@pytest.mark.usefixtures("uploads")
async def test_owners_see_readers_and_folders_and_readers_by_what_they_have_access(user: AsUser) -> None:
    doc_id = (await user("anna").get("/documents", params={"q": "ready-1.md"})).json()["documents"][0][
        "doc_id"
    ]
    changed = await user("anna").put(f"/documents/{doc_id}/access", json={"acl": ["ben", "hr"]})
    assert changed.status_code == 200
    for query in ({}, {"q": "ready-1.md"}, {"sort": "title"}):
        own, read, by_group = [
            {one["doc_id"]: one for one in (await reader.get("/documents", params=query)).json()["documents"]}
            for reader in (user("anna"), user("ben"), user("cora", groups=["hr"]))
        ]
        assert (own[doc_id]["acl"], own[doc_id]["access_via"]) == (["anna", "ben", "hr"], ["owner"])
        assert (own[doc_id]["folder"], read[doc_id]["folder"]) == ("", None)
        assert (read[doc_id]["acl"], read[doc_id]["access_via"]) == (None, ["person"])
        assert (by_group[doc_id]["acl"], by_group[doc_id]["access_via"]) == (None, ["group"])


@pytest.mark.usefixtures("uploads")
async def test_a_list_can_be_of_several_projects(user: AsUser) -> None:
    anna = user("anna")
    documents = (await anna.get("/documents?status=ready")).json()["documents"]
    for document, project in zip(documents, ("pumps", "pumps/heron", "valves"), strict=False):
        body = {"acl": ["anna"], "project_id": project}
        assert (await anna.put(f"/documents/{document['doc_id']}/access", json=body)).status_code == 200
    for address in ("/documents", "/documents/facets"):
        reply = (await anna.get(f"{address}?project_id=pumps&project_id=pumps/heron")).json()
        assert reply.get("count", reply.get("document_count")) == 2
