"""The blobs of a run: its request, the large values of its journal, and its answer.

A value is written before the line that refers to it, and its name contains its hash. Repeated writes are
therefore idempotent, and a value without a line is never read.
"""

from collections import OrderedDict
from typing import ClassVar
from weakref import WeakKeyDictionary

from shared.platform.blobs import BlobStore, keep_model, read_model, write_model
from shared.platform.errors import NotFoundError
from shared.platform.hashing import digest
from shared.platform.models import Model, Stored
from shared.platform.names import WORK
from shared.platform.telemetry import note_fields
from shared.runs.models import RunRequest

_CACHED = (
    64  # Number of values cached per process: the request, plan and evidence of about 20 concurrent runs.
)


class RunFiles:
    """The blobs of one run in the container `work`, cached in memory. All `RunFiles` in a process share the
    cache.
    """

    _recent: ClassVar[WeakKeyDictionary[BlobStore, OrderedDict[str, Model]]] = WeakKeyDictionary()

    def __init__(self, blobs: BlobStore, run_id: str) -> None:
        self._blobs = blobs
        self._cache = self._recent.setdefault(blobs, OrderedDict())
        self.run_id = run_id

    @property
    def folder(self) -> str:
        """The common prefix of all blob names of the run."""
        return f"runs/{self.run_id}/"

    async def request(self) -> RunRequest:
        """Return the run's request.

        Raises:
            NotFoundError: the run was purged.
        """
        request = await self._read(self._request_path, RunRequest)
        note_fields(thread_id=request.thread_id, user_id=request.user.user_id)
        return request

    async def find_request(self) -> RunRequest | None:
        """Return the request, or None if the run was purged."""
        try:
            return await self.request()
        except NotFoundError:
            return None

    async def put_request(self, request: RunRequest) -> None:
        """Store the request before the orchestration starts."""
        await write_model(self._blobs, WORK, self._request_path, request)
        self._remember(self._request_path, request)

    async def keep_request(self, request: RunRequest) -> RunRequest:
        """Store the request unless one exists, and return the stored one."""
        stored = await keep_model(self._blobs, WORK, self._request_path, request)
        self._remember(self._request_path, stored)
        return stored

    async def write_value(self, value: Model) -> str:
        """Write a value that is too large for a journal line, and return the blob name."""
        content = value.model_dump_json()
        path = f"{self.folder}{digest(content)[:32]}.json"
        await self._blobs.create(WORK, path, content.encode())
        self._remember(path, value)
        return path

    async def read_value(self, path: str, kind: type[Stored]) -> Stored:
        """Read a value that a journal line references.

        Raises:
            NotFoundError: the run was purged.
        """
        return await self._read(path, kind)

    async def erase(self) -> None:
        """Delete all blobs of the run, and remove them from this process's cache."""
        for path in [path for path in self._cache if path.startswith(self.folder)]:
            del self._cache[path]
        await self._blobs.delete_prefix(WORK, self.folder)

    @property
    def _request_path(self) -> str:
        return f"{self.folder}request.json"

    async def _read(self, path: str, kind: type[Stored]) -> Stored:
        cached = self._cache.get(path)
        if isinstance(cached, kind):
            return cached
        value = await read_model(self._blobs, WORK, path, kind)
        self._remember(path, value)
        return value

    def _remember(self, path: str, value: Model) -> None:
        self._cache[path] = value
        self._cache.move_to_end(path)
        while len(self._cache) > _CACHED:
            self._cache.popitem(last=False)


def answer_path(run_id: str) -> str:
    """Return the name of a run's committed answer in the container `run-log`."""
    return f"{run_id}/answer.json"


def provenance_path(run_id: str) -> str:
    """Return the name of the blob in `run-log` that lists the documents behind an answer."""
    return f"{run_id}/provenance.json"
