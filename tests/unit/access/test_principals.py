"""Tests for reading the user from every form of principal sent by App Service Authentication."""

import base64
import json
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest

from shared.access.identity import authenticate, user_from_directory
from shared.access.models import DirectoryPerson, UserContext
from shared.access.security_filter import principals
from shared.platform.errors import DependencyError, GroundworkError
from tests.fakes.directory import InMemoryDirectory
from tests.unit.access.principal_rows import (
    CLOSED,
    LOOKED_UP,
    ME,
    NOBODY,
    OTHER,
    OVERAGE,
    TABLE,
    TENANT,
    USER,
    Row,
    header,
)
from tests.unit.access.test_identity import settings

pytestmark = pytest.mark.attack("identity")


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.about)
async def test_a_principal_is_this_person_or_nobody(row: Row) -> None:
    directory = InMemoryDirectory({USER: LOOKED_UP})
    azure = settings(website_site_name="app", website_auth_enabled=True, **row.settings)
    entering = authenticate({"x-ms-client-principal": row.header}, azure, directory)
    if isinstance(row.who, str):
        with pytest.raises(GroundworkError) as refusal:
            await entering
        assert refusal.value.code == row.who
    else:
        assert (await entering).model_dump(include=set(row.who)) == row.who
    assert bool(directory.asked) == row.asks


def test_the_table_has_enough_rows_and_none_twice() -> None:
    assert len(TABLE) >= 40
    assert len({row.about for row in TABLE}) == len(TABLE)


AZURE = settings(website_site_name="app", website_auth_enabled=True)
FULL = {"x-ms-client-principal": header(ME, OVERAGE)}


async def test_a_directory_in_trouble_closes_the_door_and_says_why() -> None:
    directory = InMemoryDirectory({USER: LOOKED_UP})
    directory.fails_with = DependencyError("No connection to the directory.", "Check it.")
    with pytest.raises(DependencyError) as refusal:
        await authenticate(FULL, AZURE, directory)
    assert refusal.value.status == 503
    assert refusal.value.detail == "Your groups cannot be looked up. No connection to the directory."
    assert refusal.value.hints == ("Check it.",)


async def test_groups_that_are_looked_up_are_principals_unless_they_stand_for_others() -> None:
    directory = InMemoryDirectory({USER: frozenset({"g1", "*", "org:other", ""})})
    user = await authenticate(FULL, AZURE, directory)
    assert principals(user) == (USER, "g1", "*")


async def looked_up(directory: InMemoryDirectory, user_id: str = USER, **changes: Any) -> UserContext | str:
    try:
        return await user_from_directory(user_id, TENANT, settings(**changes), directory)
    except GroundworkError as refusal:
        return refusal.code


async def test_somebody_of_another_platform_is_whom_the_directory_says() -> None:
    directory = InMemoryDirectory({USER: LOOKED_UP})
    directory.people[USER] = DirectoryPerson(is_guest=False, department="Legal", name="Eva Lind")
    assert await looked_up(directory) == UserContext(
        user_id=USER, org_id=TENANT, department="Legal", groups=("g7", "g8", "g9"), name="Eva Lind"
    )


async def test_a_guest_of_another_platform_is_a_guest() -> None:
    directory = InMemoryDirectory({USER: LOOKED_UP})
    directory.people[USER] = DirectoryPerson(is_guest=True, department="Legal")
    as_guest = await looked_up(directory)
    assert isinstance(as_guest, UserContext)
    assert (as_guest.org_id, as_guest.department) == (None, None)
    assert await looked_up(directory, guests="refused") == CLOSED


@pytest.mark.parametrize(
    ("changes", "user_id", "expected"),
    [
        ({}, OTHER, CLOSED),
        ({}, "", NOBODY),
        ({}, "org:x", NOBODY),
        ({"allowed_tenants": OTHER}, USER, CLOSED),
        ({"group_overage": "refuse"}, USER, CLOSED),
    ],
)
async def test_whom_it_does_not_know_or_may_not_look_up_is_let_in_nowhere(
    changes: dict[str, Any], user_id: str, expected: str
) -> None:
    assert await looked_up(InMemoryDirectory({USER: LOOKED_UP}), user_id, **changes) == expected


async def test_strangers_are_not_named_to_the_directory() -> None:
    directory = InMemoryDirectory({USER: LOOKED_UP})
    await looked_up(directory, allowed_tenants=OTHER)
    assert directory.asked == []


async def test_without_a_look_up_they_have_no_groups() -> None:
    user = await looked_up(InMemoryDirectory({USER: LOOKED_UP}), group_overage="ignore")
    assert isinstance(user, UserContext)
    assert (user.groups, user.org_id) == ((), TENANT)


async def test_as_many_groups_as_a_token_lists_fit_into_the_hosts_headers() -> None:
    groups = [str(uuid5(NAMESPACE_URL, str(number))) for number in range(200)]
    claims = [("groups", group) for group in groups]
    principal = base64.b64encode(
        json.dumps(
            {"auth_typ": "aad", "claims": [{"typ": typ, "val": val} for typ, val in (ME, *claims)]},
            separators=(",", ":"),
        ).encode()
    ).decode()
    token = base64.b64encode(json.dumps({"oid": USER, "groups": groups}).encode())
    assert len(principal) + len(token) < 32 * 1024 - 2048  # leaves room for other headers
    user = await authenticate({"x-ms-client-principal": principal}, AZURE, InMemoryDirectory())
    assert user.groups == tuple(groups)
