"""Moves what stands behind an alias to a new index while it is read and written (decision 26).

Every step may be done again after a crash. Nothing is switched or removed but by `switch`, `back`, `drop` and
`abandon`. Only one process may run these at a time: it is an operator's tool.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from shared.platform.calls import ask
from shared.platform.connections import Connection
from shared.platform.errors import ConfigurationError, ConflictError, GroundworkError, IndexNotFoundError
from shared.platform.search import IndexRow, SearchRequest
from shared.retrieval.index_admin import VALUE_ATTRIBUTES, changed_attributes, with_missing_parts
from shared.retrieval.index_comparison import OnPage, RowComparison
from shared.retrieval.mirrored_index import KEPT_S, OpensIndex, new_mark, old_mark, read_aliases

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from azure.search.documents.indexes.aio import SearchIndexClient


_OF_ONE_INDEX = ("name", "@odata.etag", "@odata.context")


def refusals(existing: IndexRow, wanted: IndexRow) -> list[str]:
    """Why rows of `existing` cannot be rows of `wanted`, such as "vector: dimensions 384, not 1536"."""
    unread = [
        f"{field['name']}: is not stored" for field in existing["fields"] if field.get("stored") is False
    ]
    return [*changed_attributes(existing, wanted, VALUE_ATTRIBUTES), *unread]


def new_definition(existing: IndexRow, wanted: IndexRow, name: str) -> IndexRow:
    """`wanted`, with what `existing` has beyond it: a writer that still uses the old fields may continue."""
    rest = {key: value for key, value in existing.items() if key not in _OF_ONE_INDEX}
    return with_nothing_hidden({**with_missing_parts(wanted, rest), "name": name})


def with_nothing_hidden(definition: IndexRow) -> IndexRow:
    """All fields can be read: rows are copied, and compared, by reading them."""
    return {**definition, "fields": [{**field, "retrievable": True} for field in definition["fields"]]}


def hidden_again(existing: IndexRow, wanted: IndexRow) -> IndexRow:
    """`existing`, with those fields hidden that `wanted` hides."""
    hidden = {field["name"] for field in wanted["fields"] if field.get("retrievable") is False}
    fields = [{**field, "retrievable": field["name"] not in hidden} for field in existing["fields"]]
    return {**existing, "fields": fields}


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
        with suppress(IndexNotFoundError):
            await self._ask(lambda client: client.delete_alias(alias))

    async def remove_index(self, index: str) -> None:
        """Delete the index, if it is there, with all its rows."""
        with suppress(IndexNotFoundError):
            await self._ask(lambda client: client.delete_index(index))

    async def _ask(self, call: "Callable[[SearchIndexClient], Awaitable[Answer]]") -> Answer:
        return await ask(self._connection, call, _read_status, timeout_s=self._timeout_s)


def _read_status(status: int, message: str) -> GroundworkError | None:
    if status == 404:
        return IndexNotFoundError("The search index does not exist.", "Check the name of the index.")
    if status == 400:
        return ConfigurationError(f"The search service refused it: {message}")
    return None


_ALIAS_S = 10.0  # until an alias holds everywhere ("Create an index alias", learn.microsoft.com)
_SPARE_S = 15.0  # until a written row is found; the service tells no limit, a few seconds are usual
MAX_ROUNDS = 50  # a row that is written as often as this is never seen at rest


@dataclass(frozen=True)
class Plan:
    """What a migration would do.

    Attributes:
        changes: what only a new index can have; nothing to do when empty.
        refused: why it cannot be done by copying rows.
    """

    source: str
    target: str
    changes: tuple[str, ...]
    refused: tuple[str, ...]


@dataclass(frozen=True)
class Counts:
    """Rows of both indexes; they may differ by what is being written at the moment."""

    source: int
    target: int


class IndexMigration:
    """One alias, and the definition that its index shall have."""

    def __init__(
        self,
        connection: "Connection[SearchIndexClient]",
        opens: OpensIndex,
        definition: IndexRow,
        *,
        version: int,
        timeout_s: float,
        settle_s: float | None = None,
        on_page: OnPage = lambda rows, written: None,
    ) -> None:
        """The new index is `<alias>-v<version>`.

        Args:
            definition: with the alias for its name.
            timeout_s: limits one call here, and in the app (`search.timeout_s`), whose writes are waited for.
            settle_s: how long these may take; for tests.
            on_page: called with each page of rows that was copied or compared.
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
        """Make the alias for an index that so far was reached by its own name."""
        if self._alias in await self._service.aliases():
            raise ConflictError(f"The alias {self._alias} exists already.", "Nothing is left to do.")
        await self._service.definition(index)
        await self._service.point(self._alias, index)

    async def plan(self) -> Plan:
        """Reads only.

        Raises:
            ConfigurationError: the name stands for no alias, but perhaps for an index.
        """
        aliases = await self._service.aliases()
        if self._alias not in aliases:
            raise ConfigurationError(
                f"{self._alias} is not an alias of the search service.",
                "Make one with `adopt`, name it in the settings, and deploy that first.",
            )
        source = aliases.get(old_mark(self._alias)) or aliases[self._alias]
        existing = await self._service.definition(source)
        changes = changed_attributes(existing, self._definition)
        return Plan(source, self._target, tuple(changes), tuple(refusals(existing, self._definition)))

    async def copy(self) -> Counts:
        """Create the new index, write to both, and fill it. From then on both hold the same."""
        plan = await self.plan()
        if plan.refused:
            raise ConfigurationError(
                f"Rows of {plan.source} cannot be copied: {'; '.join(plan.refused)}.",
                "Name a new index in the settings and ingest the documents again.",
            )
        await self._prepare(plan)
        await self._settled()
        await self._comparison(plan).fill()
        await self._settled()
        return await self._equal(plan)

    async def switch(self) -> Counts:
        """Compare everything again, then let readers see the new index."""
        plan = await self._under_way()
        if (await self._service.aliases()).get(self._alias) != plan.target:
            await self._settled()  # a `run` that just died, or a `back`, has no effect any more after this
            await self._equal(plan)
            await self._service.point(self._alias, plan.target)
        await self._seen_by_readers()
        return await self._counts(plan)

    async def back(self) -> Counts:
        """Let readers see the old index again. It has every write since."""
        plan = await self._under_way()
        await self._service.point(self._alias, plan.source)
        await self._seen_by_readers()
        return await self._counts(plan)

    async def drop(self) -> str:
        """End it after the switch: remove the old index. Returns its name."""
        return await self._end(old_mark(self._alias))

    async def abandon(self) -> str:
        """End it before the switch, or after `back`: remove the new index. Returns its name."""
        return await self._end(new_mark(self._alias))

    async def _end(self, mark: str) -> str:
        aliases = await self._service.aliases()
        kept, removed = aliases.get(self._alias), self._being_removed(aliases) or aliases.get(mark)
        if kept is None or removed is None:
            raise self._none_under_way()
        if kept == removed:
            raise ConflictError(f"{self._alias} is read from {removed}.", "Use `switch` or `back` first.")
        # Remembered, so that a crash leaves no index behind that nobody knows of. In the name of an alias of
        # the other index: one that an alias stands for cannot be deleted ("Delete Index").
        await self._service.point(f"{self._removing}{removed}", kept)
        for written in self._marks:
            if aliases.get(written) == removed:
                await self._service.forget(written)
        await self._settled()
        await self._service.remove_index(removed)
        await self._service.put(hidden_again(await self._service.definition(kept), self._definition))
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
        """The index that an end which was interrupted wanted to remove."""
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
            "Begin with `run`; where one was being ended, end it with `drop`.",
        )

    async def _prepare(self, plan: Plan) -> None:
        await self._check_free(plan)
        existing = with_missing_parts(await self._service.definition(plan.source), self._definition)
        await self._service.put(with_nothing_hidden(existing))
        await self._service.make(new_definition(existing, self._definition, plan.target))
        # The old one first: a writer sees none, the old one, or both.
        await self._service.point(old_mark(self._alias), plan.source)
        await self._service.point(new_mark(self._alias), plan.target)

    async def _check_free(self, plan: Plan) -> None:
        """Rows are copied to an index that nobody reads: what is copied may be older than what is there."""
        aliases = await self._service.aliases()
        if aliases[self._alias] == plan.target:
            raise ConflictError(f"{self._alias} is at {plan.target} already.", "Nothing is left to copy.")
        if self._being_removed(aliases) is not None:
            raise ConflictError(f"A migration of {self._alias} is being ended.", "End it with `drop`.")
        if aliases.get(new_mark(self._alias), plan.target) != plan.target:
            raise ConflictError(
                f"{self._alias} is being moved to {aliases[new_mark(self._alias)]}.", "End that one first."
            )

    def _comparison(self, plan: Plan) -> RowComparison:
        return RowComparison(self._opens(plan.source), self._opens(plan.target), self._key, self._on_page)

    async def _counts(self, plan: Plan) -> Counts:
        return Counts(await self._count(plan.source), await self._count(plan.target))

    async def _count(self, index: str) -> int:
        # Asked of the index: the service's statistics are minutes old.
        page = await self._opens(index).search(SearchRequest(select=(self._key,), top=1, count=True))
        return page.count or 0

    async def _equal(self, plan: Plan) -> Counts:
        """Until every row was found equal after the last time that we wrote it.

        A row that is written while it is compared is copied although it needs no copy, perhaps from what
        was read before: so whatever was copied is compared again, after a wait.
        """
        comparison = self._comparison(plan)
        open_keys = await comparison.compare_all()
        for _ in range(MAX_ROUNDS):
            if not open_keys:
                return await self._counts(plan)
            await self._settled()
            open_keys = await comparison.compare_keys(sorted(open_keys))
        raise ConflictError(
            f"{len(open_keys)} rows of {plan.source} differ each time.", "Run it again when less is written."
        )

    async def _settled(self) -> None:
        """No write is under way any more that began before."""
        await asyncio.sleep(self._settle_s)

    async def _seen_by_readers(self) -> None:
        """Writes went to both all the time: none is waited for."""
        await asyncio.sleep(min(self._settle_s, _ALIAS_S))


def settle_seconds(timeout_s: float) -> float:
    """Longer than any write that began before the aliases changed.

    For as long as aliases are kept, then the question about them, the batch to the old index, and that to the
    new one, each within its limit.
    """
    return KEPT_S + 3 * timeout_s + _ALIAS_S + _SPARE_S
