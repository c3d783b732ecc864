"""Creation and extension of search indexes through the async client of azure-search-documents."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from azure.core import MatchConditions
from azure.core.exceptions import ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.search.documents.indexes.aio import SearchIndexClient

from shared.platform.calls import ask
from shared.platform.connections import Connection
from shared.platform.errors import ConfigurationError, ConflictError, GroundworkError
from shared.platform.search import IndexRow, SearchAdmin
from shared.platform.telemetry import get_logger
from shared.retrieval.mirrored_index import read_aliases, written_together

# Field attributes that cannot be changed after creation (retrievable, searchAnalyzer and synonymMaps can).
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

# Attributes that determine the stored values. Rows remain valid as long as these are equal; other attributes
# only affect indexing.
VALUE_ATTRIBUTES = ("type", "key", "dimensions", "vectorEncoding")


def changed_attributes(
    existing: IndexRow, target: IndexRow, attributes: Sequence[str] = FIXED_ATTRIBUTES
) -> list[str]:
    """Describe each incompatible change of an existing field, such as "content_vector: dimensions 384, not
    1536".

    Only attributes in `target` are compared; fields only in `existing` are ignored.
    """
    fields: dict[str, IndexRow] = {field["name"]: field for field in existing["fields"]}
    return [
        f"{field['name']}: {attribute} {fields[field['name']].get(attribute)}, not {field[attribute]}"
        for field in target["fields"]
        if field["name"] in fields
        for attribute in attributes
        if attribute in field and not _same(fields[field["name"]].get(attribute), field[attribute])
    ]


def with_missing_parts(existing: IndexRow, target: IndexRow) -> IndexRow:
    """Return `existing` plus the keys and named list entries that only `target` has. Null counts as missing.

    Existing values are kept, because an administrator may have tuned them.
    """
    merged = dict(existing)
    for key, value in target.items():
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


def _same(present: Any, target: Any) -> bool:
    # Null equals false, because the service may omit false values.
    return (present or None) == (target or None)


_MAX_RIVALS = 5  # number of attempts, as many as processes may start together and extend the same index


class AzureSearchAdmin(SearchAdmin):
    """Creates indexes and adds missing parts to existing ones. It never deletes anything."""

    def __init__(self, connection: Connection[SearchIndexClient], *, timeout_s: float) -> None:
        """Create the admin client. `timeout_s` limits one `ensure_index` call, including retries."""
        self._connection = connection
        self._timeout_s = timeout_s

    async def ensure_index(self, definition: IndexRow) -> bool:
        """Create the index, or add its missing fields and settings. Return whether anything changed.

        `definition` is a REST API body. Concurrent calls are safe. A field that is indexed differently
        is not changed: rows still fit, and only queries that need the new indexing fail.

        Raises:
            ConfigurationError: an existing field has another type, so no row would fit.
        """
        change = await ask(
            self._connection,
            lambda client: _ensured(client, definition),
            _read_status,
            timeout_s=self._timeout_s,
        )
        if change:
            get_logger().info("index.changed", azure_operation=change, index_name=definition["name"])
        return bool(change)


async def _ensured(client: SearchIndexClient, definition: IndexRow) -> str | None:
    for _ in range(_MAX_RIVALS):
        # Raised if another process has changed the index, so check again.
        with suppress(ResourceModifiedError):
            return await _create(client, definition) or await _extend(client, definition)
    return await _extend(client, definition)


async def _create(client: SearchIndexClient, definition: IndexRow) -> str | None:
    if await _existing(client, definition["name"]) is not None:
        return None
    try:
        await client.create_index(definition)
    except ResourceExistsError:
        return None  # another process has created it first
    return "create_index"


async def _extend(client: SearchIndexClient, definition: IndexRow) -> str | None:
    existing = await _existing(client, definition["name"])
    if existing is None:
        raise ConflictError(
            f"The search index {definition['name']} is being deleted.", "Try again in a minute."
        )
    changed = changed_attributes(existing, definition)
    if not changed and with_missing_parts(existing, definition) == existing:
        return None
    together = written_together(await read_aliases(client), definition["name"])
    if changed and not together:
        other_values = changed_attributes(existing, definition, VALUE_ATTRIBUTES)
        if other_values:
            raise _made_differently(definition["name"], other_values)
        get_logger().warning("index.outdated", index_name=definition["name"], reason="; ".join(changed))
    # Both indexes receive writes during a migration, so both need new fields. Other differences between them
    # are expected.
    changes = [await _add_parts(client, name, definition) for name in together or (definition["name"],)]
    return next((change for change in changes if change), None)


async def _add_parts(client: SearchIndexClient, name: str, definition: IndexRow) -> str | None:
    existing = await _existing(client, name)
    target = with_missing_parts(existing or {}, definition)
    if existing is None or target == existing:
        return None
    # The etag must match, so that an administrator's concurrent change isn't overwritten.
    await client.create_or_update_index(target, match_condition=MatchConditions.IfNotModified)
    return "update_index"


def _made_differently(name: str, changed: list[str]) -> ConfigurationError:
    return ConfigurationError(
        f"The definition of the search index {name} differs from the required one: {'; '.join(changed)}.",
        "Set another index in AZURE_SEARCH_CONTENT_INDEX, AZURE_SEARCH_DOCUMENTS_INDEX or "
        "AZURE_SEARCH_MEMORY_INDEX, and ingest the documents again.",
        "If dimensions differ: EMBEDDING_MODEL and EMBEDDING_DIMENSIONS belong to the index.",
    )


async def _existing(client: SearchIndexClient, name: str) -> IndexRow | None:
    try:
        index: Any = await client.get_index(name)
    except ResourceNotFoundError:
        return None
    return dict(index.as_dict())


def _read_status(status: int, message: str) -> GroundworkError | None:
    if status == 400:
        return ConfigurationError(f"The search service refused the index definition: {message}")
    return None
