"""`RunLog` over append blobs: one blob per run, one JSON line per event, one block per append.

The service appends a block whole or not at all, and can refuse it when the blob does not end where the writer
thinks it does: that is all the locking there is. We never send an append twice: after a lost answer nobody
can know whether it was done.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shared.clients.connection import Connection
from shared.clients.dependency import BLOBS
from shared.clients.retrying import Deadline, call_within
from shared.clients.translate import azure_errors
from shared.errors import ConflictError, GroundworkError, NotFoundError, PayloadTooLargeError, RateLimitError
from shared.models.events import LogSlice, RunEvent
from shared.models.names import RUN_LOG
from shared.ports import RunLog

if TYPE_CHECKING:
    from azure.storage.blob.aio import BlobClient, BlobServiceClient

APPEND_TIMEOUT_S = 20.0  # 2 ms measured; the rest is for waiting when the account sheds load
BUSY_RETRIES = 4
_SEND_ONCE: dict[str, Any] = {"retry_total": 0}


class BlobRunLog(RunLog):
    """The logs of all runs, in the container `run-log`."""

    def __init__(self, connection: "Connection[BlobServiceClient]", container: str = RUN_LOG) -> None:
        self._connection = connection
        self._container = container

    async def create(self, run_id: str) -> None:
        """Start the log; one that exists is left as it is."""
        from azure.core import MatchConditions
        from azure.core.exceptions import ResourceExistsError

        with azure_errors(BLOBS, _no_log):
            try:
                await self._blob(run_id).create_append_blob(match_condition=MatchConditions.IfMissing)
            except ResourceExistsError:
                return

    async def append(self, run_id: str, events: Sequence[RunEvent], *, at_offset: int | None = None) -> int:
        """Append atomically; returns the new end in bytes.

        Raises:
            ConflictError: the log does not end at `at_offset`.
            PayloadTooLargeError: the log is full (50,000 appends), or this one is too large.
        """
        lines = "".join(f"{event.model_dump_json()}\n" for event in events).encode()
        deadline = Deadline(APPEND_TIMEOUT_S)

        async def attempt() -> int:
            with azure_errors(BLOBS, _append_status):
                async with asyncio.timeout_at(deadline.at):
                    return await self._append(run_id, lines, at_offset)

        # "Busy" is said before anything is done: the one answer after which trying again is safe.
        return await call_within(deadline, BUSY_RETRIES, attempt, retry_on=RateLimitError)

    async def read(self, run_id: str, offset: int = 0) -> LogSlice:
        """Whole lines from a byte offset on."""
        with azure_errors(BLOBS, _no_log):
            content = await self._content(run_id, offset)
        end = content.rfind(b"\n") + 1  # appends end with a line; this holds should one ever not
        lines = content[:end].decode().split("\n")[:-1]
        return LogSlice(lines=tuple(lines), next_offset=offset + end)

    async def delete(self, run_id: str) -> None:
        """Remove the log."""
        from azure.core.exceptions import ResourceNotFoundError

        with azure_errors(BLOBS):
            try:
                await self._blob(run_id).delete_blob()
            except ResourceNotFoundError:
                return

    async def _append(self, run_id: str, lines: bytes, at_offset: int | None) -> int:
        condition: dict[str, Any] = {} if at_offset is None else {"appendpos_condition": at_offset}
        done = await self._blob(run_id).append_block(lines, length=len(lines), **condition, **_SEND_ONCE)
        return int(str(done["blob_append_offset"])) + len(lines)

    async def _content(self, run_id: str, offset: int) -> bytes:
        from azure.core.exceptions import HttpResponseError

        try:
            stream = await self._blob(run_id).download_blob(offset=offset)
            content: bytes = await stream.readall()
        except HttpResponseError as error:
            if error.status_code == 416:  # nothing lies behind the offset
                return b""
            raise
        return content

    def _blob(self, run_id: str) -> "BlobClient":
        return self._connection.client().get_blob_client(self._container, f"{run_id}/events.jsonl")


def _no_log(status: int, message: str) -> GroundworkError | None:
    return NotFoundError("There is no log of this run.") if status == 404 else None


def _append_status(status: int, message: str) -> GroundworkError | None:
    if status == 412:
        return ConflictError("The log of this run grew meanwhile.")
    if status in (409, 413):  # 50,000 blocks, or a block beyond the service's limit: not a race
        return PayloadTooLargeError("The log of this run takes no more.")
    return _no_log(status, message)
