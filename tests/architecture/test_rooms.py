"""Who may import whom: every import of the project against the table in docs/architecture.md."""

import logging
from dataclasses import dataclass

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from tests.architecture.source_tree import ROOT, imports, is_within, module_name, parse, python_files

OURS = (
    "shared",
    "functions",
    "orchestrations",
    "function_app",
    "local",
    "samples",
    "scripts",
    "cli",
    "benchmarks",
    "evals",
)
# Glue without a row: packages of rooms, which are empty.
PACKAGES = {"shared", "local"}


@dataclass(frozen=True)
class Room:
    """One row of the table."""

    name: str
    allowed: tuple[str, ...]
    excepted: tuple[str, ...]
    banned: tuple[str, ...]

    def permits(self, imported: str) -> bool:
        if is_within(imported, self.name):
            return True
        if any(is_within(imported, room) for room in self.excepted):
            return False
        return any(is_within(imported, room) for room in self.allowed)


def names(cell: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in cell.split(",") if name.strip())


def read_rooms() -> list[Room]:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.split("| room | may import | may not use |\n|---|---|---|\n")[1].split("\n\n")[0]
    rooms = []
    for line in table.splitlines():
        name, may_import, may_not_use = (cell.strip() for cell in line.strip().strip("|").split("|"))
        allowed, _, excepted = may_import.partition(" except ")
        rooms.append(Room(name, names(allowed), names(excepted), names(may_not_use)))
    return rooms


ROOMS = read_rooms()


def room_of(module: str) -> Room | None:
    """The most particular row that a module falls under."""
    fitting = [room for room in ROOMS if is_within(module, room.name)]
    return max(fitting, key=lambda room: len(room.name), default=None)


def test_every_module_has_a_room() -> None:
    homeless = [
        module
        for path in python_files()
        if (module := module_name(path)) not in PACKAGES
        and path.parts[0] != "tests"
        and room_of(module) is None
    ]
    assert homeless == []


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_a_room_imports_only_what_the_table_allows(room: Room) -> None:
    offences = [
        f"{path}:{line} imports {imported}"
        for path in python_files()
        if room_of(module_name(path)) == room
        for line, imported in imports(parse(path))
        if (imported.split(".")[0] in OURS and not room.permits(imported))
        or any(is_within(imported, banned) for banned in room.banned)
    ]
    assert offences == []


def test_imports_are_absolute() -> None:
    relative = [
        str(path)
        for path in python_files(*OURS)
        if any(name.startswith(".") for _, name in imports(parse(path)))
    ]
    assert relative == []


def test_a_forbidden_import_would_be_found() -> None:
    core = room_of("shared.core.loop")
    assert core is not None
    assert core.permits("shared.models.plan")
    assert not core.permits("shared.clients.search_index")
    assert "random" in core.banned
    functions = room_of("functions.chat")
    assert functions is not None
    assert functions.permits("shared.wiring")
    assert not functions.permits("shared.clients.blob_store")


def test_no_forbidden_room_is_reached_by_a_detour() -> None:
    try:
        assert lint_imports(config_filename=str(ROOT / ".importlinter"), no_logo=True) == EXIT_STATUS_SUCCESS
    finally:
        # It sets logging up for itself and thereby switches off every logger there is: others test theirs.
        for logger in logging.root.manager.loggerDict.values():
            if isinstance(logger, logging.Logger):
                logger.disabled = False
