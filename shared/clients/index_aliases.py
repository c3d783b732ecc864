"""Single calls of the index client that a migration is made of. Each may be done again after a crash."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from shared.clients.connection import Connection
from shared.clients.index_definition import changed_attributes
from shared.clients.search_connections import ask
from shared.clients.write_targets import read_aliases
from shared.errors import ConfigurationError, GroundworkError, IndexNotFoundError
from shared.models.search import IndexRow

if TYPE_CHECKING:
    from azure.search.documents.indexes.aio import SearchIndexClient

Answer = TypeVar("Answer")


class IndexAliases:
    """Indexes and aliases of one search service."""

    def __init__(self, connection: "Connection[SearchIndexClient]", *, timeout_s: float) -> None:
        """`timeout_s` limits one call, all its tries together."""
        self._connection = connection
        self._timeout_s = timeout_s

    async def aliases(self) -> dict[str, str]:
        """Every alias, with its index."""
        return await self._ask(read_aliases)

    async def definition(self, index: str) -> IndexRow:
        """How an index was made.

        Raises:
            IndexNotFoundError: there is none.
        """
        found: Any = await self._ask(lambda client: client.get_index(index))
        return dict(found.as_dict())

    async def put(self, definition: IndexRow) -> None:
        """Change an index, unless somebody else has since it was read."""
        from azure.core import MatchConditions

        await self._ask(
            lambda client: client.create_or_update_index(
                definition, match_condition=MatchConditions.IfNotModified
            )
        )

    async def make(self, definition: IndexRow) -> None:
        """Make an index; one that was made like this before is right, too."""
        from azure.core.exceptions import ResourceExistsError

        async def created(client: "SearchIndexClient") -> None:
            with suppress(ResourceExistsError):
                await client.create_index(definition)

        await self._ask(created)
        differing = changed_attributes(await self.definition(definition["name"]), definition)
        if differing:
            raise ConfigurationError(
                f"The index {definition['name']} exists, made differently: {'; '.join(differing)}.",
                "Raise the version of the schema, or delete that index if nobody reads it.",
            )

    async def point(self, alias: str, index: str) -> None:
        """Let the alias stand for the index from now on."""
        await self._ask(lambda client: client.create_or_update_alias({"name": alias, "indexes": [index]}))

    async def forget(self, alias: str) -> None:
        """Delete the alias, if it is there."""
        from azure.core.exceptions import ResourceNotFoundError

        async def deleted(client: "SearchIndexClient") -> None:
            with suppress(ResourceNotFoundError):
                await client.delete_alias(alias)

        await self._ask(deleted)

    async def remove_index(self, index: str) -> None:
        """Delete the index, if it is there, with all its rows."""
        from azure.core.exceptions import ResourceNotFoundError

        async def deleted(client: "SearchIndexClient") -> None:
            with suppress(ResourceNotFoundError):
                await client.delete_index(index)

        await self._ask(deleted)

    async def count(self, index: str) -> int:
        """Rows of the index, as its statistics tell."""
        statistics = await self._ask(lambda client: client.get_index_statistics(index))
        return int(statistics.document_count)

    async def _ask(self, call: "Callable[[SearchIndexClient], Awaitable[Answer]]") -> Answer:
        return await ask(self._connection, call, _read_status, timeout_s=self._timeout_s)


def _read_status(status: int, message: str) -> GroundworkError | None:
    if status == 404:
        return IndexNotFoundError("The search index does not exist.", "Check the name of the index.")
    if status == 400:
        return ConfigurationError(f"The search service refused it: {message}")
    return None
