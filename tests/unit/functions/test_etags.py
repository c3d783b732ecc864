"""Tests for conditional changes: they apply only to the state that the caller has seen."""

from typing import Any

import httpx
import pytest

from functions import documents
from shared.documents.state import DocumentState
from shared.wiring import Services
from tests.unit.functions.conftest import AsUser
from tests.unit.functions.http_app import IngestingClient, problem_of

FAILED = (412, "PreconditionFailedError")


@pytest.fixture
async def address(durable: IngestingClient, user: AsUser) -> str:
    response = await user("anna").post("/documents", files={"file": ("m.md", b"# Herons\n\nHerons stand.")})
    await durable.run()
    return f"/documents/{response.json()['doc_id']}"


async def etag_of(client: httpx.AsyncClient, address: str) -> str:
    etag = (await client.get(address)).headers["etag"]
    assert etag.startswith('"')
    return etag


async def test_a_document_that_did_not_change_is_not_sent_again(user: AsUser, address: str) -> None:
    anna = user("anna")
    etag = await etag_of(anna, address)
    # A compressing proxy makes the tag weak, and If-None-Match compares weakly.
    for condition in (f'"x", {etag}', f"W/{etag}", f'W/"x", W/{etag}'):
        response = await anna.get(address, headers={"If-None-Match": condition})
        assert (response.status_code, response.content, response.headers["etag"]) == (304, b"", etag)
    assert (await anna.get(address, headers={"If-None-Match": '"x"'})).status_code == 200
    changed = await anna.patch(address, json={"title": "Waders"})
    assert changed.headers["etag"] == await etag_of(anna, address) != etag
    assert (await anna.get(address, headers={"If-None-Match": etag})).status_code == 200


async def test_of_two_people_who_change_the_same_state_the_second_is_told(user: AsUser, address: str) -> None:
    anna, boss = user("anna"), user("boss", roles=["admin"])
    etag = await etag_of(anna, address)
    first = await anna.patch(address, json={"title": "Waders"}, headers={"If-Match": etag})
    assert first.status_code == 200
    second = await anna.patch(address, json={"title": "Storks"}, headers={"If-Match": etag})
    assert problem_of(second) == FAILED
    assert (await anna.get(address)).json()["title"] == "Waders"
    again = {"If-Match": f'"old", {first.headers["etag"]}'}
    assert (await anna.patch(address, json={"title": "Storks"}, headers=again)).status_code == 200
    unread = await boss.put(address + "/access", json={"acl": ["boss"]}, headers={"If-Match": etag})
    assert problem_of(unread) == FAILED


@pytest.mark.parametrize("condition", ['"other"', "W/{etag}", "{bare}", "", ","])
async def test_only_the_very_etag_lets_a_change_through(user: AsUser, address: str, condition: str) -> None:
    anna = user("anna")
    etag = await etag_of(anna, address)
    headers = {"If-Match": condition.format(etag=etag, bare=etag.strip('"'))}
    for refused in (
        await anna.patch(address, json={"title": "x"}, headers=headers),
        await anna.put(address + "/access", json={"acl": ["*"]}, headers=headers),
        await anna.delete(address, headers=headers),
    ):
        assert problem_of(refused) == FAILED
    assert (await anna.get(address)).headers["etag"] == etag
    assert (await anna.delete(address, headers={"If-Match": etag})).status_code == 202


async def test_a_change_in_between_is_noticed_although_the_condition_held(
    services: Services, user: AsUser, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Change the document as another user between the check of the condition and the write."""
    anna = user("anna")
    etag = await etag_of(anna, address)
    replace = services.documents.replace
    done: list[bool] = []

    async def slower(state: DocumentState) -> DocumentState:
        if not done:
            done.append(True)
            assert (await anna.patch(address, json={"title": "Waders"})).status_code == 200
        return await replace(state)

    monkeypatch.setattr(services.documents, "replace", slower)
    late = await anna.patch(address, json={"title": "Storks"}, headers={"If-Match": etag})
    assert problem_of(late) == FAILED
    assert (await anna.get(address)).json()["title"] == "Waders"


async def test_of_two_access_lists_for_the_same_state_none_takes_the_other_back(
    user: AsUser, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Revoke access after the check of the condition, and check that a stale request can't grant it again."""
    anna = user("anna")
    opened = await anna.put(address + "/access", json={"acl": ["ben", "carl"]})
    seen = {"If-Match": opened.headers["etag"]}
    check = documents._require_match
    done: list[bool] = []

    async def slower(*arguments: Any) -> None:
        await check(*arguments)
        if not done:
            done.append(True)
            closed = await anna.put(address + "/access", json={"acl": ["carl"]}, headers=seen)
            assert closed.status_code == 200

    monkeypatch.setattr(documents, "_require_match", slower)
    late = await anna.put(address + "/access", json={"acl": ["ben", "carl", "dora"]}, headers=seen)
    assert problem_of(late) == FAILED
    assert (await anna.get(address)).json()["acl"] == ["anna", "carl"]
    assert problem_of(await user("ben").get(address))[0] == 404


async def test_an_access_list_that_was_written_and_whose_answer_was_lost_is_no_conflict(
    services: Services, user: AsUser, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Repeat the write in the storage client, as after a lost response. It conflicts with itself."""
    anna = user("anna")
    seen = {"If-Match": (await anna.put(address + "/access", json={"acl": ["ben"]})).headers["etag"]}
    write = services.blobs.write_version

    async def sent_again(container: str, name: str, content: bytes, *, etag: str | None) -> str:
        await write(container, name, content, etag=etag)
        return await write(container, name, content, etag=etag)

    monkeypatch.setattr(services.blobs, "write_version", sent_again)
    closed = await anna.put(address + "/access", json={"acl": ["carl"]}, headers=seen)
    assert (closed.status_code, closed.json()["acl"]) == (200, ["anna", "carl"])
    assert problem_of(await user("ben").get(address))[0] == 404


async def test_a_list_that_is_gone_by_the_time_it_is_replaced_is_a_conflict(
    services: Services, user: AsUser, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna = user("anna")
    seen = {"If-Match": (await anna.put(address + "/access", json={"acl": ["ben"]})).headers["etag"]}
    write = services.blobs.write_version

    async def late(container: str, name: str, content: bytes, *, etag: str | None) -> str:
        await services.blobs.delete(container, name)
        return await write(container, name, content, etag=etag)

    monkeypatch.setattr(services.blobs, "write_version", late)
    refused = await anna.put(address + "/access", json={"acl": ["carl"]}, headers=seen)
    assert problem_of(refused) == FAILED


async def test_any_state_will_do_for_a_star_and_foreign_ones_stay_absent(user: AsUser, address: str) -> None:
    star = {"If-Match": "*"}
    assert (await user("anna").patch(address, json={"title": "x"}, headers=star)).status_code == 200
    assert problem_of(await user("ben").patch(address, json={"title": "x"}, headers=star))[0] == 404
    foreign = {"If-Match": await etag_of(user("anna"), address)}
    assert problem_of(await user("ben").delete(address, headers=foreign))[0] == 404
