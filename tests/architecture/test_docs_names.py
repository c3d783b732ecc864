"""What the documents name is there: sections, files, settings with defaults, metrics, stores, commands."""

import re
from functools import cache
from pathlib import Path

from shared.models.names import CONTAINERS, QUEUES
from shared.settings import Settings
from tests.architecture.source_tree import ROOT, tracked_files

DOCS = [path for path in tracked_files() if path.suffix == ".md" and not path.is_relative_to("samples")]
FOLDERS = {path.parts[0] for path in tracked_files() if len(path.parts) > 1}
PAGES = {path: (ROOT / path).read_text(encoding="utf-8") for path in DOCS}
LINK = re.compile(r"\]\(([\w./-]*)#([\w-]+)\)")
CODE_SUFFIXES = {".py", ".bicep", ".sh", ".yml", ".json", ".ps1"}
# Settings of other programs, which a page tells to leave unset.
OF_OTHERS = {"FASTAPI_OTEL_AUTO_CONFIGURE", "PYTHON_APPLICATIONINSIGHTS_ENABLE_TELEMETRY"}
# Invented by an example.
EXAMPLES = {"docs/FILENAME"}
# Made by the host, by Azure's side of a deployment, or on one machine alone.
STORES_OF_OTHERS = {"app-package", "event-dead-letters", "groundworkInstances", "webjobs-blobtrigger-poison"}


@cache
def code() -> str:
    """All code and infrastructure, tests left out."""
    paths = [path for path in tracked_files() if path.suffix in CODE_SUFFIXES or path.name == "Makefile"]
    return "\n".join((ROOT / path).read_text("utf-8") for path in paths if path.parts[0] != "tests")


@cache
def sections(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    words = re.sub(r"^```.*?^```", "", PAGES[path], flags=re.MULTILINE | re.DOTALL)
    plain = [
        re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", found)
        for found in re.findall(r"^#+ (.+)$", words, re.MULTILINE)
    ]
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in plain}


def named(pattern: str) -> set[tuple[str, str]]:
    """(page, what the pattern finds there), of all pages."""
    return {(str(path), found) for path, words in PAGES.items() for found in re.findall(pattern, words)}


def test_sections_that_a_link_names_are_there() -> None:
    links = [(path, *found) for path, words in PAGES.items() for found in LINK.findall(words)]
    assert len(links) >= 50
    absent = [
        (str(path), f"{target}#{section}")
        for path, target, section in links
        if (page := (ROOT / path.parent / target if target else ROOT / path).resolve()).suffix == ".md"
        if section not in sections(page.relative_to(ROOT))
    ]
    assert absent == []


def test_files_that_a_page_names_are_there() -> None:
    files = {(page, name) for page, name in named(r"`([\w.-]+/[\w./-]+)`") if name.split("/")[0] in FOLDERS}
    assert len(files) >= 50
    assert (
        sorted(found for found in files if found[1] not in EXAMPLES and not (ROOT / found[1]).exists()) == []
    )


def test_settings_that_a_page_names_are_read_somewhere() -> None:
    known = set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", code())) | OF_OTHERS
    found = named(r"`([A-Z][A-Z0-9]*_[A-Z0-9_]+)(?:=[^`]*)?`")
    assert len(found) >= 200
    assert sorted((page, name) for page, name in found if name not in known) == []


def test_values_beside_settings_are_their_defaults() -> None:
    defaults = {field.alias or name.upper(): field.default for name, field in Settings.model_fields.items()}
    told = {
        (page, name, value)
        for page, found in named(r"`([A-Z][A-Z0-9_]+` \(\d[\d,.]*)\)")
        for name, _, value in [found.partition("` (")]
        if name in defaults
    }
    assert len(told) >= 3
    assert [one for one in told if float(one[2].replace(",", "")) != defaults[one[1]]] == []


def test_metrics_that_a_page_names_are_recorded() -> None:
    found = named(r"`(groundwork\.[a-z_.]+)`")
    assert len(found) >= 10
    assert sorted((page, name) for page, name in found if f'"{name}"' not in code()) == []


def test_stores_that_a_page_names_are_there() -> None:
    defaults = {str(field.default) for field in Settings.model_fields.values()}
    bicep = (ROOT / "infra/bicep/main.bicep").read_text(encoding="utf-8")
    known = {*CONTAINERS, *QUEUES, *re.findall(r"^      '([\w-]+)'$", bicep, re.MULTILINE), *defaults}
    found = named(r"\bthe (?:table|container|queue|index) `([\w-]+)`")
    assert len(found) >= 10
    known |= {f"{queue}-poison" for queue in known} | STORES_OF_OTHERS
    assert sorted((page, name) for page, name in found if name not in known) == []


def test_commands_of_the_command_line_are_commands() -> None:
    known = set(re.findall(r"^### `(.+?)`$", PAGES[Path("docs/command-line.md")], re.MULTILINE))
    found = named(r"python -m cli ((?:[a-z]+ ?)+)")
    assert len(found) >= 10
    unknown = [one for one in found if not any(f"{one[1]} ".startswith(f"{name} ") for name in known)]
    assert unknown == []
