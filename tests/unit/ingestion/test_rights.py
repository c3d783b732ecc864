"""Tests for access rights from sidecars, metadata and the default."""

import json

import pytest

from shared.ingestion.rights import decide_rights, read_rights
from shared.platform.names import DOCUMENTS
from tests.fakes.services import fake_services


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


@pytest.mark.parametrize(("blanks", "acl"), [(60 * 1024, ("sales",)), (64 * 1024, ())])
async def test_a_sidecar_that_is_too_large_closes_the_document(blanks: int, acl: tuple[str, ...]) -> None:
    services = fake_services()
    await services.blobs.write(DOCUMENTS, "a.md", b"text", metadata={"acl": "everybody"})
    await services.blobs.write(DOCUMENTS, "a.md.acl.json", b'["sales"]' + b" " * blanks)
    properties = await services.blobs.properties(DOCUMENTS, "a.md")
    assert properties is not None
    rights, etag = await read_rights(properties, services)
    assert rights.acl == acl
    assert etag
