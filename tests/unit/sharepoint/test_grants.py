"""Tests for reading permission lists of Graph and SharePoint."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.sharepoint.grants import Access, Rosters, decide_access, grants_of, grants_of_claim
from shared.sharepoint.graph_models import Permission
from tests.fakes.sharepoint_server import TENANT, claim, group, link, site_group, user
from tests.unit.sharepoint.tenant import ANNA, BEN, STAFF

NOW = datetime(2026, 11, 2, 10, tzinfo=UTC)


def access(*entries: dict[str, Any], rosters: Rosters | None = None, owner: str | None = None) -> Access:
    permissions = [Permission.model_validate(entry) for entry in entries]
    return decide_access(grants_of(permissions, NOW), rosters or Rosters(), tenant=TENANT, owner=owner)


def test_people_and_groups_keep_their_ids_in_lower_case() -> None:
    assert access(user(ANNA.upper()), group(STAFF)).acl == (ANNA, STAFF)


@pytest.mark.parametrize(
    "entry",
    [
        {"roles": ["read"]},
        {"roles": ["read"], "grantedToV2": {"application": {"id": ANNA}}},
        {"roles": ["read"], "grantedToV2": {"user": {"displayName": "Pending guest"}}},
        {"roles": ["read"], "grantedToV2": {"user": {"id": "*"}}},
        {"roles": ["read"], "grantedToV2": {"group": {"id": "org:other"}}},
        {"roles": ["sp.limited access"], "grantedToV2": {"user": {"id": ANNA}}},
        {"roles": [], "grantedToV2": {"user": {"id": ANNA}}},
        link("anonymous"),
        link("organization", [ANNA]),
        claim("c:0!.s|windows"),
        claim(f"c:0t.c|tenant|{STAFF} or 1"),
        claim("c:0t.c|tenant|*"),
        user(ANNA, expirationDateTime=(NOW - timedelta(seconds=1)).isoformat()),
    ],
)
def test_grants_that_are_not_understood_open_nothing(entry: dict[str, Any]) -> None:
    assert access(entry) == Access()


def test_a_site_group_without_a_roster_closes_the_document() -> None:
    assert access(user(ANNA), site_group("5")) == Access(problem="permissions_unreadable")
    unreadable = Rosters(site_groups={"5": None})
    assert access(user(ANNA), site_group("5"), rosters=unreadable).acl == ()
    assert access(site_group("5"), rosters=Rosters(site_groups={"5": frozenset({BEN})})).acl == (BEN,)


def test_the_owner_of_a_onedrive_is_added() -> None:
    assert access(user(ANNA), owner=BEN.upper()).acl == (ANNA, BEN)


def test_the_earliest_end_of_the_grants_that_count_is_known() -> None:
    soon, later = NOW + timedelta(hours=1), NOW + timedelta(hours=2)
    entries = [
        user(ANNA, expirationDateTime=later.isoformat()),
        user(BEN, expirationDateTime=soon.isoformat()),
        user(STAFF, "sp.none", expirationDateTime=NOW.isoformat()),
    ]
    assert grants_of([Permission.model_validate(entry) for entry in entries], NOW).expires_at == soon


def test_claims_name_members_owners_people_and_everyone() -> None:
    assert grants_of_claim(f"c:0t.c|tenant|{STAFF}").principals == {STAFF}
    assert grants_of_claim(f"c:0o.c|federateddirectoryclaimprovider|{STAFF}").principals == {STAFF}
    assert grants_of_claim(f"c:0o.c|federateddirectoryclaimprovider|{STAFF}_o").owned_groups == {STAFF}
    assert grants_of_claim("i:0#.f|membership|Anna@contoso.com").logins == {"anna@contoso.com"}
    assert grants_of_claim(f"c:0-.f|rolemanager|spo-grid-all-users/{TENANT}").everyone
    assert grants_of_claim("c:0(.s|true").everyone
