"""Group membership from Microsoft Graph, with a replacement server over real HTTP: pages, refusals, faults,
tokens.
"""

import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from shared.access.directory import MAX_ANSWER_BYTES, MAX_PAGES, GraphDirectory, connect_graph
from shared.access.models import DirectoryEntry, DirectoryPerson
from shared.platform.connections import Connection
from shared.platform.errors import (
    AuthenticationError,
    CallTimeoutError,
    DependencyError,
    GroundworkError,
    NotFoundError,
    RateLimitError,
)
from shared.wiring import build_services
from tests.fakes.graph_server import TOKEN, GraphServer, Trouble
from tests.fakes.services import fake_settings

pytestmark = [pytest.mark.contract, pytest.mark.attack("outgoing addresses")]

EVA, MANY, ALL_TOO_MANY, STRANGER = (f"0000000{n}-aaaa-4bbb-8ccc-000000000000" for n in range(4))
GROUPS = {
    EVA: ["g-1", "g-2"],
    MANY: [f"g-{n}" for n in range(2_500)],
    ALL_TOO_MANY: [f"g-{n}" for n in range(999 * MAX_PAGES + 1)],
}


@pytest.fixture
def graph() -> Iterator[GraphServer]:
    with GraphServer(GROUPS) as running:
        yield running


@pytest.fixture
async def connection() -> AsyncIterator[Connection[Any]]:
    graph_connection = connect_graph()
    yield graph_connection
    await graph_connection.close()


def directory(
    connection: Connection[Any], graph: GraphServer, timeout_s: float = 5, token: str = TOKEN
) -> GraphDirectory:
    async def get_token() -> str:
        return token

    return GraphDirectory(connection, get_token, graph.url, timeout_s)


async def test_groups_come_page_by_page_and_whole(connection: Connection[Any], graph: GraphServer) -> None:
    asking = directory(connection, graph)
    assert await asking.groups_of(EVA) == {"g-1", "g-2"}
    assert len(graph.asked) == 1
    assert await asking.groups_of(MANY) == set(GROUPS[MANY])
    assert len(graph.asked) == 1 + 3


async def test_names_of_groups_come_page_by_page_and_an_id_stands_for_a_missing_one(
    connection: Connection[Any], graph: GraphServer
) -> None:
    asking = directory(connection, graph)
    graph.display_names = {"g-1": "Finance / Köln"}
    assert await asking.group_names(EVA) == {"g-1": "Finance / Köln", "g-2": "g-2"}
    assert set(await asking.group_names(MANY)) == set(GROUPS[MANY])
    assert len(graph.asked) == 1 + 3
    with pytest.raises(NotFoundError):
        await asking.group_names(STRANGER)
    graph.always = Trouble(delay_s=1.5)
    with pytest.raises(CallTimeoutError):
        await directory(connection, graph, timeout_s=0.3).group_names(EVA)


async def test_whom_it_does_not_know_has_no_groups_and_no_person(
    connection: Connection[Any], graph: GraphServer
) -> None:
    asking = directory(connection, graph)
    with pytest.raises(NotFoundError):
        await asking.groups_of(STRANGER)
    with pytest.raises(NotFoundError):
        await asking.person(STRANGER)


@pytest.mark.parametrize("user_id", ["", "eva", "../groups", f"{EVA}/manager", f"{EVA}?x", EVA[:-1]])
async def test_what_is_no_id_of_a_person_is_not_asked_for(
    connection: Connection[Any], graph: GraphServer, user_id: str
) -> None:
    with pytest.raises(NotFoundError):
        await directory(connection, graph).groups_of(user_id)
    assert graph.asked == []


async def test_a_person_is_a_guest_unless_said_to_be_a_member(
    connection: Connection[Any], graph: GraphServer
) -> None:
    asking = directory(connection, graph)
    graph.people[EVA] = {"userType": "Member", "department": "Legal", "displayName": "Eva Lind"}
    assert await asking.person(EVA) == DirectoryPerson(is_guest=False, department="Legal", name="Eva Lind")
    graph.people[EVA] = {"userType": "Guest", "department": None}
    assert (await asking.person(EVA)).is_guest
    graph.people[EVA] = {"displayName": "Eva Lind"}
    assert (await asking.person(EVA)).is_guest


@pytest.mark.parametrize("name", ["Finance", "R&D / Köln", "Anna's friends", "' or id ne '"])
async def test_groups_are_found_by_their_name_alone(
    connection: Connection[Any], graph: GraphServer, name: str
) -> None:
    graph.names = {"Finance": ["g-1"], "R&D / Köln": ["g-2"], "Anna's friends": ["g-3", "g-4"]}
    entries = await directory(connection, graph).resolve(name)
    assert {entry.principal for entry in entries} == set(graph.names.get(name, []))


async def test_people_are_found_by_their_id_and_by_name_or_mail_alone(
    connection: Connection[Any], graph: GraphServer
) -> None:
    asking = directory(connection, graph)
    eva = {"id": EVA, "displayName": "Eva O'Neil", "mail": "eva@fernhill.example"}
    graph.people[EVA] = eva
    expected = DirectoryEntry(kind="person", principal=EVA, name="Eva O'Neil", detail="eva@fernhill.example")
    for text in (EVA, "Eva O'Neil", "eva@fernhill.example"):
        assert await asking.resolve(text) == (expected,)
    assert await asking.resolve("' or id ne '") == ()
    assert await asking.resolve(STRANGER) == ()


@pytest.mark.parametrize("text", ["ev", 'ev" OR "displayName:fin', "ev\\"])
async def test_a_search_asks_for_the_beginnings_of_words_alone(
    connection: Connection[Any], graph: GraphServer, text: str
) -> None:
    graph.people[EVA] = {"id": EVA, "displayName": "Eva Lind", "mail": None}
    graph.names = {"Finance": ["g-1"]}
    entries = await directory(connection, graph).search(text, 5)
    assert [entry.name for entry in entries] == (["Eva Lind"] if text in ("ev", "ev\\") else [])


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refusal_names_the_permission(
    connection: Connection[Any], graph: GraphServer, status: int
) -> None:
    graph.always = Trouble(status)
    with pytest.raises(AuthenticationError) as refusal:
        await directory(connection, graph).groups_of(EVA)
    assert "GroupMember.Read.All" in refusal.value.hints[0]
    assert len(graph.asked) == 1


@pytest.mark.parametrize("trouble", [Trouble(429, {"Retry-After": "0.05"}), Trouble(500), Trouble(503)])
async def test_what_passes_is_tried_again(
    connection: Connection[Any], graph: GraphServer, trouble: Trouble
) -> None:
    graph.troubles = [trouble]
    assert await directory(connection, graph).groups_of(EVA) == {"g-1", "g-2"}
    assert len(graph.asked) == 2


async def test_what_does_not_pass_in_time_is_an_error_and_never_some_groups(
    connection: Connection[Any], graph: GraphServer
) -> None:
    graph.troubles = [Trouble(), Trouble(429, {"Retry-After": "60"})]  # the fault concerns the second page
    with pytest.raises(RateLimitError) as refusal:
        await directory(connection, graph).groups_of(MANY)
    assert refusal.value.retry_after_s == 60


async def test_a_slow_answer_is_waited_for_no_longer_than_the_limit(
    connection: Connection[Any], graph: GraphServer
) -> None:
    graph.always = Trouble(delay_s=1.5)
    with pytest.raises(CallTimeoutError):
        await directory(connection, graph, timeout_s=0.3).groups_of(EVA)


async def test_the_token_goes_nowhere_else(connection: Connection[Any], graph: GraphServer) -> None:
    with GraphServer(GROUPS) as elsewhere:
        graph.next_link = f"{elsewhere.url}/v1.0/users/{MANY}/transitiveMemberOf"
        with pytest.raises(DependencyError, match="is invalid"):
            await directory(connection, graph).groups_of(MANY)
        graph.next_link = f"{graph.url}@{elsewhere.url.removeprefix('http://')}/v1.0/"
        with pytest.raises(DependencyError, match="is invalid"):
            await directory(connection, graph).groups_of(MANY)
        graph.always = Trouble(307, {"Location": f"{elsewhere.url}/v1.0/users/{EVA}"})
        with pytest.raises(DependencyError, match="HTTP 307"):
            await directory(connection, graph, timeout_s=3).groups_of(EVA)
        assert elsewhere.asked == []


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'{"value": [{"name": "x"}]}', b"{}", b" " * (MAX_ANSWER_BYTES + 1)]
)
async def test_an_answer_that_is_none_is_an_error(
    connection: Connection[Any], graph: GraphServer, body: bytes
) -> None:
    graph.always = Trouble(200, body=body)
    with pytest.raises(DependencyError, match="is invalid"):
        await directory(connection, graph, timeout_s=3).groups_of(EVA)


async def test_more_groups_than_anybody_has_are_an_error(
    connection: Connection[Any], graph: GraphServer
) -> None:
    with pytest.raises(DependencyError, match="more than"):
        await directory(connection, graph).groups_of(ALL_TOO_MANY)
    assert len(graph.asked) == MAX_PAGES


async def test_no_error_and_no_log_repeats_the_token(
    connection: Connection[Any], graph: GraphServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for trouble in (Trouble(401), Trouble(500), Trouble(200, body=b"{")):
        graph.always = trouble
        with pytest.raises(GroundworkError) as failure:
            await directory(connection, graph, timeout_s=3).groups_of(EVA)
        error_text = " ".join([failure.value.detail, *failure.value.hints, repr(failure.value.__cause__)])
        assert TOKEN not in error_text + caplog.text


async def test_the_app_asks_as_itself_once_for_several_and_remembers(
    graph: GraphServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in graph.settings.items():
        monkeypatch.setenv(name, value)
    services = build_services(fake_settings(graph_endpoint=graph.url))
    try:
        for user_id in (EVA, MANY, EVA):
            assert await services.directory.groups_of(user_id) == set(GROUPS[user_id])
    finally:
        await services.close()
    assert graph.tokens_given == 1
    assert len(graph.asked) == 1 + 3


async def test_without_an_identity_of_the_app_it_says_what_is_missing(
    graph: GraphServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in graph.settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("IDENTITY_HEADER", "wrong")
    # All other credential types take seconds to find out that they are not available.
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
    services = build_services(fake_settings(graph_endpoint=graph.url, graph_timeout_s=3))
    try:
        with pytest.raises(AuthenticationError, match="directory"):
            await services.directory.groups_of(EVA)
    finally:
        await services.close()
    assert graph.asked == []
