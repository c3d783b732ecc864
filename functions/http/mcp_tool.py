"""Base class of the tools of the MCP server. Each call runs with the permissions of the calling user."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import azure.durable_functions as df
from fastapi import Request

from functions.http.requests import note_act
from shared.access.models import UserContext
from shared.platform.errors import AccessDeniedError, DocumentNotFoundError, GroundworkError, NotFoundError
from shared.tools.base import HINTS, Tool, ToolResult
from shared.tools.registry import Binding
from shared.wiring import Services

ITEM = re.compile(r"([A-Za-z0-9_-]{1,100})(?:/pages/([1-9][0-9]{0,5}))?", re.ASCII)
"""Id of a search result: a document id, optionally with a page number."""
_REFUSALS = {AccessDeniedError.code, DocumentNotFoundError.code, NotFoundError.code}
Progress = Callable[[str], Awaitable[None]]
"""Function that tells the client in words what is being done."""


@dataclass(frozen=True)
class McpCall:
    """The request, user and services of one MCP tool call.

    Attributes:
        address: base URL of the app in a browser, without a trailing slash.
        progress: reports progress; None if the client doesn't want any.
    """

    request: Request
    user: UserContext
    services: Services
    client: df.DurableOrchestrationClient
    address: str
    progress: Progress | None = None

    @property
    def binding(self) -> Binding:
        """The search indexes, restricted to documents that the user may read."""
        return Binding(self.services, self.user)


class McpTool(Tool):
    """Base class of the MCP tools. An instance serves a single call.

    Attributes:
        waits: whether a call stays open until a run has ended.
    """

    waits: ClassVar[bool] = False

    def __init__(self, call: McpCall) -> None:
        self._call = call

    async def execute(self, /, **kwargs: Any) -> ToolResult:
        """Run the tool, and add an entry to the audit trail if the caller was denied access."""
        result = await super().execute(**kwargs)
        if result.get("type") in _REFUSALS:
            await note_refused_tool(self._call, self.name, str(kwargs.get("id", "")))
        return result

    def _failure(self, error: GroundworkError) -> ToolResult:
        """Convert an error to a failed result with the error code that the HTTP API uses."""
        hints = list(error.hints or HINTS.get(error.code, ()))
        return {**super()._failure(error), "type": error.code, "hints": hints}

    @classmethod
    def describe(cls, call: McpCall) -> dict[str, Any]:
        """Return the entry that describes the tool in `tools/list`."""
        return {
            "name": cls.name,
            "description": cls.description_for(call),
            "inputSchema": cls.parameters.model_json_schema(),
            # `ask` counts as read-only too: it stores a run of the caller but changes no other data.
            "annotations": {"readOnlyHint": True, "openWorldHint": False},
        }

    @classmethod
    def description_for(cls, call: McpCall) -> str:
        """Return the description of the tool, which subclasses may adapt to the caller."""
        del call
        return cls.description


async def note_refused_tool(call: McpCall, name: str, item: str) -> None:
    """Record in the audit trail that a tool call was denied access. `item` is the requested item id, or "" if
    there is none. Never raises.
    """
    matched = ITEM.fullmatch(item)
    doc_ids = [matched[1]] if matched else []
    subject = f"MCP {name}"
    await note_act(
        call.request, call.user, call.services, "refused", *doc_ids, subject=subject, may_repeat=True
    )
