"""Uploads one file: through the app, or in blocks directly to storage if it is large.

Uploaded blocks are recorded, so an interrupted upload resumes even if the program was killed. Storage keeps
uncommitted blocks for a week.
"""

import base64
import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

import httpx

from cli.api import Api
from cli.errors import CommandError

DOCUMENTS = "/documents"  # path to which documents are posted
LARGE_BYTES = 4_000_000  # same value as MAX_UPLOAD_BYTES; larger files go directly to storage
BLOCK_BYTES = 8_000_000  # takes 4 s at 16 Mbit/s; a broken connection loses at most one block
_TRIES = 6
_WAITS = 40  # maximum number of waits for the rate limit, which other transfers share
_TIMEOUT = httpx.Timeout(120.0, connect=10.0)
_EXPIRED = 403
_UNKNOWN_BLOCKS = 400
_BROKEN = 500


class CountedFile:
    """A file that reports the size of each chunk read, to display upload progress."""

    def __init__(self, file: BinaryIO, on_bytes: Callable[[int], None]) -> None:
        self._file = file
        self._on_bytes = on_bytes

    def read(self, size: int = -1) -> bytes:
        """Read bytes and report them to the progress display."""
        piece = self._file.read(size)
        self._on_bytes(len(piece))
        return piece

    def __iter__(self) -> Iterator[bytes]:
        while piece := self.read(64 * 1024):
            yield piece

    def fileno(self) -> int:
        """Return the file descriptor, from which httpx determines the content length."""
        return self._file.fileno()


@dataclass
class Transfer:
    """Progress of a large upload. A changed size or modification time starts a new transfer.

    Attributes:
        prefix: prefix of its block names, unique to this transfer.
        blocks: number of uploaded blocks.
    """

    size_bytes: int
    changed_ns: int
    block_bytes: int
    prefix: str = field(default_factory=lambda: secrets.token_hex(6))
    blocks: int = 0

    def names(self, count: int) -> list[str]:
        """Return the names of the first `count` blocks. The service requires names of equal length."""
        return [base64.b64encode(f"{self.prefix}-{at:06}".encode()).decode() for at in range(count)]

    @property
    def count(self) -> int:
        """Return the total number of blocks."""
        return -(-self.size_bytes // self.block_bytes)


class Ticket:
    """A signed upload URL, renewed when it expires."""

    def __init__(self, api: Api, request: dict[str, Any], address: str = DOCUMENTS) -> None:
        """Request URLs from `{address}/uploads`."""
        self._api = api
        self._address = address
        self._request = request
        self._given: dict[str, Any] = {}

    @property
    def doc_id(self) -> str:
        return str(self._taken()["doc_id"])

    def put(self, query: str, content: bytes) -> None:
        """Write a block or block list to storage, retrying temporary failures.

        Raises:
            CommandError: storage refused it.
        """
        failure: CommandError | None = None
        for attempt in range(_TRIES):
            try:
                answered = httpx.put(f"{self._taken()['url']}&{query}", content=content, timeout=_TIMEOUT)
            except httpx.HTTPError as failed:
                failure = CommandError(f"Storage refused the file ({type(failed).__name__}).")
            else:
                if answered.is_success:
                    return
                failure = CommandError(
                    f"Storage responded with HTTP {answered.status_code}.", status=answered.status_code
                )
                if answered.status_code == _EXPIRED:
                    self._given = {}
                elif answered.status_code < _BROKEN:
                    break
            time.sleep(min(2.0**attempt / 4, 8.0))
        raise failure or CommandError("Storage refused the file.")

    def _taken(self) -> dict[str, Any]:
        if not self._given:
            self._given = self._api.call("POST", f"{self._address}/uploads", json=self._request)
        return self._given


def send_through(
    api: Api, path: Path, fields: dict[str, Any], on_bytes: Callable[[int], None], address: str = DOCUMENTS
) -> str:
    """Send a file through the app and return the document's id. If the app asks for a wait, the file is read
    and sent again.

    Args:
        address: where files are added.

    Raises:
        CommandError: the app refused the file.
    """
    fields = {name: value for name, value in fields.items() if value is not None}
    for _ in range(_WAITS):
        sent_bytes = 0

        def count(size: int) -> None:
            nonlocal sent_bytes
            sent_bytes += size
            on_bytes(size)

        try:
            with path.open("rb") as opened:
                files = {"file": (path.name, CountedFile(opened, count))}
                return str(api.call("POST", address, data=fields, files=files)["doc_id"])
        except CommandError as refused:
            on_bytes(-sent_bytes)
            if not refused.may_repeat:
                raise
    raise CommandError(
        "The app refused too many requests in a row.", "Try again later; finished blocks are not sent again."
    )


def send_in_blocks(
    api: Api, path: Path, ticket: Ticket, on_bytes: Callable[[int], None], note: Callable[[str], None]
) -> None:
    """Send a large file in blocks, skipping blocks that were uploaded earlier.

    Raises:
        CommandError: the upload was refused or interrupted; its progress is saved.
    """
    record_path = _kept_path(api, path, ticket.doc_id)
    transfer = _load_or_create(path, record_path)
    if transfer.blocks:
        note(f"{path.name}: resumes after {transfer.blocks} of {transfer.count} blocks.")
        on_bytes(min(transfer.blocks * transfer.block_bytes, transfer.size_bytes))
    _send_blocks(path, ticket, transfer, record_path, on_bytes)
    try:
        _commit(ticket, transfer)
    except CommandError as refused:
        if refused.status != _UNKNOWN_BLOCKS:
            raise
        # Storage discarded the blocks, or another client wrote this blob: start over once.
        record_path.unlink(missing_ok=True)
        on_bytes(-transfer.size_bytes)
        transfer = _load_or_create(path, record_path)
        _send_blocks(path, ticket, transfer, record_path, on_bytes)
        _commit(ticket, transfer)
    record_path.unlink(missing_ok=True)


def _send_blocks(
    path: Path, ticket: Ticket, transfer: Transfer, record: Path, on_bytes: Callable[[int], None]
) -> None:
    names = transfer.names(transfer.count)
    with path.open("rb") as file:
        file.seek(transfer.blocks * transfer.block_bytes)
        while transfer.blocks < transfer.count:
            block = file.read(transfer.block_bytes)
            ticket.put(f"comp=block&blockid={quote(names[transfer.blocks], safe='')}", block)
            transfer.blocks += 1
            _keep(transfer, record)
            on_bytes(len(block))
    if _looks(path) != (transfer.size_bytes, transfer.changed_ns):
        record.unlink(missing_ok=True)
        raise CommandError(f"{path.name} changed while it was sent.", "Send the file again.")


def _commit(ticket: Ticket, transfer: Transfer) -> None:
    latest = "".join(f"<Latest>{name}</Latest>" for name in transfer.names(transfer.count))
    body = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{latest}</BlockList>'
    ticket.put("comp=blocklist", body.encode())


def _load_or_create(path: Path, record_path: Path) -> Transfer:
    """Return the interrupted transfer of this file, or a new transfer if there is none or the file has
    changed.
    """
    size_bytes, changed_ns = _looks(path)
    try:
        transfer = Transfer(**json.loads(record_path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        transfer = None
    if transfer and (transfer.size_bytes, transfer.changed_ns) == (size_bytes, changed_ns):
        return transfer
    return Transfer(size_bytes, changed_ns, BLOCK_BYTES)


def _looks(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


def _keep(transfer: Transfer, record_path: Path) -> None:
    record_path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = record_path.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(asdict(transfer)), encoding="utf-8")
    draft.replace(record_path)


def _kept_path(api: Api, path: Path, doc_id: str) -> Path:
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    name = hashlib.sha256(f"{api.url}\n{doc_id}\n{path.resolve()}".encode()).hexdigest()[:32]
    return Path(base) / "groundwork" / "uploads" / f"{name}.json"
