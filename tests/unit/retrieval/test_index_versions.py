"""A schema that an index in use cannot learn gets another version."""

import hashlib
import json

import pytest

from shared.platform.search import IndexRow
from shared.retrieval.schema import INDEX_VERSIONS, content_index, documents_index, memory_index

# Of the attributes that a field keeps for life. A new field changes nothing here.
FIXED = ("type", "key", "searchable", "filterable", "sortable", "facetable", "analyzer")
SCHEMAS = {
    "content": content_index("any", 64),
    "documents": documents_index("any"),
    "memory": memory_index("any", 64),
}
# By version: the fields that it began with, and the hash of what they are.
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
    """If this fails: raise INDEX_VERSIONS and add the new version here, or put new fields last."""
    count, known = KNOWN[which][INDEX_VERSIONS[which]]
    assert fingerprint(SCHEMAS[which]["fields"][:count]) == known


@pytest.mark.parametrize("which", SCHEMAS)
def test_another_analyzer_is_another_version(which: str) -> None:
    first = [dict(field) for field in SCHEMAS[which]["fields"]]
    second = [dict(field) for field in first]
    second[0]["facetable"] = True
    assert fingerprint(first) != fingerprint(second)
