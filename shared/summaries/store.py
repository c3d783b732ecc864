"""What a summary keeps, in the `work` container: one JSON blob per result, each written once, whole.

`summaries/{id}/request.json`, `d07/plan.json`, `d07/w003.json`, `d07/result.json`, `end.json`. Content is
here and never in a history; a step that runs twice finds what it had done.
"""

from shared.platform.blobs import BlobStore, find_model, keep_model, read_model, write_model
from shared.platform.models import Stored
from shared.platform.names import WORK
from shared.summaries.models import DocumentPlan, DocumentResult, SummaryEnd, SummaryRequest, WindowResult

FOLDER = "summaries/"


class SummaryStore:
    """The blobs of one summary. Of two writers of one result the first counts."""

    def __init__(self, blobs: BlobStore, summary_id: str) -> None:
        self._blobs = blobs
        self.folder = f"{FOLDER}{summary_id}/"

    async def keep_request(self, request: SummaryRequest) -> SummaryRequest:
        """Keep the request; gives what is kept, which may be an earlier one of this id."""
        return await self._keep("request", request)

    async def put_request(self, request: SummaryRequest) -> None:
        """Overwrite the request; only before anything works from it."""
        await write_model(self._blobs, WORK, f"{self.folder}request.json", request)

    async def request(self) -> SummaryRequest:
        """The request. NotFoundError when the summary was deleted, or never was."""
        return await read_model(self._blobs, WORK, f"{self.folder}request.json", SummaryRequest)

    async def is_closed(self) -> bool:
        """Whether it has its end, or was deleted: nobody may add to it."""
        names = await self.names()
        return "end" in names or "request" not in names

    async def put_plan(self, index: int, plan: DocumentPlan) -> DocumentPlan:
        """Keep how a document is split; gives what is kept."""
        return await self._keep(f"d{index:02d}/plan", plan)

    async def plan(self, index: int) -> DocumentPlan | None:
        return await self._find(f"d{index:02d}/plan", DocumentPlan)

    async def put_window(self, index: int, number: int, result: WindowResult) -> WindowResult:
        """Keep what a window gave; gives what is kept."""
        return await self._keep(f"d{index:02d}/w{number:03d}", result)

    async def window(self, index: int, number: int) -> WindowResult | None:
        return await self._find(f"d{index:02d}/w{number:03d}", WindowResult)

    async def put_result(self, index: int, result: DocumentResult) -> DocumentResult:
        """Keep what a document gave; gives what is kept."""
        return await self._keep(f"d{index:02d}/result", result)

    async def result(self, index: int) -> DocumentResult | None:
        return await self._find(f"d{index:02d}/result", DocumentResult)

    async def put_end(self, end: SummaryEnd) -> SummaryEnd:
        """Keep how it ended; gives what is kept, which may be another end."""
        return await self._keep("end", end)

    async def end(self) -> SummaryEnd | None:
        return await self._find("end", SummaryEnd)

    async def names(self) -> frozenset[str]:
        """What is there, such as `d00/w003`."""
        return frozenset(
            [
                blob.name.removeprefix(self.folder).removesuffix(".json")
                async for blob in self._blobs.list_blobs(WORK, self.folder)
            ]
        )

    async def delete(self) -> None:
        """Remove everything. The request goes first: without it no step writes any more."""
        await self._blobs.delete(WORK, f"{self.folder}request.json")
        await self._blobs.delete_prefix(WORK, self.folder)

    async def _keep(self, name: str, value: Stored) -> Stored:
        return await keep_model(self._blobs, WORK, f"{self.folder}{name}.json", value)

    async def _find(self, name: str, kind: type[Stored]) -> Stored | None:
        return await find_model(self._blobs, WORK, f"{self.folder}{name}.json", kind)
