"""Tests for concurrent changes of a document: no update is lost or visible too early."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from shared.access.models import UserContext
from shared.documents.models import Corrections
from shared.documents.requests import AccessChange
from shared.ingestion.audit import audit
from shared.ingestion.changes import change_access, correct
from shared.platform.search import IndexRow, SearchRequest
from shared.retrieval.secured_index import SecuredIndex
from shared.wiring import Services
from tests.contract.ingestion.driving import GUIDE, blocks_of, documents_of, drop, ingest, state_of
from tests.contract.ingestion.models import counting_services
from tests.contract.ingestion.test_killed_anywhere import WRITES
from tests.fakes.replaced import Replaced

pytestmark = pytest.mark.usefixtures("both_ways")
NAME = "guide.md"
NEW_GUIDE = GUIDE.replace("16 bar", "20 bar")
Hook = Callable[[], Awaitable[None]]


@dataclass
class Moment:
    """An action performed before write number `at` of the ingestion, or before each write if `always` is
    set.
    """

    at: int
    happen: Hook
    always: Hook | None = None
    writes: int = field(default=0)

    def watched(self, services: Services) -> Services:
        parts: dict[str, Any] = {}
        for part, methods in WRITES.items():
            inner = getattr(services, part)
            parts[part] = Replaced(inner, **{name: self._watched(inner, name) for name in methods})
        return replace(services, **parts)

    def _watched(self, inner: object, name: str) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            self.writes += 1
            if self.always is not None:
                await self.always()
            if self.writes - 1 == self.at:
                await self.happen()
            return await getattr(inner, name)(*args, **kwargs)

        return call


async def text_for(services: Services, user_id: str) -> str:
    index = SecuredIndex(services.content_index, UserContext(user_id=user_id), services.documents)
    rows = (await index.search(SearchRequest(top=100))).rows
    return " ".join(str(row["content"]) for row in rows)


async def nothing() -> None:
    """Do nothing."""


async def begin(services: Services, readers: str = "anna") -> None:
    """Ingest a first version, and store a second one with this access list in its metadata."""
    await drop(services, NAME, GUIDE, {"acl": "anna", "owner_id": "anna"})
    assert (await ingest(services, NAME, "first")).outcome == "ready"
    await drop(services, NAME, NEW_GUIDE, {"acl": readers, "owner_id": "anna"})


async def test_a_wider_list_that_comes_while_a_new_version_is_written_is_not_lost() -> None:
    at = 0
    while True:
        services = counting_services()
        await begin(services)

        async def widen(services: Services = services, at: int = at) -> None:
            state = await state_of(services, NAME)
            await change_access(state, AccessChange(acl=("ben",)), services)
            assert await text_for(services, "ben") != "", f"late: write {at}"

        moment = Moment(at, widen)
        await ingest(moment.watched(services), NAME, "second")
        if moment.writes <= at:
            break
        text = await text_for(services, "ben")
        assert ("20 bar" in text, "16 bar" in text) == (True, False), f"lost: write {at}"
        lists = {tuple(row["access_control_list"]) for row in await blocks_of(services, NAME)}
        assert lists == {("anna", "ben")}, f"write {at}"
        assert (await audit(services)).differences == (), f"write {at}"
        at += 1
    assert at > 5


async def test_a_wider_list_that_comes_with_a_new_version_does_not_open_the_one_before() -> None:
    services = counting_services()
    await begin(services, readers="anna,ben")
    seen: list[str] = []

    async def look() -> None:
        seen.append(await text_for(services, "ben"))

    moment = Moment(-1, nothing, always=look)
    assert (await ingest(moment.watched(services), NAME, "second")).outcome == "ready"
    assert not any("16 bar" in text for text in seen)
    assert "20 bar" in await text_for(services, "ben")


async def test_corrections_that_come_while_a_new_version_is_written_are_in_the_indexes() -> None:
    at = 0
    while True:
        services = counting_services()
        await begin(services)

        async def edit(services: Services = services) -> None:
            corrections: Corrections = {"title": "Ours", "department": "Kitchen"}
            await correct(await state_of(services, NAME), corrections, services)

        moment = Moment(at, edit)
        await ingest(moment.watched(services), NAME, "second")
        if moment.writes <= at:
            return
        (document,) = await documents_of(services, NAME)
        assert (document["title"], document["version"]) == ("Ours", 2), f"write {at}"
        rows = {(row["department"], row["version"]) for row in await blocks_of(services, NAME)}
        assert rows == {("Kitchen", 2)}, f"write {at}"
        assert (await audit(services)).differences == (), f"write {at}"
        at += 1


@pytest.mark.parametrize("index", ["documents_index", "content_index"])
async def test_of_two_overlapping_changes_the_newer_one_reaches_the_indexes(index: str) -> None:
    services = counting_services()
    await drop(services, NAME, GUIDE, {"acl": "anna", "owner_id": "anna"})
    await ingest(services, NAME, "first")
    inner = getattr(services, index)
    overtakes = iter(range(1))

    async def merge(rows: Sequence[IndexRow]) -> None:
        if next(overtakes, None) is not None:
            newer: Corrections = {"title": "Newer", "department": "Newer"}
            await correct(await state_of(services, NAME), newer, services)
            newest = AccessChange(acl=("carl",))
            await change_access(await state_of(services, NAME), newest, services)
        await inner.merge(rows)

    parts: dict[str, Any] = {index: Replaced(inner, merge=merge)}
    late = replace(services, **parts)
    older: Corrections = {"title": "Older", "department": "Older"}
    assert await correct(await state_of(services, NAME), older, late), "an ingestion must look"
    assert (await state_of(services, NAME)).has_unshown_corrections
    await ingest(services, NAME, "looks")
    overtakes = iter(range(1))
    assert await change_access(await state_of(services, NAME), AccessChange(acl=("ben",)), late)
    await ingest(services, NAME, "looks again")
    state = await state_of(services, NAME)
    (document,) = await documents_of(services, NAME)
    assert (document["title"], document["department"]) == ("Newer", "Newer")
    assert state.corrections["title"] == "Newer"
    blocks = await blocks_of(services, NAME)
    assert {(row["department"], tuple(row["access_control_list"])) for row in blocks} == {
        ("Newer", state.rights.acl)
    }
    assert state.rights.acl == ("anna", "carl")
    assert (await audit(services)).differences == ()
