"""Index definitions in the REST API's JSON: what an existing index lacks, and what it cannot become. Pure."""

from collections.abc import Sequence
from typing import Any

from shared.models.search import IndexRow

# What the service refuses to change in a field (retrievable, searchAnalyzer, synonymMaps may change).
# Source: "Update or rebuild an index", learn.microsoft.com.
FIXED_ATTRIBUTES = (
    "type",
    "key",
    "searchable",
    "filterable",
    "sortable",
    "facetable",
    "analyzer",
    "indexAnalyzer",
    "normalizer",
    "dimensions",
    "vectorEncoding",
)

# Those that say what a value is; the others say how it is indexed. Rows fit as long as these are the same.
VALUE_ATTRIBUTES = ("type", "key", "dimensions", "vectorEncoding")


def changed_attributes(
    existing: IndexRow, wanted: IndexRow, attributes: Sequence[str] = FIXED_ATTRIBUTES
) -> list[str]:
    """What would have to change in existing fields, such as "content_vector: dimensions 384, not 1536".

    Only attributes that `wanted` states are compared; fields that `existing` alone has do not matter.
    """
    fields: dict[str, IndexRow] = {field["name"]: field for field in existing["fields"]}
    return [
        f"{field['name']}: {attribute} {fields[field['name']].get(attribute)}, not {field[attribute]}"
        for field in wanted["fields"]
        if field["name"] in fields
        for attribute in attributes
        if attribute in field and not _same(fields[field["name"]].get(attribute), field[attribute])
    ]


def with_missing_parts(existing: IndexRow, wanted: IndexRow) -> IndexRow:
    """`existing`, and what `wanted` has beyond it: keys that are absent or null, named entries of lists.

    What exists keeps its value: an administrator may have tuned it.
    """
    merged = dict(existing)
    for key, value in wanted.items():
        present = existing.get(key)
        if present is None:
            merged[key] = value
        elif isinstance(present, dict) and isinstance(value, dict):
            merged[key] = with_missing_parts(present, value)
        elif _is_named(value) and _is_named(present):
            names = {entry["name"] for entry in present}
            merged[key] = [*present, *(entry for entry in value if entry["name"] not in names)]
    return merged


def _is_named(value: Any) -> bool:
    return isinstance(value, Sequence) and all(isinstance(entry, dict) and "name" in entry for entry in value)


def _same(present: Any, wanted: Any) -> bool:
    return (present or None) == (wanted or None)  # the service may leave out what is false
