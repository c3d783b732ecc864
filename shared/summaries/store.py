"""A summary's data in the `work` container: one JSON blob per result, each written once.

`summaries/{id}/request.json`, `d07/plan.json`, `d07/w003.json`, `d07/result.json`, `end.json`. Content is
stored only here, never in a history; a repeated step finds its earlier results.
"""

from shared.platform.blobs import BlobStore, find_model, keep_model, read_model, write_model
from shared.platform.models import Stored
from shared.platform.names import WORK
from shared.summaries.models import DocumentPlan, DocumentResult, SummaryEnd, SummaryRequest, WindowResult

FOLDER = "summaries/"


class SummaryStore:
    """The blobs of one summary. Of two writers of a result, the first wins."""

    def __init__(self, blobs: BlobStore, summary_id: str) -> None:
        self._blobs = blobs
        self.folder = f"{FOLDER}{summary_id}/"

    async def keep_request(self, request: SummaryRequest) -> SummaryRequest:
        """Store the request unless one exists, and return the stored one."""
        return await self._keep("request", request)

    async def put_request(self, request: SummaryRequest) -> None:
        """Overwrite the request; only before work on it has started."""
        await write_model(self._blobs, WORK, f"{self.folder}request.json", request)

    async def request(self) -> SummaryRequest:
        """Return the request. Raise NotFoundError if the summary is missing."""
        return await read_model(self._blobs, WORK, f"{self.folder}request.json", SummaryRequest)

    async def is_closed(self) -> bool:
        """Return whether the summary has ended or was deleted, so that nothing may be added."""
        names = await self.names()
        return "end" in names or "request" not in names

    async def put_plan(self, index: int, plan: DocumentPlan) -> DocumentPlan:
        """Store a document's windows unless they exist, and return the stored ones."""
        return await self._keep(f"d{index:02d}/plan", plan)

    async def plan(self, index: int) -> DocumentPlan | None:
        return await self._find(f"d{index:02d}/plan", DocumentPlan)

    async def put_window(self, index: int, number: int, result: WindowResult) -> WindowResult:
        """Store a window's result unless one exists, and return the stored one."""
        return await self._keep(f"d{index:02d}/w{number:03d}", result)

    async def window(self, index: int, number: int) -> WindowResult | None:
        return await self._find(f"d{index:02d}/w{number:03d}", WindowResult)

    async def put_result(self, index: int, result: DocumentResult) -> DocumentResult:
        """Store a document's result unless one exists, and return the stored one."""
        return await self._keep(f"d{index:02d}/result", result)

    async def result(self, index: int) -> DocumentResult | None:
        return await self._find(f"d{index:02d}/result", DocumentResult)

    async def put_end(self, end: SummaryEnd) -> SummaryEnd:
        """Store the end unless one exists, and return the stored one."""
        return await self._keep("end", end)

    async def end(self) -> SummaryEnd | None:
        return await self._find("end", SummaryEnd)

    async def names(self) -> frozenset[str]:
        """Return the names of stored results, such as `d00/w003`."""
        return frozenset(
            [
                blob.name.removeprefix(self.folder).removesuffix(".json")
                async for blob in self._blobs.list_blobs(WORK, self.folder)
            ]
        )

    async def delete(self) -> None:
        """Delete everything, the request first: without it no step writes any more."""
        await self._blobs.delete(WORK, f"{self.folder}request.json")
        await self._blobs.delete_prefix(WORK, self.folder)

    async def _keep(self, name: str, value: Stored) -> Stored:
        return await keep_model(self._blobs, WORK, f"{self.folder}{name}.json", value)

    async def _find(self, name: str, kind: type[Stored]) -> Stored | None:
        return await find_model(self._blobs, WORK, f"{self.folder}{name}.json", kind)
