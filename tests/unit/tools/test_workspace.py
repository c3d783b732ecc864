"""Tests for workspaces, where agents store files for one user, within limits and for one day."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.access.audit_trail import AuditFilter
from shared.access.models import UserContext
from shared.platform.errors import AccessDeniedError
from shared.platform.names import WORK
from shared.tools import workspace
from shared.tools.base import ToolResult
from shared.tools.registry import bound_tool
from shared.tools.workspace import LIFETIME, Workspace, forget_workspace, purge_workspaces
from shared.wiring import Services
from tests.fakes.services import fake_services, fake_settings

ANNA, BEN = UserContext(user_id="anna"), UserContext(user_id="ben")


@pytest.fixture
def services() -> Services:
    return fake_services(settings=fake_settings(agent_tools="file_read,file_write"))


async def write(
    services: Services, path: str, text: str, user: UserContext = ANNA, **more: Any
) -> ToolResult:
    return await bound_tool("file_write", services, user).execute(path=path, text=text, **more)


async def read(services: Services, path: str, user: UserContext = ANNA, **more: Any) -> ToolResult:
    return await bound_tool("file_read", services, user).execute(path=path, **more)


async def test_what_is_written_is_read_again(services: Services) -> None:
    result = await write(services, "Größen 1.md", "10 µm\n20 µm\n")
    assert (result["success"], result["size_bytes"]) == (True, 14)
    assert len(result["sha256"]) == 64
    assert await read(services, "Größen 1.md") == {
        "success": True,
        "text": "10 µm\n20 µm\n",
        "total_lines": 2,
        "truncated": False,
        "next_offset": None,
    }
    until = datetime.now(UTC) + timedelta(seconds=1)
    trail = await services.audit.page(AuditFilter(until - timedelta(hours=1), until), 10)
    assert [(one.user_id, one.action) for one in trail.entries] == [("anna", "write_file")]


async def test_long_files_are_read_in_parts(services: Services) -> None:
    await write(services, "long.txt", "".join(f"{n:09d}\n" for n in range(5000)))
    parts = [await read(services, "long.txt")]
    while parts[-1]["next_offset"] is not None:
        parts.append(await read(services, "long.txt", offset=parts[-1]["next_offset"]))
    assert "".join(part["text"] for part in parts).splitlines() == [f"{n:09d}" for n in range(5000)]
    assert len(parts) == 5
    assert (await read(services, "long.txt", offset=9, limit=1))["text"] == "000000009\n"
    assert (await read(services, "long.txt", offset=9000))["text"] == ""


async def test_a_line_of_any_length_is_shown_in_part(services: Services) -> None:
    await write(services, "line.txt", "x" * 100_000 + "\nend")
    first = await read(services, "line.txt")
    assert (len(first["text"]), first["truncated"], first["next_offset"]) == (12_000, True, 1)


@pytest.mark.parametrize(
    "path",
    [
        "../notes.md",
        "..",
        ".",
        "a/b.md",
        "a\\b.md",
        ".hidden",
        "a\nb",
        "%2e%2e%2fx",
        "x.",
        "x ",
        "x" * 101,
        "a\0b",
    ],
)
async def test_no_name_leads_elsewhere(services: Services, path: str) -> None:
    for result in (await write(services, path, "x"), await read(services, path)):
        assert result["type"] == "InvalidQueryError", result
    assert not services.blobs.containers.get(WORK)  # type: ignore[attr-defined]


async def test_nobody_reads_files_of_others(services: Services) -> None:
    await write(services, "notes.md", "Anna's")
    refused = await read(services, "notes.md", BEN)
    assert refused["type"] == "DocumentNotFoundError"
    assert refused["hints"] == ["Files: none."]
    assert (await read(services, "nots.md"))["hints"] == ["Files: notes.md."]
    with pytest.raises(AccessDeniedError):
        Workspace(services.blobs, UserContext(user_id=" "))


async def test_a_file_is_only_replaced_on_purpose(services: Services) -> None:
    await write(services, "notes.md", "one")
    assert (await write(services, "notes.md", "one"))["success"], "a repeated call changes nothing"
    assert (await write(services, "notes.md", "two"))["type"] == "InvalidQueryError"
    assert (await write(services, "notes.md", "two", mode="replace"))["success"]
    assert (await read(services, "notes.md"))["text"] == "two"


async def test_a_workspace_has_limits(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await write(services, "big.txt", "µ" * 500_001))["type"] == "BudgetExceededError"
    monkeypatch.setattr(workspace, "MAX_FILES", 2)
    monkeypatch.setattr(workspace, "MAX_TOTAL_BYTES", 10)
    assert (await write(services, "a", "12345678"))["success"]
    assert (await write(services, "b", "123"))["type"] == "BudgetExceededError"
    assert (await write(services, "b", "12"))["success"]
    assert (await write(services, "c", ""))["type"] == "BudgetExceededError"
    assert (await write(services, "b", "1", mode="replace"))["success"]
    assert (await write(services, "c", "", BEN))["success"], "limits count for each person"


async def test_files_go_after_a_day_and_with_the_person(services: Services) -> None:
    await write(services, "old.md", "x")
    await write(services, "new.md", "x")
    await write(services, "new.md", "x", BEN)
    blobs = services.blobs.containers[WORK]  # type: ignore[attr-defined]
    old = next(name for name in blobs if name.endswith("old.md"))
    blobs[old].modified_at -= LIFETIME
    assert [file.name for file in await Workspace(services.blobs, ANNA).files()] == ["new.md"]
    assert (await read(services, "old.md"))["type"] == "DocumentNotFoundError"
    assert await purge_workspaces(datetime.now(UTC), services.blobs) == 1
    assert await forget_workspace("anna", services.blobs) == 1
    assert [file.name for file in await Workspace(services.blobs, BEN).files()] == ["new.md"]


async def test_workspaces_are_off_by_default() -> None:
    for result in (await write(fake_services(), "a", "x"), await read(fake_services(), "a")):
        assert result["type"] == "ConfigurationError"
