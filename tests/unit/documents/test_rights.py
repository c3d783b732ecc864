"""Rights: from sidecar, metadata and default; who may see and who may change a document."""

import json
from datetime import UTC, datetime

import pytest

from shared.access.models import UserContext
from shared.documents.rights import decide_rights, is_admin, may_change, may_see
from shared.documents.state import DocumentState, Rights


def test_the_owner_is_always_in_the_list() -> None:
    rights = decide_rights({"acl": "sales", "owner_id": "u1"}, None, "")
    assert (rights.acl, rights.owner_id, rights.warning) == (("sales", "u1"), "u1", None)


@pytest.mark.parametrize("acl", ["a, b,,", '["b", "a"]', " b , a "])
def test_a_list_is_names_with_commas_or_json(acl: str) -> None:
    assert decide_rights({"acl": acl}, None, "").acl == ("a", "b")


def test_the_sidecar_wins_over_metadata_and_metadata_over_the_default() -> None:
    metadata = {"acl": "from-metadata", "project_id": "p1"}
    assert decide_rights(metadata, '["from-sidecar"]', "from-default").acl == ("from-sidecar",)
    assert decide_rights(metadata, '{"owner_id": "u2"}', "from-default").acl == ("from-metadata", "u2")
    assert decide_rights({}, None, "x, y").acl == ("x", "y")
    assert decide_rights(metadata, None, "x").project_id == "p1"


def test_where_it_was_taken_from_comes_from_either_and_only_if_it_is_an_address() -> None:
    metadata = {"acl": "a", "source_url": "https://video.example/talk"}
    assert decide_rights(metadata, None, "").source_url == "https://video.example/talk"
    other = '{"source_url": "https://video.example/other"}'
    assert decide_rights(metadata, other, "").source_url == "https://video.example/other"
    hostile = decide_rights({"acl": "a", "source_url": "javascript:alert(1)"}, None, "")
    assert (hostile.source_url, hostile.acl, hostile.warning) == (None, ("a",), None)


def test_an_empty_list_is_a_list_and_not_the_default() -> None:
    assert decide_rights({"owner_id": "u1"}, '{"acl": []}', "everybody").acl == ("u1",)


@pytest.mark.parametrize(
    "sidecar",
    [
        "not json",
        "",
        '"everybody"',
        "17",
        '{"acl": {"a": 1}}',
        '{"acl": [1]}',
        '{"acl": null}',
        '{"access": ["a"]}',
        '{"acl": "[broken"}',
        '{"acl": ["a"], "owner_id": 5}',
        json.dumps([str(number) for number in range(501)]),
    ],
)
def test_a_sidecar_that_is_not_understood_leaves_the_owner_alone(sidecar: str) -> None:
    rights = decide_rights({"acl": "everybody", "owner_id": "u1"}, sidecar, "everybody")
    assert rights.acl == ("u1",)
    assert rights.warning is not None


def test_without_list_and_owner_nobody_reads_it_and_it_says_so() -> None:
    rights = decide_rights({}, None, "")
    assert rights.acl == ()
    assert "Nobody can read" in (rights.warning or "")


ANNA = UserContext(user_id="anna", groups=("hr",))
OLGA = UserContext(user_id="olga", roles=("admin",))


def state(
    applied: tuple[str, ...], wanted: tuple[str, ...], *, indexed: bool, owner: str = ""
) -> DocumentState:
    return DocumentState(
        doc_id="d",
        blob_name="b",
        filename="f",
        updated_at=datetime(2026, 1, 1, tzinfo=UTC),
        blob_etag="0x1" if indexed else "",
        rights=Rights(acl=applied),
        wanted_rights=Rights(acl=wanted, owner_id=owner or None),
    )


@pytest.mark.parametrize(
    ("applied", "wanted", "indexed", "seen"),
    [
        ((), ("hr",), False, True),
        ((), (), False, False),
        (("hr",), ("hr",), True, True),
        (("hr",), (), True, False),
        ((), ("hr",), True, False),
    ],
)
def test_while_rights_change_the_narrower_hold(
    applied: tuple[str, ...], wanted: tuple[str, ...], indexed: bool, seen: bool
) -> None:
    assert may_see(ANNA, state(applied, wanted, indexed=indexed)) is seen


def test_owners_and_administrators_change_and_readers_do_not() -> None:
    assert may_change(ANNA, state((), (), indexed=False, owner="anna"))
    assert may_change(OLGA, state((), (), indexed=False))
    assert not may_change(ANNA, state(("hr",), ("hr",), indexed=True, owner="ben"))
    assert not may_change(ANNA, state(("anna",), ("anna",), indexed=True))


def test_the_role_makes_an_administrator_and_a_group_of_that_name_does_not() -> None:
    assert is_admin(OLGA)
    assert not is_admin(UserContext(user_id="eve", groups=("admin",), department="admin"))
    assert not may_see(OLGA, state(("hr",), ("hr",), indexed=True))
