"""Migration of a live index: the alias moves to a new index while reads and writes continue (decision 26).

All steps can be repeated after a crash. Only `switch`, `back`, `drop` and `abandon` switch readers
or delete an index. Operators run the steps, and only one process may do so at a time.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from azure.core import MatchConditions
from azure.core.exceptions import ResourceExistsError
from azure.search.documents.indexes.aio import SearchIndexClient

from shared.platform.calls import ask
from shared.platform.connections import Connection
from shared.platform.errors import ConfigurationError, ConflictError, GroundworkError, IndexNotFoundError
from shared.platform.search import IndexRow, SearchRequest
from shared.retrieval.index_admin import VALUE_ATTRIBUTES, changed_attributes, with_missing_parts
from shared.retrieval.index_comparison import OnPage, RowComparison
from shared.retrieval.mirrored_index import KEPT_S, OpensIndex, new_mark, old_mark, read_aliases

_OF_ONE_INDEX = ("name", "@odata.etag", "@odata.context")


def refusals(existing: IndexRow, target: IndexRow) -> list[str]:
    """Return the reasons why rows of `existing` cannot be copied to `target`, such as "vector: dimensions
    384, not 1536".
    """
    unread = [
        f"{field['name']}: is not stored" for field in existing["fields"] if field.get("stored") is False
    ]
    return [*changed_attributes(existing, target, VALUE_ATTRIBUTES), *unread]


def new_definition(existing: IndexRow, target: IndexRow, name: str) -> IndexRow:
    """Return `target` as a new index with all fields retrievable. Fields that only `existing` has are added,
    because writers may still use them.
    """
    rest = {key: value for key, value in existing.items() if key not in _OF_ONE_INDEX}
    return with_nothing_hidden({**with_missing_parts(target, rest), "name": name})


def with_nothing_hidden(definition: IndexRow) -> IndexRow:
    """Return the definition with all fields retrievable, because rows are copied and compared by reading
    them.
    """
    return {**definition, "fields": [{**field, "retrievable": True} for field in definition["fields"]]}


def hidden_again(existing: IndexRow, target: IndexRow) -> IndexRow:
    """Undo `with_nothing_hidden`: return `existing` with the fields hidden that `target` hides."""
    hidden = {field["name"] for field in target["fields"] if field.get("retrievable") is False}
    fields = [{**field, "retrievable": field["name"] not in hidden} for field in existing["fields"]]
    return {**existing, "fields": fields}


Answer = TypeVar("Answer")


class IndexAliases:
    """Client for the indexes and aliases of a search service."""

    def __init__(self, connection: Connection[SearchIndexClient], *, timeout_s: float) -> None:
        """Create a client. `timeout_s` limits one call, including retries."""
        self._connection = connection
        self._timeout_s = timeout_s

    async def aliases(self) -> dict[str, str]:
        """Return the names of all aliases with the index that each refers to."""
        return await self._ask(read_aliases)

    async def definition(self, index: str) -> IndexRow:
        """Return the definition of an index.

        Raises:
            IndexNotFoundError: the index doesn't exist.
        """
        response: Any = await self._ask(lambda client: client.get_index(index))
        return dict(response.as_dict())

    async def put(self, definition: IndexRow) -> None:
        """Update an index. The service rejects the update if the index changed since the definition was
        read.
        """
        await self._ask(
            lambda client: client.create_or_update_index(
                definition, match_condition=MatchConditions.IfNotModified
            )
        )

    async def make(self, definition: IndexRow) -> None:
        """Create an index. An existing index is accepted if its fields match."""

        async def created(client: SearchIndexClient) -> None:
            with suppress(ResourceExistsError):
                await client.create_index(definition)

        await self._ask(created)
        differing = changed_attributes(await self.definition(definition["name"]), definition)
        if differing:
            raise ConfigurationError(
                f"The index {definition['name']} exists with other fields: {'; '.join(differing)}.",
                "Increase the schema version, or delete that index if it is unused.",
            )

    async def point(self, alias: str, index: str) -> None:
        """Create the alias for the index, or change an existing alias to refer to it."""
        await self._ask(lambda client: client.create_or_update_alias({"name": alias, "indexes": [index]}))

    async def forget(self, alias: str) -> None:
        """Delete the alias. A missing alias is ignored."""
        with suppress(IndexNotFoundError):
            await self._ask(lambda client: client.delete_alias(alias))

    async def remove_index(self, index: str) -> None:
        """Delete the index with all its rows. A missing index is ignored."""
        with suppress(IndexNotFoundError):
            await self._ask(lambda client: client.delete_index(index))

    async def _ask(self, call: Callable[[SearchIndexClient], Awaitable[Answer]]) -> Answer:
        return await ask(self._connection, call, _read_status, timeout_s=self._timeout_s)


def _read_status(status: int, message: str) -> GroundworkError | None:
    if status == 404:
        return IndexNotFoundError("The search index does not exist.", "Check the name of the index.")
    if status == 400:
        return ConfigurationError(f"The search service rejected the request: {message}")
    return None


_ALIAS_S = 10.0  # time until a changed alias takes effect ("Create an index alias", learn.microsoft.com)
_SPARE_S = 15.0  # time until a written row is searchable; undocumented, usually a few seconds
MAX_ROUNDS = 50  # limit on rounds of comparison, because a row that changes in every round never settles


@dataclass(frozen=True)
class Plan:
    """A planned migration: its source and target index, the reasons for it, and what prevents it.

    Attributes:
        changes: changes that require a new index; empty = nothing to do.
        refused: why the migration can't work by copying rows.
    """

    source: str
    target: str
    changes: tuple[str, ...]
    refused: tuple[str, ...]


@dataclass(frozen=True)
class Counts:
    """Row counts of both indexes, which may differ while writes are in progress."""

    source: int
    target: int


class IndexMigration:
    """Migration of one alias to a new index with another definition."""

    def __init__(
        self,
        connection: Connection[SearchIndexClient],
        opens: OpensIndex,
        definition: IndexRow,
        *,
        version: int,
        timeout_s: float,
        settle_s: float | None = None,
        on_page: OnPage = lambda rows, written: None,
    ) -> None:
        """Prepare a migration to the index `<alias>-v<version>` without calling the service.

        Args:
            definition: the new definition; its name is that of the alias.
            timeout_s: limit on one call, here and in the app (`search.timeout_s`); it determines how long to
                wait for the app's writes.
            settle_s: replaces that waiting time in tests.
            on_page: called after each copied or compared page.
        """
        self._alias: str = definition["name"]
        self._definition = definition
        self._target = f"{self._alias}-v{version}"
        self._service = IndexAliases(connection, timeout_s=timeout_s)
        self._opens = opens
        self._settle_s = settle_seconds(timeout_s) if settle_s is None else settle_s
        self._on_page = on_page
        self._key: str = next(field["name"] for field in definition["fields"] if field.get("key"))

    async def adopt(self, index: str) -> None:
        """Create the alias for an existing index that the app has used by its own name."""
        if self._alias in await self._service.aliases():
            raise ConflictError(f"The alias {self._alias} exists already.", "Nothing is left to do.")
        await self._service.definition(index)
        await self._service.point(self._alias, index)

    async def plan(self) -> Plan:
        """Return what a migration would change, without changing anything.

        Raises:
            ConfigurationError: the name isn't an alias; it may be an index.
        """
        aliases = await self._service.aliases()
        if self._alias not in aliases:
            raise ConfigurationError(
                f"{self._alias} is not an alias of the search service.",
                "Create the alias with `adopt`, use it in the settings and deploy the app first.",
            )
        source = aliases.get(old_mark(self._alias)) or aliases[self._alias]
        existing = await self._service.definition(source)
        changes = changed_attributes(existing, self._definition)
        return Plan(source, self._target, tuple(changes), tuple(refusals(existing, self._definition)))

    async def copy(self) -> Counts:
        """Create the new index, start writing to both indexes and copy the rows. On return, both have the
        same rows.
        """
        plan = await self.plan()
        if plan.refused:
            raise ConfigurationError(
                f"Rows of {plan.source} cannot be copied: {'; '.join(plan.refused)}.",
                "Set a new index in the settings and ingest the documents again.",
            )
        await self._prepare(plan)
        await self._settled()
        await self._comparison(plan).fill()
        await self._settled()
        return await self._equal(plan)

    async def switch(self) -> Counts:
        """Compare all rows again, then point the alias to the new index. Return the row counts."""
        plan = await self._under_way()
        if (await self._service.aliases()).get(self._alias) != plan.target:
            # After this wait, an interrupted `copy` or `back` can no longer have an effect.
            await self._settled()
            await self._equal(plan)
            await self._service.point(self._alias, plan.target)
        await self._seen_by_readers()
        return await self._counts(plan)

    async def back(self) -> Counts:
        """Point the alias back to the old index. Nothing is lost, because both indexes receive all writes."""
        plan = await self._under_way()
        await self._service.point(self._alias, plan.source)
        await self._seen_by_readers()
        return await self._counts(plan)

    async def drop(self) -> str:
        """Finish a migration after `switch`: delete the old index and return its name."""
        return await self._end(old_mark(self._alias))

    async def abandon(self) -> str:
        """Cancel a migration before `switch` or after `back`: delete the new index and return its name."""
        return await self._end(new_mark(self._alias))

    async def _end(self, mark: str) -> str:
        aliases = await self._service.aliases()
        current, removed = aliases.get(self._alias), self._being_removed(aliases) or aliases.get(mark)
        if current is None or removed is None:
            raise self._none_under_way()
        if current == removed:
            raise ConflictError(
                f"{self._alias} currently points to {removed}.", "Run `switch` or `back` first."
            )
        # Record the deletion, so that a crash orphans no index. The record is an alias of the other index,
        # because an index with an alias can't be deleted ("Delete Index").
        await self._service.point(f"{self._removing}{removed}", current)
        for mark_name in self._marks:
            if aliases.get(mark_name) == removed:
                await self._service.forget(mark_name)
        await self._settled()
        await self._service.remove_index(removed)
        await self._service.put(hidden_again(await self._service.definition(current), self._definition))
        for name in (*self._marks, f"{self._removing}{removed}"):
            await self._service.forget(name)
        return removed

    @property
    def _marks(self) -> tuple[str, str]:
        return old_mark(self._alias), new_mark(self._alias)

    @property
    def _removing(self) -> str:
        return f"{self._alias}-removes-"

    def _being_removed(self, aliases: dict[str, str]) -> str | None:
        """Return the index whose deletion was interrupted, or None."""
        names = (name.removeprefix(self._removing) for name in aliases if name.startswith(self._removing))
        return next(names, None)

    async def _under_way(self) -> Plan:
        aliases = await self._service.aliases()
        is_ending = self._being_removed(aliases) is not None
        if self._alias not in aliases or is_ending or not aliases.keys() >= {*self._marks}:
            raise self._none_under_way()
        source, target = (aliases[mark] for mark in self._marks)
        return Plan(source, target, (), ())

    def _none_under_way(self) -> ConflictError:
        return ConflictError(
            f"No migration of {self._alias} is under way.",
            "Start with `run`, or finish an interrupted one with `drop`.",
        )

    async def _prepare(self, plan: Plan) -> None:
        await self._check_free(plan)
        existing = with_missing_parts(await self._service.definition(plan.source), self._definition)
        await self._service.put(with_nothing_hidden(existing))
        await self._service.make(new_definition(existing, self._definition, plan.target))
        # Create the old mark first, so that a concurrent writer sees no mark, the old one, or both, but never
        # only the new one.
        await self._service.point(old_mark(self._alias), plan.source)
        await self._service.point(new_mark(self._alias), plan.target)

    async def _check_free(self, plan: Plan) -> None:
        """Raise `ConflictError` if the new index is already in use or another migration is unfinished. Copies
        could overwrite newer rows.
        """
        aliases = await self._service.aliases()
        if aliases[self._alias] == plan.target:
            raise ConflictError(f"{self._alias} already points to {plan.target}.", "Nothing is left to copy.")
        if self._being_removed(aliases) is not None:
            raise ConflictError(
                f"An earlier migration of {self._alias} is not finished.", "Finish it with `drop`."
            )
        if aliases.get(new_mark(self._alias), plan.target) != plan.target:
            raise ConflictError(
                f"{self._alias} is being moved to {aliases[new_mark(self._alias)]}.",
                "Finish that migration first.",
            )

    def _comparison(self, plan: Plan) -> RowComparison:
        return RowComparison(self._opens(plan.source), self._opens(plan.target), self._key, self._on_page)

    async def _counts(self, plan: Plan) -> Counts:
        return Counts(await self._count(plan.source), await self._count(plan.target))

    async def _count(self, index: str) -> int:
        # The rows are counted by a search, because the statistics of the service are minutes old.
        page = await self._opens(index).search(SearchRequest(select=(self._key,), top=1, count=True))
        return page.count or 0

    async def _equal(self, plan: Plan) -> Counts:
        """Compare the indexes until no row differs, and return the row counts.

        A row written during the comparison may be overwritten with an older copy, so copied rows are compared
        again after a wait.
        """
        comparison = self._comparison(plan)
        open_keys = await comparison.compare_all()
        for _ in range(MAX_ROUNDS):
            if not open_keys:
                return await self._counts(plan)
            await self._settled()
            open_keys = await comparison.compare_keys(sorted(open_keys))
        raise ConflictError(
            f"{len(open_keys)} rows of {plan.source} changed during every comparison.",
            "Run the command again when fewer documents are changing.",
        )

    async def _settled(self) -> None:
        """Wait until every write that started before this call has finished and is searchable."""
        await asyncio.sleep(self._settle_s)

    async def _seen_by_readers(self) -> None:
        """Wait until all readers use the alias's current index, at most 10 seconds."""
        await asyncio.sleep(min(self._settle_s, _ALIAS_S))


def settle_seconds(timeout_s: float) -> float:
    """Return how long to wait, in seconds, until every write that started before the aliases changed has
    finished.

    It is the sum of the alias cache's lifetime, the alias query, and a batch to each index, each at its
    limit.
    """
    return KEPT_S + 3 * timeout_s + _ALIAS_S + _SPARE_S
