"""The app is killed before and after every write of an ingestion or a change, and the next processing of the
document repairs the data.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from shared.access.models import UserContext
from shared.documents.ids import document_id
from shared.documents.requests import AccessChange
from shared.ingestion.admission import Admissions
from shared.ingestion.audit import audit
from shared.ingestion.changes import change_access, correct, delete
from shared.ingestion.reconciliation import reconcile
from shared.ingestion.rights import note_event
from shared.platform.instances import Instances
from shared.platform.names import DOCUMENTS
from shared.platform.search import SearchRequest
from shared.retrieval.secured_index import SecuredIndex
from shared.wiring import Services
from tests.contract.ingestion import driving
from tests.contract.ingestion.driving import GUIDE, state_of
from tests.contract.ingestion.models import counting_services
from tests.fakes.replaced import Replaced
from tests.servers import unique_name

# Runs long, so it is part of `make e2e`.
pytestmark = pytest.mark.e2e
NAME = "guide.md"
NEW_GUIDE = "# Recall\n\nPumps are recalled.\n\n" + GUIDE.replace("16 bar", "20 bar")
ANNA = UserContext(user_id="anna")
WRITES = {
    "documents": ("create", "replace", "delete"),
    "blobs": ("write", "write_version", "delete", "delete_prefix"),
    "content_index": ("upload", "merge", "delete"),
    "documents_index": ("upload", "merge", "delete"),
}
BACKLOG_WRITES = ("put", "replace", "delete", "admit")


class Killed(BaseException):
    """Simulates the end of the process. It is a BaseException, so that no error handler catches it."""


@dataclass
class Killer:
    """Ends the process before, or after, its write number `at`."""

    at: int
    after: bool
    writes: int = 0

    def watched(self, services: Services) -> Services:
        parts: dict[str, Any] = {}
        for part, methods in WRITES.items():
            inner = getattr(services, part)
            parts[part] = Replaced(inner, **{name: self._dangerous(inner, name) for name in methods})
        open_work = services.documents.open_work
        dangerous = {name: self._dangerous(open_work, name) for name in BACKLOG_WRITES}
        parts["documents"].open_work = Replaced(open_work, **dangerous)
        return replace(services, **parts)

    def _dangerous(self, inner: object, name: str) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            dies = self.writes == self.at
            self.writes += 1
            if dies and not self.after:
                raise Killed
            result = await getattr(inner, name)(*args, **kwargs)
            if dies:
                raise Killed
            return result

        return call


Act = Callable[[Services], Awaitable[object]]


async def put(services: Services, content: str) -> None:
    await services.blobs.ensure_containers([DOCUMENTS])
    await services.blobs.write(DOCUMENTS, NAME, content.encode(), metadata={"acl": "anna"})


async def ingest(services: Services) -> None:
    await driving.ingest(services, NAME, "killed")


async def first_version(services: Services) -> None:
    await ingest(services)


async def second_version(services: Services) -> None:
    await ingest(services)


async def correction(services: Services) -> None:
    await correct(await state_of(services, NAME), {"title": "Our pump"}, services)


async def narrowing(services: Services) -> None:
    await change_access(await state_of(services, NAME), AccessChange(acl=("anna", "ben")), services)


async def deletion(services: Services) -> None:
    await delete(await state_of(services, NAME), services)
    await ingest(services)


async def prepare(services: Services, act: Act) -> None:
    """Prepare the document for the action under test."""
    await put(services, GUIDE)
    if act is not first_version:
        assert (await driving.ingest(services, NAME, "before")).outcome == "ready"
    if act is second_version:
        await put(services, NEW_GUIDE)


async def recover(services: Services) -> None:
    """Restart the app: each event is delivered once more, and the watch and the timer run."""
    await note_event(NAME, services)
    await watch(services)

    async def start() -> None:
        await watch(services)

    await reconcile(services, start)


async def watch(services: Services) -> None:
    """Run the watch and the ingestions that it starts, until none is in progress."""
    for _ in range(3):
        client = driving.IdleClient()
        await Admissions(services, Instances(client)).look()
        for _ in client.started:
            await driving.ingest(services, NAME, unique_name("again"))
    assert not await services.documents.open_work.backlog(is_fresh=True)
    assert (await services.documents.open_work.admission()).places == ()


async def contents(services: Services) -> str:
    index = SecuredIndex(services.content_index, ANNA, services.documents)
    rows = (await index.search(SearchRequest(top=100, order_by=("block_id",)))).rows
    return " ".join(str(row["content"]) for row in rows)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("act", [first_version, second_version, correction, narrowing, deletion])
async def test_nothing_is_left_undone_or_left_over(act: Act, *, after: bool) -> None:
    at = 0
    while True:
        services, killer = counting_services(), Killer(at, after)
        await prepare(services, act)
        try:
            await act(killer.watched(services))
        except Killed:
            await recover(services)
        differences = [f"{one.kind}: {one.detail}" for one in (await audit(services)).differences]
        assert differences == [], f"killed at write {at}"
        assert await is_as_wanted(services, act), f"killed at write {at}"
        if killer.writes <= at:
            return
        at += 1


async def is_as_wanted(services: Services, act: Act) -> bool:
    text = await contents(services)
    state = await services.documents.get(document_id(NAME))
    if act is deletion:
        # The app was killed before the file was deleted.
        return text == "" or (state is not None and "16 bar" in text)
    assert state is not None
    has_version = ("20 bar" in text) == (act is second_version) and ("16 bar" in text) != ("20 bar" in text)
    return has_version and state.status == "ready"


async def test_a_version_that_was_never_finished_leaves_its_number_and_no_block() -> None:
    """Interrupt two versions at every write, then restore the bytes of the first version."""
    at = 0
    while True:
        services, killer = counting_services(), Killer(at, after=True)
        await prepare(services, second_version)
        try:
            await second_version(killer.watched(services))
        except Killed:
            await put(services, GUIDE)
            await recover(services)
        else:
            return
        assert (await audit(services)).differences == ()
        assert "20 bar" not in await contents(services)
        state = await state_of(services, NAME)
        versions = {row["version"] for row in await driving.blocks_of(services, NAME)}
        assert versions == {state.version}, f"killed at write {at}"
        at += 1
