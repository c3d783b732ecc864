"""Azure Document Intelligence, by its SDK: the layout of a file, or the words of some of its pages.

The SDK sends the file; asking for the result is ours. Its poller gives up at the first 429, takes answers of
any size, and follows whatever address the service names, with the key in a header.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pydantic import Field, ValidationError

from shared.clients.calling import call_span
from shared.clients.connection import Connection
from shared.clients.credentials import Credentials, credential_modules
from shared.clients.dependency import DOCUMENT_INTELLIGENCE as SERVICE
from shared.clients.document_intelligence_layout import AnalyzeResult, layout_of, page_texts
from shared.clients.documents_wire import Wire, cannot_read, not_understood, read_bounded
from shared.clients.retrying import Deadline, call_within
from shared.clients.translate import azure_errors, failed, retry_after_s, timed_out
from shared.errors import ConfigurationError, GroundworkError
from shared.models.layout import Layout, PageTexts
from shared.models.prompts import CallLimits
from shared.ports import LayoutReader, PageReader
from shared.settings import Settings

if TYPE_CHECKING:
    from azure.ai.documentintelligence.aio import DocumentIntelligenceClient

API_VERSION = "2024-11-30"
LAYOUT_MODEL = "prebuilt-layout"
READ_MODEL = "prebuilt-read"
SUFFIXES = frozenset({".pdf", ".png", ".jpg", ".jpeg", ".tif", ".tiff"})
_CONNECT_TIMEOUT_S = 5
_POLL_S = 1.0  # when the service names no pause; the documentation advises 1 to 2 s
_RESULT_ID = re.compile(r"/analyzeResults/([0-9A-Za-z-]{1,100})(?:\?|\Z)")
_CODE = re.compile(r"\A[A-Za-z0-9]{1,60}\Z")
_SERVICE_FAULTS = ("InternalServerError", "ServiceUnavailable", "Timeout")


class _InnerError(Wire):
    code: str = ""


class _Error(Wire):
    code: str = ""
    inner: _InnerError | None = Field(default=None, alias="innererror")


class _Operation(Wire):
    """Where an analysis stands: notStarted, running, succeeded, failed, canceled."""

    status: str
    error: _Error | None = None
    result: AnalyzeResult | None = Field(default=None, alias="analyzeResult")


@dataclass(frozen=True)
class _Analysis:
    """One that was accepted, and how long to wait before asking for it."""

    model: str
    result_id: str
    wait_s: float


def connect_document_intelligence(
    settings: Settings, credentials: Credentials
) -> "Connection[DocumentIntelligenceClient]":
    """The client; it is made, and the SDK imported, on first use."""

    def make() -> "DocumentIntelligenceClient":
        from azure.ai.documentintelligence.aio import DocumentIntelligenceClient

        endpoint = settings.document_intelligence_endpoint
        if not endpoint:
            raise ConfigurationError("DOCUMENT_INTELLIGENCE_ENDPOINT is missing.")
        return DocumentIntelligenceClient(
            endpoint.rstrip("/"),
            credentials.for_document_intelligence(endpoint),
            api_version=API_VERSION,
            connection_timeout=_CONNECT_TIMEOUT_S,
            read_timeout=settings.parser_service_timeout_s,
            retry_total=0,  # the tries are ours: the SDK's add up beyond the limit of a call
            permit_redirects=False,  # the key would go along
        )

    modules = ("azure.ai.documentintelligence.aio", "aiohttp")
    return Connection(make, (*modules, *credential_modules(settings.document_intelligence_key)))


class DocumentIntelligence(LayoutReader, PageReader):
    """One resource."""

    def __init__(self, connection: "Connection[DocumentIntelligenceClient]") -> None:
        self._connection = connection

    @property
    def name(self) -> str:
        """What messages call it."""
        return SERVICE.name

    def reads(self, suffix: str) -> bool:
        """Whether it takes files of this kind."""
        return suffix in SUFFIXES

    async def read_layout(self, source: Path, filename: str, limits: CallLimits) -> Layout:
        """The file by the layout model."""
        with call_span(SERVICE, "read layout"):
            result = await self._analyze(LAYOUT_MODEL, source, limits)
        try:
            return await asyncio.to_thread(layout_of, result, SERVICE.name)
        except ValueError:
            raise not_understood(SERVICE) from None

    async def read_pages(self, source: Path, pages: Sequence[int], limits: CallLimits) -> PageTexts:
        """The words of these pages by the read model; only they are paid for."""
        with call_span(SERVICE, "read pages"):
            result = await self._analyze(READ_MODEL, source, limits, page_ranges(pages))
        return PageTexts(texts=page_texts(result))

    async def _analyze(
        self, model: str, source: Path, limits: CallLimits, pages: str | None = None
    ) -> AnalyzeResult:
        client = await self._connection.opened()
        deadline = Deadline(limits.timeout_s)
        analysis = await call_within(
            deadline, limits.max_retries, lambda: _submit(client, model, source, pages, deadline)
        )
        wait_s = analysis.wait_s
        while True:
            if wait_s >= deadline.remaining_s:
                raise timed_out(SERVICE)
            await asyncio.sleep(wait_s)
            found = await call_within(deadline, limits.max_retries, lambda: _poll(client, analysis, deadline))
            if isinstance(found, AnalyzeResult):
                return found
            wait_s = found


def page_ranges(pages: Iterable[int]) -> str:
    """ "1-3,5" for the pages 1, 2, 3 and 5."""
    ranges: list[list[int]] = []
    for page in sorted(set(pages)):
        if ranges and page == ranges[-1][1] + 1:
            ranges[-1][1] = page
        else:
            ranges.append([page, page])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in ranges)


async def _submit(
    client: "DocumentIntelligenceClient", model: str, source: Path, pages: str | None, deadline: Deadline
) -> _Analysis:
    headers: dict[str, str] = {}

    def keep_headers(response: Any) -> None:
        headers.update({name.lower(): value for name, value in response.http_response.headers.items()})

    # Opened for each try: one that failed has read some of it. The transport reads it piece by piece.
    with azure_errors(SERVICE, _read_status), await asyncio.to_thread(source.open, "rb") as body:
        async with asyncio.timeout_at(deadline.at):
            await client.begin_analyze_document(
                model, body, pages=pages, polling=False, raw_response_hook=keep_headers
            )
    found = _RESULT_ID.search(headers.get("operation-location", ""))
    if found is None:
        raise not_understood(SERVICE)
    return _Analysis(model, found[1], _wait_s(headers))


async def _poll(
    client: "DocumentIntelligenceClient", analysis: _Analysis, deadline: Deadline
) -> AnalyzeResult | float:
    """The result, or the seconds to wait until the next look."""
    from azure.core.exceptions import HttpResponseError
    from azure.core.rest import HttpRequest

    request = HttpRequest(
        "GET",
        f"/documentModels/{analysis.model}/analyzeResults/{analysis.result_id}",
        params={"api-version": API_VERSION},
    )
    with azure_errors(SERVICE, _read_status):
        async with (
            asyncio.timeout_at(deadline.at),
            await client.send_request(request, stream=True) as response,
        ):
            if response.status_code != 200:
                await response.read()
                raise HttpResponseError(response=response)
            answer = await read_bounded(response.iter_bytes(), SERVICE)
            headers: Mapping[str, str] = response.headers
    operation = await asyncio.to_thread(_operation, answer)
    if operation.status in ("notStarted", "running"):
        return _wait_s(headers)
    if operation.status != "succeeded":
        _refuse(operation.error)
    if operation.result is None:
        raise not_understood(SERVICE)
    return operation.result


def _operation(answer: bytes) -> _Operation:
    try:
        return _Operation.model_validate_json(answer)
    except ValidationError:
        raise not_understood(SERVICE) from None


def _refuse(error: _Error | None) -> NoReturn:
    code = _code_of(error)
    if not code or code in _SERVICE_FAULTS:
        raise failed(SERVICE, 500)
    raise cannot_read(SERVICE, code)


def _code_of(error: _Error | None) -> str:
    """The most exact code that the service gives: a word, no text of the document."""
    if error is None:
        return ""
    code = error.inner.code if error.inner and error.inner.code else error.code
    return code if _CODE.match(code) else ""


def _read_status(status: int, _message: str) -> GroundworkError | None:
    if status in (400, 413, 415, 422):
        return cannot_read(SERVICE, f"HTTP {status}")
    if status == 404:
        return ConfigurationError(
            "DOCUMENT_INTELLIGENCE_ENDPOINT leads to no such service.",
            "Check it; the resource must offer version 2024-11-30.",
        )
    return None


def _wait_s(headers: Mapping[str, str]) -> float:
    asked_s = retry_after_s(headers)
    return _POLL_S if asked_s is None else asked_s
