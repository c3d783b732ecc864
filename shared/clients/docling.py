"""docling, as docling-serve's HTTP API: a file goes there, a task is asked for, the document comes back.

docling itself is gigabytes of libraries and models; it runs as a service of its own.

Source: docling-serve 1.x, `/v1/convert/file/async`, `/v1/status/poll/{task_id}`, `/v1/result/{task_id}`.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from shared.clients.calling import call_span
from shared.clients.connection import Connection
from shared.clients.dependency import DOCLING as SERVICE
from shared.clients.docling_layout import DoclingDocument, layout_of
from shared.clients.documents_wire import Wire, cannot_read, http_errors, not_understood, read_bounded
from shared.clients.retrying import Deadline, call_within
from shared.clients.translate import failed, rate_limited, refused, timed_out
from shared.errors import ConfigurationError
from shared.models.layout import Layout
from shared.models.prompts import CallLimits
from shared.ports import LayoutReader
from shared.settings import Settings

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

SUFFIXES = frozenset({".pdf", ".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp"})
_CONNECT_TIMEOUT_S = 5
_POLL_S = 1.0  # unmeasured; a page takes docling about a second
_TASK_ID = re.compile(r"\A[0-9A-Za-z_-]{1,100}\Z")  # it becomes a part of an address
_UNFINISHED = ("pending", "started")
_SUCCESSES = ("success", "partial_success")
_OPTIONS = {"to_formats": "json", "image_export_mode": "placeholder", "target_type": "inbody"}


class _Task(Wire):
    task_id: str
    task_status: str


class _Document(Wire):
    json_content: DoclingDocument | None = None


class _Converted(Wire):
    document: _Document
    status: str


Answer = TypeVar("Answer", bound=Wire)
Opened = Callable[[], "AbstractAsyncContextManager[ClientResponse]"]


def connect_docling(settings: Settings) -> "Connection[ClientSession]":
    """The HTTP session; it is made, and aiohttp imported, on first use."""

    def make() -> "ClientSession":
        from aiohttp import ClientSession, ClientTimeout

        if not settings.docling_endpoint:
            raise ConfigurationError("DOCLING_ENDPOINT is missing.")
        return ClientSession(
            settings.docling_endpoint.rstrip("/") + "/",
            headers={"X-Api-Key": settings.docling_api_key} if settings.docling_api_key else None,
            timeout=ClientTimeout(total=settings.parser_service_timeout_s, connect=_CONNECT_TIMEOUT_S),
        )

    return Connection(make, ("aiohttp",))


class Docling(LayoutReader):
    """One docling-serve."""

    def __init__(self, connection: "Connection[ClientSession]") -> None:
        self._connection = connection

    @property
    def name(self) -> str:
        """What messages call it."""
        return SERVICE.name

    def reads(self, suffix: str) -> bool:
        """Whether it takes files of this kind."""
        return suffix in SUFFIXES

    async def read_layout(self, source: Path, filename: str, limits: CallLimits) -> Layout:
        """The file by docling's standard pipeline, with its own text recognition."""
        with call_span(SERVICE, "read layout"):
            converted = await self._converted(source, filename, limits)
        document = converted.document.json_content
        if converted.status not in _SUCCESSES or document is None:
            raise cannot_read(SERVICE)
        try:
            return await asyncio.to_thread(layout_of, document, SERVICE.name)
        except ValueError:
            raise not_understood(SERVICE) from None

    async def _converted(self, source: Path, filename: str, limits: CallLimits) -> _Converted:
        session = await self._connection.opened()
        deadline = Deadline(limits.timeout_s)
        task = await call_within(
            deadline, limits.max_retries, lambda: _submit(session, source, filename, deadline)
        )
        await self._done(session, task, deadline, limits.max_retries)
        return await call_within(deadline, limits.max_retries, lambda: _result(session, task, deadline))

    async def _done(self, session: "ClientSession", task: _Task, deadline: Deadline, retries: int) -> None:
        """Return when the task has succeeded."""
        status = task.task_status
        while status in _UNFINISHED:
            if deadline.remaining_s <= _POLL_S:
                raise timed_out(SERVICE)
            await asyncio.sleep(_POLL_S)
            polled = await call_within(deadline, retries, lambda: _poll(session, task, deadline))
            status = polled.task_status
        if status not in _SUCCESSES:
            raise cannot_read(SERVICE)


async def _submit(session: "ClientSession", source: Path, filename: str, deadline: Deadline) -> _Task:
    from aiohttp import FormData

    # Opened for each try: one that failed has read some of it. aiohttp reads it piece by piece.
    with await asyncio.to_thread(source.open, "rb") as body:
        form = FormData(_OPTIONS)
        # The suffix tells docling the format; the rest of the name is nobody's business.
        form.add_field("files", body, filename=f"document{PurePosixPath(filename).suffix.lower()}")
        task = await _answer(
            lambda: session.post("v1/convert/file/async", data=form, allow_redirects=False), _Task, deadline
        )
    if not _TASK_ID.match(task.task_id):
        raise not_understood(SERVICE)
    return task


async def _poll(session: "ClientSession", task: _Task, deadline: Deadline) -> _Task:
    address = f"v1/status/poll/{task.task_id}"
    return await _answer(lambda: session.get(address, allow_redirects=False), _Task, deadline)


async def _result(session: "ClientSession", task: _Task, deadline: Deadline) -> _Converted:
    address = f"v1/result/{task.task_id}"
    return await _answer(lambda: session.get(address, allow_redirects=False), _Converted, deadline)


async def _answer(opened: Opened, kind: type[Answer], deadline: Deadline) -> Answer:
    with http_errors(SERVICE):
        async with asyncio.timeout_at(deadline.at), opened() as response:
            _check(response.status, response.headers)
            content = await read_bounded(response.content.iter_any(), SERVICE)
    try:
        return await asyncio.to_thread(kind.model_validate_json, content)
    except ValidationError:
        raise not_understood(SERVICE) from None


def _check(status: int, headers: Mapping[str, str]) -> None:
    if status == 200:
        return
    if status in (401, 403):
        raise refused(SERVICE)
    if status == 404:
        raise ConfigurationError(
            "DOCLING_ENDPOINT leads to no such service.", "Check it; docling-serve must be of version 1."
        )
    if status in (400, 413, 415, 422):
        raise cannot_read(SERVICE, f"HTTP {status}")
    if status == 429:
        raise rate_limited(SERVICE, headers)
    raise failed(SERVICE, status)
