"""Tests for the rights to read and to change a document."""

from datetime import UTC, datetime

import pytest

from shared.access.models import UserContext
from shared.access.security_filter import in_thread
from shared.documents.rights import is_admin, may_change, may_see
from shared.documents.state import DocumentState, Rights

ANNA = UserContext(user_id="anna", groups=("hr",))
OLGA = UserContext(user_id="olga", roles=("admin",))


def state(
    applied: tuple[str, ...], target_acl: tuple[str, ...], *, indexed: bool, owner: str = ""
) -> DocumentState:
    return DocumentState(
        doc_id="d",
        blob_name="b",
        filename="f",
        updated_at=datetime(2026, 1, 1, tzinfo=UTC),
        blob_etag="0x1" if indexed else "",
        rights=Rights(acl=applied),
        wanted_rights=Rights(acl=target_acl, owner_id=owner or None),
    )


@pytest.mark.parametrize(
    ("applied", "target_acl", "indexed", "seen"),
    [
        ((), ("hr",), False, True),
        ((), (), False, False),
        (("hr",), ("hr",), True, True),
        (("hr",), (), True, False),
        ((), ("hr",), True, False),
    ],
)
def test_while_rights_change_the_narrower_hold(
    applied: tuple[str, ...], target_acl: tuple[str, ...], indexed: bool, seen: bool
) -> None:
    assert may_see(ANNA, state(applied, target_acl, indexed=indexed)) is seen


def test_owners_and_administrators_change_and_readers_do_not() -> None:
    assert may_change(ANNA, state((), (), indexed=False, owner="anna"))
    assert may_change(OLGA, state((), (), indexed=False))
    assert not may_change(ANNA, state(("hr",), ("hr",), indexed=True, owner="ben"))
    assert not may_change(ANNA, state(("anna",), ("anna",), indexed=True))


def test_a_file_for_one_conversation_is_seen_there_alone_and_changed_by_nobody() -> None:
    file = state(("anna",), ("anna",), indexed=True, owner="anna")
    file = file.model_copy(update={"blob_name": "conversation-files/t1/f"})
    assert [may_see(in_thread(ANNA, one), file) for one in ("", "t1", "t2")] == [False, True, False]
    assert not may_see(in_thread(OLGA, "t1"), file)
    assert not any(may_change(in_thread(one, "t1"), file) for one in (ANNA, OLGA))


def test_the_role_makes_an_administrator_and_a_group_of_that_name_does_not() -> None:
    assert is_admin(OLGA)
    assert not is_admin(UserContext(user_id="eve", groups=("admin",), department="admin"))
    assert not may_see(OLGA, state(("hr",), ("hr",), indexed=True))
