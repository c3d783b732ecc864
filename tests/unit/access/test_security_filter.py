"""Tests for the security filter of searches, which excludes documents in case of doubt."""

import pytest

from shared.access.models import UserContext
from shared.access.security_filter import (
    in_thread,
    is_in_reach,
    may_read,
    principals,
    readable_databases,
    security_filter,
)
from shared.platform.database_sources import DatabaseSource
from shared.platform.errors import AccessDeniedError

ANNA = UserContext(user_id="anna", department="engineering", org_id="acme", groups=("hr", "board"))


def test_every_principal_of_a_user_counts_and_so_does_everybody() -> None:
    assert principals(ANNA) == ("anna", "engineering", "hr", "board", "org:acme", "*")


def test_roles_open_no_document() -> None:
    assert "admin" not in principals(UserContext(user_id="u", roles=("admin",)))


def test_blank_claims_are_no_principals() -> None:
    assert principals(UserContext(user_id="u", department="", groups=("", " "))) == ("u", "*")


def test_without_a_user_there_is_no_filter_but_a_refusal() -> None:
    with pytest.raises(AccessDeniedError):
        security_filter(None)


@pytest.mark.parametrize("user_id", ["", "   "])
def test_a_nameless_user_is_refused(user_id: str) -> None:
    with pytest.raises(AccessDeniedError):
        security_filter(UserContext(user_id=user_id))


def test_the_filter_names_every_principal_once() -> None:
    assert security_filter(ANNA) == (
        "(access_control_list/any(acl: search.in(acl, 'anna|engineering|hr|board|org:acme|*', '|')))"
        " and (thread_id eq null)"
    )


def test_a_project_and_a_department_narrow_what_is_readable() -> None:
    user = UserContext(user_id="anna", within={"project_id": ("p1", "p2"), "department": ("hr",)})
    assert security_filter(user) == (
        "(access_control_list/any(acl: search.in(acl, 'anna|*', '|'))) and (thread_id eq null)"
        " and (search.in(department, 'hr', '|')) and (search.in(project_id, 'p1|p2', '|'))"
    )


def test_the_files_of_a_thread_are_found_by_its_runs_alone() -> None:
    bound = in_thread(UserContext(user_id="anna"), "t'1")
    assert security_filter(bound) == (
        "(access_control_list/any(acl: search.in(acl, 'anna|*', '|')))"
        " and (thread_id eq null or thread_id eq 't''1')"
    )
    assert [is_in_reach(bound, one) for one in ("", "t'1", "t2")] == [True, True, False]
    assert [is_in_reach(ANNA, one) for one in ("", "t'1")] == [True, False]


def test_databases_are_readable_by_their_lists_unless_only_some_documents_count() -> None:
    orders, wages = (
        DatabaseSource(name=name, host="db", database="d", user="u", views=("a.b",), access=(principal,))
        for name, principal in (("orders", "hr"), ("wages", "ben"))
    )
    assert readable_databases(ANNA, (orders, wages)) == {"db-orders": orders}
    narrowed = ANNA.model_copy(update={"within": {"project_id": ("p1",)}})
    assert readable_databases(narrowed, (orders, wages)) == {}


def test_a_quote_in_a_claim_stays_inside_its_literal() -> None:
    hostile = UserContext(user_id="x') or true or ('")
    assert "search.in(acl, 'x'') or true or (''|*', '|')" in security_filter(hostile)


@pytest.mark.parametrize(
    ("acl", "readable"), [(("hr",), True), (("*",), True), (("ben",), False), ((), False)]
)
def test_a_list_at_hand_is_judged_the_same_way(acl: tuple[str, ...], readable: bool) -> None:
    assert may_read(ANNA, acl) is readable
