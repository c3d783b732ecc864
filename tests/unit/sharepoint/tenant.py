"""A tenant, the app's stores in memory, and helpers that run the synchronisation over them."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from shared.documents.ids import SIDECAR_SUFFIX
from shared.platform.hashing import digest
from shared.platform.names import DOCUMENTS
from shared.sharepoint.client import SharePointClient, connect_sharepoint
from shared.sharepoint.libraries import find_libraries
from shared.sharepoint.models import SyncReply, SyncStep
from shared.sharepoint.state import Library, LibraryStore
from shared.sharepoint.synchronisation import advance
from shared.wiring import Services
from tests.fakes.blob_store import InMemoryBlobStore
from tests.fakes.services import fake_services, fake_settings
from tests.fakes.sharepoint_server import TENANT, FakeDrive, SharePointServer
from tests.fakes.table import InMemoryTable

ANNA = "aaaaaaaa-0000-4000-8000-000000000001"
BEN = "aaaaaaaa-0000-4000-8000-000000000002"
CLEO = "aaaaaaaa-0000-4000-8000-000000000003"
STAFF = "bbbbbbbb-0000-4000-8000-000000000001"
START = datetime(2026, 11, 2, 10, tzinfo=UTC)
_MAX_STEPS = 500


class Tenant:
    """A tenant, and the files that the app has synchronised from it. `now` advances by ten minutes with each
    run.
    """

    def __init__(self, server: SharePointServer, services: Services) -> None:
        self.server = server
        self.services = services
        self.now = START
        self.runs = 0
        server.clock = lambda: self.now
        server.users |= {"anna@contoso.com": ANNA, "ben@contoso.com": BEN, "cleo@contoso.com": CLEO}
        server.groups[STAFF] = {ANNA, BEN}
        server.group_owners[STAFF] = {CLEO}

    @property
    def blobs(self) -> InMemoryBlobStore:
        assert isinstance(self.services.blobs, InMemoryBlobStore)
        return self.services.blobs

    @property
    def store(self) -> LibraryStore:
        assert self.services.libraries is not None
        return self.services.libraries

    async def run(
        self, services: Services | None = None, *, after: timedelta = timedelta(minutes=10)
    ) -> None:
        """Run one synchronisation, in place of the timer and the orchestration."""
        services = services or self.services
        assert services.sharepoint is not None
        assert services.libraries is not None
        self.now, self.runs = self.now + after, self.runs + 1
        present, absent = await find_libraries(
            services.settings.sharepoint.addresses, services.sharepoint, services.libraries
        )
        for library_id in (*present, *absent):
            step = SyncStep(library_id=library_id, run=f"run{self.runs}", is_configured=library_id in present)
            await self.finish(step, services)

    async def finish(self, step: SyncStep, services: Services) -> None:
        """Perform the steps of a synchronisation to its end, without pauses."""
        for _ in range(_MAX_STEPS):
            reply = await advance(step, services, self.now)
            if reply.following == "done":
                return
        raise AssertionError(f"no end after {_MAX_STEPS} steps: {reply}")

    async def step(self, run: str = "by hand") -> SyncReply:
        """Perform one step for the only library."""
        (library,) = await self.store.libraries()
        return await advance(SyncStep(library_id=library.library_id, run=run), self.services, self.now)

    async def library(self) -> Library:
        """Return the only library."""
        (library,) = await self.store.libraries()
        return library

    def names(self) -> list[str]:
        """Return the names of the stored files, sorted."""
        return sorted(name.rpartition("/")[2] for name in self._files())

    def _files(self) -> list[str]:
        files = self.blobs.containers.get(DOCUMENTS, {})
        return [name for name in files if not name.endswith(SIDECAR_SUFFIX)]

    def content(self, name: str) -> bytes:
        """Return the stored content of the only file with this name."""
        (blob,) = [blob for blob in self._files() if blob.endswith(f"/{name}")]
        return self.blobs.containers[DOCUMENTS][blob].content

    def sidecar(self, name: str) -> dict[str, Any]:
        """Return the sidecar of the only file with this name."""
        (blob,) = [blob for blob in self._files() if blob.endswith(f"/{name}")]
        content = self.blobs.containers[DOCUMENTS][blob + SIDECAR_SUFFIX].content
        fields: dict[str, Any] = json.loads(content)
        return fields

    def acl(self, name: str) -> list[str]:
        """Return the access list of the only file with this name."""
        acl: list[str] = self.sidecar(name)["acl"]
        return acl

    def readers(self, name: str) -> set[str]:
        """Return the people who may read a file according to its access list."""
        return {person for entry in self.acl(name) for person in self._people(entry)}

    def _people(self, entry: str) -> set[str]:
        if entry == f"org:{TENANT}":
            return set(self.server.users.values())
        return self.server.groups.get(entry, {entry})

    def exposed(self, drive: FakeDrive) -> list[str]:
        """Return the blobs that somebody may read here but not in SharePoint."""
        wrong = []
        ids = {digest(item_id)[:32]: item_id for item_id in drive.items}
        for blob in self._files():
            item_id = ids.get(blob.split("/")[-2])
            allowed = self.server.readers(drive, item_id) if item_id else set()
            sidecar = self.blobs.containers[DOCUMENTS].get(blob + SIDECAR_SUFFIX)
            acl = json.loads(sidecar.content)["acl"] if sidecar else ["no sidecar"]
            if not {person for entry in acl for person in self._people(entry)} <= allowed:
                wrong.append(blob)
        return wrong


@asynccontextmanager
async def tenant(*addresses: str, **settings: Any) -> AsyncIterator[Tenant]:
    """Yield a tenant whose library at `addresses` is synchronised."""
    with SharePointServer() as server:
        connection = connect_sharepoint()
        values = fake_settings(**server.settings(*(addresses or ("/sites/hr",))), **settings)
        client = SharePointClient(connection, server.token, graph=server.graph, hosts=[server.host])
        services = fake_services(
            settings=values,
            sharepoint=client,
            libraries=LibraryStore(InMemoryTable()),
            blobs=InMemoryBlobStore(),
        )
        try:
            yield Tenant(server, services)
        finally:
            await connection.close()
        assert server.leaks == []
