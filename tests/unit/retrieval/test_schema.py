"""Tests for the index definitions: the fields of rows, and the version of each schema."""

import hashlib
import json

import pytest

from shared.documents.models import Block
from shared.platform.search import IndexRow
from shared.retrieval.models import DocumentRecord
from shared.retrieval.schema import INDEX_VERSIONS, content_index, documents_index, memory_index

CONTENT = {field["name"]: field for field in content_index("blocks", 384)["fields"]}
DOCUMENTS = {field["name"]: field for field in documents_index("documents")["fields"]}


def test_every_field_of_a_block_and_of_a_document_has_its_column() -> None:
    assert set(Block.model_fields) <= set(CONTENT)
    assert set(DocumentRecord.model_fields) | {"names", "words"} == set(DOCUMENTS)


def test_what_a_document_is_recognised_by_is_searched_and_never_read() -> None:
    assert all(
        DOCUMENTS[name]["searchable"] and not DOCUMENTS[name]["retrievable"] for name in ("names", "words")
    )


def test_vectors_have_the_length_of_the_settings_and_can_be_read_for_a_copy() -> None:
    vectors = [field for field in CONTENT.values() if field["type"] == "Collection(Edm.Single)"]
    assert [field["name"] for field in vectors] == ["content_vector", "image_caption_vector"]
    assert all(field["dimensions"] == 384 and field["retrievable"] for field in vectors)


def test_both_indexes_can_be_trimmed_by_rights() -> None:
    for fields in (CONTENT, DOCUMENTS):
        assert fields["access_control_list"]["filterable"]
        assert fields["access_control_list"]["type"] == "Collection(Edm.String)"
        assert [name for name, field in fields.items() if field.get("key")] == [next(iter(fields))]


# Attributes that can't be changed once a field exists. Adding a field doesn't affect this hash.
FIXED = ("type", "key", "searchable", "filterable", "sortable", "facetable", "analyzer")
SCHEMAS = {
    "content": content_index("any", 64),
    "documents": documents_index("any"),
    "memory": memory_index("any", 64),
}
# Maps each version to the number of its initial fields and the hash of their fixed attributes.
KNOWN: dict[str, dict[int, tuple[int, str]]] = {
    "content": {1: (17, "b363f22942b1")},
    "documents": {1: (23, "fc0fbba322cc")},
    "memory": {1: (8, "20eaf72de0ae")},
}


def fingerprint(fields: list[IndexRow]) -> str:
    fixed = [[field["name"], [field.get(name) for name in FIXED]] for field in fields]
    return hashlib.sha256(json.dumps(fixed).encode()).hexdigest()[:12]


@pytest.mark.parametrize("which", SCHEMAS)
def test_fields_of_a_version_stay_as_they_are(which: str) -> None:
    """If this test fails, raise INDEX_VERSIONS and add the new version to `KNOWN`, or append the new
    fields.
    """
    count, expected = KNOWN[which][INDEX_VERSIONS[which]]
    assert fingerprint(SCHEMAS[which]["fields"][:count]) == expected


@pytest.mark.parametrize("which", SCHEMAS)
def test_another_analyzer_is_another_version(which: str) -> None:
    first = [dict(field) for field in SCHEMAS[which]["fields"]]
    second = [dict(field) for field in first]
    second[0]["facetable"] = True
    assert fingerprint(first) != fingerprint(second)
