"""Working memory of one run in the `work` container: one JSON blob per step and kind of result."""

from typing import TypeVar

from shared.errors import NotFoundError
from shared.models.base import Model
from shared.models.names import WORK
from shared.models.runs import RunRequest
from shared.ports import BlobStore

Stored = TypeVar("Stored", bound=Model)


class WorkingMemory:
    """Reads and writes what steps hand on. A step's result is written once, whole, at its end."""

    def __init__(self, blobs: BlobStore, run_id: str) -> None:
        self._blobs = blobs
        self.run_id = run_id

    async def put_request(self, request: RunRequest) -> None:
        """Keep the question; done before the orchestration starts."""
        await self._write("request", request)

    async def request(self) -> RunRequest:
        """The question. NotFoundError when the run was purged."""
        return await self._read("request", RunRequest)

    async def put(self, step: int, result: Model) -> None:
        """Keep the result of a step."""
        await self._write(f"{step:03d}", result)

    async def get(self, step: int, kind: type[Stored]) -> Stored:
        """The result of a step. NotFoundError when it has none."""
        return await self._read(f"{step:03d}", kind)

    async def find(self, step: int, kind: type[Stored]) -> Stored | None:
        """The result of a step if an earlier attempt of it got that far."""
        try:
            return await self.get(step, kind)
        except NotFoundError:
            return None

    async def _write(self, name: str, value: Model) -> None:
        await self._blobs.write(WORK, self._path(name), value.model_dump_json().encode())

    async def _read(self, name: str, kind: type[Stored]) -> Stored:
        return kind.model_validate_json(await self._blobs.read(WORK, self._path(name)))

    def _path(self, name: str) -> str:
        return f"runs/{self.run_id}/{name}.json"
