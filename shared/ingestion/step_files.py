"""Intermediate results of ingestion steps, which are stored as JSON files between activities.

They are stored in the version's folder and deleted when the ingestion ends.
"""

from typing import TypeVar

from shared.documents.versions import step_file
from shared.platform.blobs import BlobStore, find_model, read_model, write_model
from shared.platform.models import Model
from shared.platform.names import WORK

PARSED = "parsed.json"
DESCRIBED = "described.json"
ORIGINAL = "original.json"
CHANGES = "changes.json"
StepResult = TypeVar("StepResult", bound=Model)


class StepFiles:
    """Storage for the intermediate results of the ingestion of one version."""

    def __init__(self, blobs: BlobStore, folder: str) -> None:
        self._blobs = blobs
        self._folder = folder

    async def put(self, name: str, result: Model) -> None:
        """Store a result under `name`. An earlier result is replaced."""
        await write_model(self._blobs, WORK, step_file(self._folder, name), result)

    async def get(self, name: str, kind: type[StepResult]) -> StepResult:
        """Return the result stored under `name`. Raise `NotFoundError` if it is missing."""
        return await read_model(self._blobs, WORK, step_file(self._folder, name), kind)

    async def find(self, name: str, kind: type[StepResult]) -> StepResult | None:
        """Return the result stored under `name`, or None if it is missing."""
        return await find_model(self._blobs, WORK, step_file(self._folder, name), kind)

    async def remove(self) -> None:
        """Delete all stored results of this version, the parsed file first.

        The parsed file tells a retried `large_files.finish` that the other results are still complete.
        """
        await self._blobs.delete(WORK, step_file(self._folder, PARSED))
        await self._blobs.delete_prefix(WORK, step_file(self._folder, ""))
