"""The tools `file_read` and `file_write`, with which agents keep text files in the user's workspace."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Self

from pydantic import Field

from shared.access.audit_trail import AuditTrail, record_act
from shared.access.models import AuditEntry, UserContext
from shared.platform.errors import ConfigurationError
from shared.tools.base import Parameters, Tool, ToolResult
from shared.tools.binding import Binding
from shared.tools.tool_calls import PlannedCall
from shared.tools.workspace import MAX_FILE_BYTES, Workspace

MAX_LINES = 2000
_MAX_CHARS = 12_000  # a result has at most 16,000 characters of JSON


class FileReadParameters(Parameters):
    """Arguments of `file_read`."""

    path: str = Field(description="Name of the file.", min_length=1, max_length=200)
    offset: int = Field(default=0, description="First line, counted from 0.", ge=0)
    limit: int = Field(default=MAX_LINES, description=f"Maximum number of lines, 1-{MAX_LINES}.")


class FileWriteParameters(Parameters):
    """Arguments of `file_write`."""

    path: str = Field(
        description="Name of the file, such as notes.md; no folders.", min_length=1, max_length=200
    )
    text: str = Field(description="The complete content.", max_length=MAX_FILE_BYTES)
    mode: Literal["create", "replace"] = Field(
        default="create", description="`create` refuses to change an existing file."
    )


@dataclass(frozen=True)
class FileRead(Tool):
    """Reads a text file from the user's workspace. `workspace` is None if the tool is disabled."""

    workspace: Workspace | None

    name = "file_read"
    description = (
        "Read a text file that file_write wrote for this person in the last 24 hours, by lines. For a name "
        "that is not there, the error lists the files. Nothing can be cited from it: name the file instead."
    )
    parameters = FileReadParameters
    documentation = "A file that `file_write` kept: `text`, `total_lines`, `next_offset` (null at the end)."
    example = '{"path": "notes.md"}'
    is_optional = True
    reads_documents = False

    @classmethod
    def bind(cls, binding: Binding) -> Self:
        return cls(binding.workspace_of(cls.name))

    async def _run(self, arguments: FileReadParameters) -> ToolResult:
        text = await _switched_on(self.workspace, self.name).read(arguments.path)
        lines = text.splitlines(keepends=True)
        selection = _fitting(lines[arguments.offset :][: min(max(arguments.limit, 1), MAX_LINES)])
        after, read = arguments.offset + len(selection), "".join(selection)
        return {
            "text": read[:_MAX_CHARS],
            "truncated": len(read) > _MAX_CHARS,  # true if a single line is longer than the limit
            "total_lines": len(lines),
            "next_offset": after if after < len(lines) else None,
        }


@dataclass(frozen=True)
class FileWrite(Tool):
    """Writes a text file to the user's workspace and records the write in the audit trail."""

    workspace: Workspace | None
    user: UserContext
    audit: AuditTrail

    name = "file_write"
    description = (
        "Keep a text file for this person for 24 hours: notes for later, or a result to take away. They find "
        "it under Workspace on the page of their account. At most 1 MB a file, 100 files, 20 MB."
    )
    parameters = FileWriteParameters
    documentation = (
        "Keeps a file in the person's workspace for a day: `path`, `size_bytes`, `sha256`. At most 1 MB a "
        "file, 100 files, 20 MB. No folders."
    )
    example = '{"path": "notes.md", "text": "pump"}'
    is_optional = True
    reads_documents = False
    reports_documents = True

    @classmethod
    def bind(cls, binding: Binding) -> Self:
        return cls(binding.workspace_of(cls.name), binding.user, binding.services.audit)

    async def _run(self, arguments: FileWriteParameters) -> ToolResult:
        workspace = _switched_on(self.workspace, self.name)
        size_bytes, digest = await workspace.write(arguments.path, arguments.text, arguments.mode)
        entry = AuditEntry(at=datetime.now(UTC), user_id=self.user.user_id, action="write_file")
        await record_act(self.audit, entry)
        return {"path": arguments.path, "size_bytes": size_bytes, "sha256": digest}


def reads_files(planned: PlannedCall) -> bool:
    """Return whether a call reads workspace files: `file_read`, or `python` with file names."""
    return planned.call.name == FileRead.name or bool((planned.arguments or {}).get("files"))


def _switched_on(workspace: Workspace | None, name: str) -> Workspace:
    if workspace is None:
        raise ConfigurationError("Workspaces are disabled.", f"Add {name} to AGENT_TOOLS.")
    return workspace


def _fitting(lines: list[str]) -> list[str]:
    """Return the first lines that fit into one result, at least one."""
    chars = 0
    for number, line in enumerate(lines):
        chars += len(line)
        if chars > _MAX_CHARS:
            return lines[: max(number, 1)]
    return lines
