"""`SearchAdmin` over the aio index client of azure-search-documents."""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from shared.clients.connection import Connection
from shared.clients.index_definition import VALUE_ATTRIBUTES, changed_attributes, with_missing_parts
from shared.clients.search_connections import ask
from shared.clients.write_targets import read_aliases, written_together
from shared.errors import ConfigurationError, ConflictError, GroundworkError
from shared.models.search import IndexRow
from shared.ports import SearchAdmin
from shared.telemetry import get_logger

if TYPE_CHECKING:
    from azure.search.documents.indexes.aio import SearchIndexClient

_MAX_RIVALS = 5  # processes that start at the same moment with a new version


class AzureSearchAdmin(SearchAdmin):
    """Creates indexes, and adds fields to them. Deletes nothing."""

    def __init__(self, connection: "Connection[SearchIndexClient]", *, timeout_s: float) -> None:
        """`timeout_s` limits one `ensure_index`, all its calls and tries together."""
        self._connection = connection
        self._timeout_s = timeout_s

    async def ensure_index(self, definition: IndexRow) -> bool:
        """Create the index, or add what it lacks; True if anything changed.

        `definition` has the shape of the REST API's body. Processes may call this at the same time. A field
        that is indexed in another way stays so: rows fit, and questions that need the new way fail alone.

        Raises:
            ConfigurationError: a field exists and holds other values than those wanted; no row would fit.
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


async def _ensured(client: "SearchIndexClient", definition: IndexRow) -> str | None:
    from azure.core.exceptions import ResourceModifiedError

    for _ in range(_MAX_RIVALS):
        with suppress(ResourceModifiedError):  # another process extends it, too: see what is left to do
            return await _create(client, definition) or await _extend(client, definition)
    return await _extend(client, definition)


async def _create(client: "SearchIndexClient", definition: IndexRow) -> str | None:
    from azure.core.exceptions import ResourceExistsError

    if await _existing(client, definition["name"]) is not None:
        return None
    try:
        await client.create_index(definition)
    except ResourceExistsError:
        return None  # another process was faster
    return "create_index"


async def _extend(client: "SearchIndexClient", definition: IndexRow) -> str | None:
    existing = await _existing(client, definition["name"])
    if existing is None:
        raise ConflictError(f"The search index {definition['name']} is being deleted.", "Try again.")
    changed = changed_attributes(existing, definition)
    if not changed and with_missing_parts(existing, definition) == existing:
        return None
    together = written_together(await read_aliases(client), definition["name"])
    if changed and not together:
        other_values = changed_attributes(existing, definition, VALUE_ATTRIBUTES)
        if other_values:
            raise _made_differently(definition["name"], other_values)
        get_logger().warning("index.differs", index_name=definition["name"], reason="; ".join(changed))
    # During a migration old and new are both written, and both need what is new; how they differ is known.
    changes = [await _add_parts(client, name, definition) for name in together or (definition["name"],)]
    return next((change for change in changes if change), None)


async def _add_parts(client: "SearchIndexClient", name: str, definition: IndexRow) -> str | None:
    from azure.core import MatchConditions

    existing = await _existing(client, name)
    wanted = with_missing_parts(existing or {}, definition)
    if existing is None or wanted == existing:
        return None
    # With the etag: an administrator who changes the index at this moment loses nothing.
    await client.create_or_update_index(wanted, match_condition=MatchConditions.IfNotModified)
    return "update_index"


def _made_differently(name: str, changed: list[str]) -> ConfigurationError:
    return ConfigurationError(
        f"The search index {name} was made differently: {'; '.join(changed)}.",
        "Name another index in AZURE_SEARCH_CONTENT_INDEX, AZURE_SEARCH_DOCUMENTS_INDEX or "
        "AZURE_SEARCH_MEMORY_INDEX, and ingest the documents again.",
        "If dimensions differ: EMBEDDING_MODEL and EMBEDDING_DIMENSIONS belong to the index.",
    )


async def _existing(client: "SearchIndexClient", name: str) -> IndexRow | None:
    from azure.core.exceptions import ResourceNotFoundError

    try:
        found: Any = await client.get_index(name)
    except ResourceNotFoundError:
        return None
    return dict(found.as_dict())


def _read_status(status: int, message: str) -> GroundworkError | None:
    if status == 400:
        return ConfigurationError(f"The search service refused the index definition: {message}")
    return None
