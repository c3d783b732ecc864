"""Tests for comparing an index with its schema: additions are applied, other changes need a new index."""

from typing import Any

import pytest

from shared.retrieval.index_admin import changed_attributes, with_missing_parts

EXISTING: dict[str, Any] = {
    "@odata.etag": '"1"',
    "name": "blocks",
    "fields": [
        {"name": "id", "type": "Edm.String", "key": True, "searchable": False, "retrievable": True},
        {"name": "vector", "type": "Collection(Edm.Single)", "dimensions": 3, "key": None},
        {"name": "added_by_hand", "type": "Edm.String"},
    ],
    "vectorSearch": {"profiles": [{"name": "near", "algorithm": "tuned"}], "algorithms": []},
    "semantic": None,
}


def define_index(*fields: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return {"name": "blocks", "fields": list(fields), **parts}


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ({"name": "vector", "dimensions": 3, "key": False}, []),
        ({"name": "vector", "dimensions": 5}, ["vector: dimensions 3, not 5"]),
        ({"name": "id", "filterable": True}, ["id: filterable None, not True"]),
        ({"name": "id", "retrievable": False}, []),
        ({"name": "new", "type": "Edm.Int32"}, []),
    ],
    ids=["the same", "other dimensions", "newly filterable", "what may change", "a new field"],
)
def test_only_what_needs_a_new_index_counts_as_changed(field: dict[str, Any], changes: list[str]) -> None:
    assert changed_attributes(EXISTING, define_index(field)) == changes


def test_what_is_there_already_changes_nothing() -> None:
    assert with_missing_parts(EXISTING, define_index({"name": "id", "type": "Edm.String"})) == EXISTING


def test_missing_fields_profiles_and_parts_are_added_and_tuned_ones_kept() -> None:
    grown = with_missing_parts(
        EXISTING,
        define_index(
            {"name": "language", "type": "Edm.String"},
            vectorSearch={
                "profiles": [{"name": "near", "algorithm": "a"}, {"name": "far", "algorithm": "b"}]
            },
            semantic={"defaultConfiguration": "s"},
        ),
    )
    assert [field["name"] for field in grown["fields"]] == ["id", "vector", "added_by_hand", "language"]
    assert grown["vectorSearch"]["profiles"] == [
        {"name": "near", "algorithm": "tuned"},
        {"name": "far", "algorithm": "b"},
    ]
    assert grown["semantic"] == {"defaultConfiguration": "s"}
    assert grown["@odata.etag"] == '"1"'
