"""`RunLog` stored in append blobs: one blob per run, one JSON line per event and one block per append.

Azure Storage appends a block completely or not at all, and rejects it if the blob doesn't end at the expected
offset. This condition is the only lock. An append is never repeated blindly, because a lost response doesn't
reveal whether it succeeded.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from azure.core import MatchConditions

from shared.platform.calls import (
    BLOBS,
    STORAGE_LIMITS,
    Deadline,
    StorageLimits,
    azure_errors,
    call_span,
    call_within,
    calling,
    each_within,
)
from shared.platform.connections import Connection
from shared.platform.errors import (
    ConflictError,
    GroundworkError,
    NotFoundError,
    PayloadTooLargeError,
    RangeError,
    RateLimitError,
)
from shared.platform.names import RUN_LOG
from shared.runs.events import RunEvent, StepStatus, is_terminal
from shared.runs.log_lines import LogSlice
from shared.runs.run_log import LogTail, RunLog

if TYPE_CHECKING:
    from azure.storage.blob.aio import BlobClient, BlobServiceClient

BUSY_RETRIES = 4
# Number of recently used clients to cache. Creating a client costs half as much as an append.
KEPT_CLIENTS = 64
# Number of bytes read at once by a reader that has fallen behind.
PIECE_BYTES = 256 * 1024
MAX_APPEND_BYTES = 1_000_000  # large values have separate blobs, so a larger append is a defect
# Azure Storage allows 50,000 appends per blob. The rest is reserved for attempts to end the run.
MAX_APPENDS = 45_000
_SEND_ONCE: dict[str, Any] = {"retry_total": 0}


class BlobRunLog(RunLog):
    """`RunLog` of all runs in the container `run-log`, with one append blob per run."""

    def __init__(
        self,
        connection: "Connection[BlobServiceClient]",
        container: str = RUN_LOG,
        limits: StorageLimits = STORAGE_LIMITS,
    ) -> None:
        self._connection = connection
        self._container = container
        self._limits = limits
        self._tails: dict[str, LogTail] = {}
        self._readers: Counter[str] = Counter()
        self._made_by: BlobServiceClient | None = None
        self._blobs: dict[str, BlobClient] = {}
        # number of appends as counted by the service, for each run with a cached client
        self._appends: dict[str, int] = {}

    @contextmanager
    def watch(self, run_id: str) -> Iterator[LogTail]:
        """Yield the cached end of the log, shared by all concurrent watchers in this process."""
        self._readers[run_id] += 1
        try:
            yield self._tails.setdefault(run_id, LogTail())
        finally:
            self._readers[run_id] -= 1
            if not self._readers[run_id]:
                del self._readers[run_id], self._tails[run_id]

    async def create(self, run_id: str) -> None:
        try:
            async with self._call(run_id, "create") as blob:
                await blob.create_append_blob(match_condition=MatchConditions.IfMissing)
        except ConflictError:
            return

    async def append(self, run_id: str, events: Sequence[RunEvent], *, at_offset: int | None = None) -> int:
        """Append the events atomically and return the new end of the log in bytes.

        Raises:
            ConflictError: the log does not end at `at_offset`.
            PayloadTooLargeError: this append is too large, or the log is full. A full log still accepts the
                marks of steps and the run's last event.
        """
        dumped = [event.to_line() for event in events]
        lines = "".join(f"{line}\n" for line in dumped).encode()
        is_end = any(is_terminal(event) or isinstance(event, StepStatus) for event in events)
        if len(lines) > MAX_APPEND_BYTES or (self._appends.get(run_id, 0) >= MAX_APPENDS and not is_end):
            raise PayloadTooLargeError("The log of this run is full.")
        deadline = Deadline(self._limits.call_s)

        async def attempt() -> int:
            blob = self._blob(await self._connection.opened(), run_id)
            with call_span(BLOBS, "append"), azure_errors(BLOBS, _append_status):
                async with asyncio.timeout_at(deadline.at):
                    end, self._appends[run_id] = await _append(blob, lines, at_offset)
                    return end

        # A busy service rejects the request before acting on it, so this is the only safe retry.
        end = await call_within(deadline, BUSY_RETRIES, attempt, retry_on=RateLimitError)
        if (tail := self._tails.get(run_id)) is not None:
            tail.add(end - len(lines), dumped, end, written_here=True)
        return end

    async def read(self, run_id: str, offset: int = 0) -> LogSlice:
        return _whole_lines(await self._content(run_id, offset, None), offset)

    async def read_piece(self, run_id: str, offset: int) -> LogSlice:
        """Return the complete lines after a byte offset, up to PIECE_BYTES. A longer single line is returned
        whole.
        """
        content = await self._content(run_id, offset, PIECE_BYTES)
        if len(content) == PIECE_BYTES and b"\n" not in content:  # The first line is longer than a piece.
            return await self.read(run_id, offset)
        return _whole_lines(content, offset)

    async def delete(self, run_id: str) -> None:
        try:
            async with self._call(run_id, "delete") as blob:
                await blob.delete_blob()
        except NotFoundError:
            return

    async def _content(self, run_id: str, offset: int, length: int | None) -> bytes:
        try:
            async with self._call(run_id, "read") as blob:
                stream = await blob.download_blob(offset=offset, length=length)
        except RangeError:  # The log ends at this offset.
            return b""
        pieces = each_within(self._limits.piece_s, stream.chunks(), BLOBS, _log_status)
        return b"".join([piece async for piece in pieces])

    @asynccontextmanager
    async def _call(self, run_id: str, operation: str) -> "AsyncIterator[BlobClient]":
        limit_s = self._limits.call_s
        client_call = calling(self._connection, BLOBS, _log_status, timeout_s=limit_s, operation=operation)
        async with client_call as client:
            yield self._blob(client, run_id)

    def _blob(self, client: "BlobServiceClient", run_id: str) -> "BlobClient":
        if self._made_by is not client:
            self._made_by, self._blobs = client, {}
        blob = self._blobs.pop(run_id, None)
        if blob is None:
            blob = client.get_blob_client(self._container, f"{run_id}/events.jsonl")
        self._blobs[run_id] = blob  # Most recently used clients come last.
        if len(self._blobs) > KEPT_CLIENTS:
            oldest = next(iter(self._blobs))
            del self._blobs[oldest]
            self._appends.pop(oldest, None)
        return blob


def _whole_lines(content: bytes, offset: int) -> LogSlice:
    end = content.rfind(b"\n") + 1  # A piece may end inside a line; an append always ends with one.
    lines = content[:end].decode().split("\n")[:-1]
    return LogSlice(lines=tuple(lines), next_offset=offset + end)


async def _append(blob: "BlobClient", lines: bytes, at_offset: int | None) -> tuple[int, int]:
    """Append the lines; return the new end in bytes and the blob's number of appends."""
    condition: dict[str, Any] = {} if at_offset is None else {"appendpos_condition": at_offset}
    done = await blob.append_block(lines, length=len(lines), **condition, **_SEND_ONCE)
    return int(str(done["blob_append_offset"])) + len(lines), int(str(done["blob_committed_block_count"]))


def _log_status(status: int, message: str) -> GroundworkError | None:
    if status == 416:
        return RangeError("The offset is beyond the end of the run's log.")
    return NotFoundError("There is no log of this run.") if status == 404 else None


def _append_status(status: int, message: str) -> GroundworkError | None:
    if status == 412:
        return ConflictError("The log of this run grew meanwhile.")
    # The blob has too many appends, or this one is too large. This is not a conflict with another writer.
    if status in (409, 413):
        return PayloadTooLargeError("The log of this run is full.")
    return _log_status(status, message)
