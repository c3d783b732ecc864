"""Builds what reads and writes the indexes, and what moves one to a new index. Part of wiring."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shared.settings import Settings

if TYPE_CHECKING:
    from shared.clients.connections import Connections
    from shared.clients.index_comparison import OnPage
    from shared.clients.index_migration import IndexMigration
    from shared.clients.mirrored_index import MirroredIndex, OpensIndex
    from shared.clients.search_admin import AzureSearchAdmin

KEYS = {"content": "block_id", "documents": "doc_id", "memory": "memory_id"}


@dataclass(frozen=True)
class SearchIndexes:
    """The three indexes, by what they hold; and what makes them."""

    admin: "AzureSearchAdmin"
    content: "MirroredIndex"
    documents: "MirroredIndex"
    memory: "MirroredIndex"


def search_indexes(to: "Connections", settings: Settings) -> SearchIndexes:
    """The indexes of the settings. Nothing is opened yet."""
    from shared.clients.mirrored_index import MirroredIndex
    from shared.clients.search_admin import AzureSearchAdmin
    from shared.clients.write_targets import WriteTargets

    targets = WriteTargets(to.search_admin, timeout_s=settings.search_timeout_s)

    def index(name: str, which: str) -> MirroredIndex:
        opens = opener(to, KEYS[which], settings.search_timeout_s)
        return MirroredIndex(opens(name), name, targets, opens)

    return SearchIndexes(
        admin=AzureSearchAdmin(to.search_admin, timeout_s=settings.search_timeout_s),
        content=index(settings.azure_search_content_index, "content"),
        documents=index(settings.azure_search_documents_index, "documents"),
        memory=index(settings.azure_search_memory_index, "memory"),
    )


def index_migration(to: "Connections", settings: Settings, which: str, on_page: "OnPage") -> "IndexMigration":
    """What moves "content", "documents" or "memory" to a new index; `on_page` is told of each page."""
    from shared.clients.index_migration import IndexMigration
    from shared.core.index_schema import INDEX_VERSIONS, content_index, documents_index, memory_index

    dimensions = settings.embedding_dimensions
    definitions = {
        "content": content_index(settings.azure_search_content_index, dimensions),
        "documents": documents_index(settings.azure_search_documents_index),
        "memory": memory_index(settings.azure_search_memory_index, dimensions),
    }
    timeout_s = settings.search_timeout_s
    return IndexMigration(
        to.search_admin,
        opener(to, KEYS[which], timeout_s),
        definitions[which],
        version=INDEX_VERSIONS[which],
        timeout_s=timeout_s,
        on_page=on_page,
    )


def opener(to: "Connections", key_field: str, timeout_s: float) -> "OpensIndex":
    """Gives indexes by their own names."""
    from shared.clients.search_index import AzureSearchIndex

    def opens(physical: str, absent_ok: bool = False) -> AzureSearchIndex:
        connection = to.search_index(physical)
        return AzureSearchIndex(
            connection, physical, timeout_s=timeout_s, key_field=key_field, absent_ok=absent_ok
        )

    return opens
