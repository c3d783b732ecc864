"""Pages of the manual name all that the code has, and no more: routes, commands, headers, log lines."""

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from cli import __main__, errors  # noqa: F401  # the first adds the commands
from cli.commands import leaves
from functions.api import app
from functions.http.models import ReplyHeaders
from functions.http.openapi.description import describe
from shared.access.limits import Allowance, limit_headers
from shared.platform import names
from shared.platform.settings import (
    BudgetSettings,
    SubagentSettings,
    TelemetrySettings,
    ThresholdSettings,
    setting_fields,
)
from shared.subagents.policy_models import REASON_WORDS
from shared.subagents.profiles import PROFILES
from shared.tools.base import HINTS
from tests.api_routes import api_routes
from tests.architecture.source_tree import ROOT, parse, python_files

CALLS = re.compile(r"^\| `([A-Z ]+) /([^`]+)` \|", re.MULTILINE)


def test_every_route_is_documented() -> None:
    routes = {(method, route) for method, route, _ in api_routes()}
    rows = CALLS.findall((ROOT / "docs/api.md").read_text(encoding="utf-8"))
    assert {(method, route) for methods, route in rows for method in methods.split()} == routes


COMMANDS = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### `([a-z ]+)`\n(.*?)(?=^##|\Z)", COMMANDS, re.MULTILINE | re.DOTALL))
LEAVES = leaves()
FOR_ALL = {"--json", "--url", "--help", "-h"}


def options_of(command: Any) -> set[str]:
    return {name for option in command.params for name in option.opts if name.startswith("-")} - FOR_ALL


def test_every_command_has_a_section_and_no_other_has() -> None:
    assert SECTIONS.keys() == LEAVES.keys()


@pytest.mark.parametrize("words", LEAVES)
def test_a_section_names_the_options_that_the_help_has(words: str) -> None:
    named = set(re.findall(r"`(--[a-z-]+)", SECTIONS[words])) - FOR_ALL
    assert named == options_of(LEAVES[words])


@pytest.mark.parametrize("words", LEAVES)
def test_the_help_of_a_command_is_complete(words: str) -> None:
    assert LEAVES[words].help, words
    for option in LEAVES[words].params:
        if option.param_type_name == "option":
            assert option.help, f"{words} {option.opts}"


def test_the_options_of_all_commands_and_the_exit_codes_are_told() -> None:
    assert {"`--url`", "`--json`"} <= set(re.findall(r"`--[a-z]+`", COMMANDS))
    codes = {str(code) for name, code in vars(errors).items() if name.isupper()}
    assert codes <= set(re.findall(r"^\| (\d+) \|", COMMANDS, re.MULTILINE))


DELEGATION = (ROOT / "docs/internals/delegation.md").read_text(encoding="utf-8")
REASON = re.compile(r"^\| `([A-Z_]+)` \|.*\| ([^|]+) \|$", re.MULTILINE)
PROFILE = re.compile(r"^\| `([a-z_]+)` \| [^|]+ \| ([^|]+) \| ([^|]+) \| ?([^|]*)\|$", re.MULTILINE)


def test_every_reason_is_documented_with_its_words() -> None:
    assert REASON.findall(DELEGATION) == list(REASON_WORDS.items())


def test_every_profile_is_documented() -> None:
    documented = [
        (name, *(tuple(re.findall(r"`(\w+)`", cell)) for cell in cells))
        for name, *cells in PROFILE.findall(DELEGATION.split("## Profiles")[1].split("## ")[0])
    ]
    assert documented == [
        (profile.name, profile.tools, profile.artifacts, (profile.smaller,) if profile.smaller else ())
        for profile in PROFILES.values()
    ]


def test_every_setting_of_sub_agents_is_named() -> None:
    groups = (SubagentSettings, ThresholdSettings, BudgetSettings)
    settings = [field.alias for group in groups for field in group.model_fields.values()]
    missing = [name for name in settings if f"`{name}" not in DELEGATION]
    assert missing == []


HEADERS = (ROOT / "docs/internals/headers.md").read_text(encoding="utf-8")
_, REQUESTS, ANSWERS = re.split(r"^## (?:Request|Response) headers$", HEADERS, flags=re.MULTILINE)
HEADER_ROW = re.compile(r"^(?:\||-) `([A-Za-z-]+)`", re.MULTILINE)
HEADER = re.compile(r"[A-Z][A-Za-z]*(?:-[A-Za-z]+)+|Allow|ETag|Link|Location|Vary")
SOURCES = [*python_files("functions"), *(path for path in python_files("shared") if path.stem == "identity")]
# Read by the code, and documented with the rest; the loop below cannot see through their names.
NOT_LITERAL = {"x-ms-client-principal", "authorization", "x-request-id"}


def read_headers() -> set[str]:
    """Names that are looked up in the headers of a request."""
    found = set(NOT_LITERAL)
    for path in SOURCES:
        for node in ast.walk(parse(path)):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr="get", value=holder), args=[ast.Constant(str() as name), *_]
                ):
                    pass
                case ast.Subscript(value=holder, slice=ast.Constant(str() as name), ctx=ast.Load()):
                    pass
                case _:
                    continue
            if ast.unparse(holder).endswith("headers"):
                found.add(name.lower())
    return found - {"host", "content-disposition"}  # every request has the one, parts of a form the other


def set_headers() -> set[str]:
    """Names that stand in a dict of headers, or in the description."""
    found = {"X-Request-Id", *limit_headers(Allowance(limit=1, remaining=1, reset_s=1))}
    for path in SOURCES:
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.Dict):
                names = [key.value for key in node.keys if isinstance(key, ast.Constant)]
                found |= {name for name in names if isinstance(name, str) and HEADER.fullmatch(name)}
            match node:
                case ast.Subscript(slice=ast.Constant(str() as name), ctx=ast.Store()):
                    found |= {name} if HEADER.fullmatch(name) else set()
    return found - {"Content-Length", "Content-Type"}  # every server sets them


def test_every_header_that_is_read_is_documented() -> None:
    assert {name.lower() for name in HEADER_ROW.findall(REQUESTS)} == read_headers()


def test_every_header_that_is_set_is_documented() -> None:
    assert set(HEADER_ROW.findall(ANSWERS)) == set_headers()


def test_every_described_header_is_documented() -> None:
    text = json.dumps(describe(app()))
    parameters = set(re.findall(r'"name": "([A-Za-z-]+)", "in": "header"', text))
    assert parameters
    assert {name.lower() for name in parameters} <= {name.lower() for name in HEADER_ROW.findall(REQUESTS)}
    answered = {field.alias or name for name, field in ReplyHeaders.model_fields.items()}
    assert answered <= set(HEADER_ROW.findall(ANSWERS)) | {"Content-Length"}


LOGS = (ROOT / "docs/logs-and-traces.md").read_text(encoding="utf-8")
LINE = re.compile(r"[a-z_]+\.[a-z_]+")
LEVELS = {"info": "info", "warning": "warning", "error": "error", "exception": "error"}


def calls() -> Iterator[tuple[str, str, list[str]]]:
    """Name, level and fields of every line that is logged."""
    for path in python_files("shared", "functions", "orchestrations"):
        for node in ast.walk(parse(path)):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr=method), args=[ast.Constant(str() as name), *_], keywords=keywords
                ) if method in LEVELS and LINE.fullmatch(name):
                    yield name, LEVELS[method], [keyword.arg for keyword in keywords if keyword.arg]


def test_every_line_is_documented_with_its_level_and_no_other() -> None:
    documented = set(re.findall(r"^\| `([a-z_.]+)` \| (info|warning|error) \|", LOGS, re.MULTILINE))
    logged = {(name, level) for name, level, _ in calls()}
    assert len(logged) > 50
    assert documented == logged


def test_every_field_is_documented() -> None:
    named = set(re.findall(r"`([a-z_]+)`", LOGS))
    fields = {field for _, _, given in calls() for field in given}
    assert {"error_type", "run_id"} <= fields
    assert fields - named == set()


STORES = (ROOT / "docs/internals/stores.md").read_text(encoding="utf-8")
ERASED = {"yes", "on request", "by itself", "nothing"}


def rows(heading: str) -> list[list[str]]:
    """The cells of each row of the table below a heading."""
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", STORES, re.MULTILINE | re.DOTALL)
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def stores(heading: str) -> set[str]:
    return {row[0].strip("`") for row in rows(heading)}


def test_every_table_is_classified_and_no_other() -> None:
    tables = {value for name, value in vars(names).items() if name.endswith("_TABLE")}
    assert len(tables) >= 9
    assert stores("Tables") == tables


def test_every_container_is_classified_and_no_other() -> None:
    assert stores("Containers") == set(names.CONTAINERS)


def test_every_queue_is_classified_and_no_other() -> None:
    assert stores("Queues") == {*names.QUEUES, *names.POISON_QUEUES, names.BLOB_DELETED_QUEUE}


def test_every_index_is_classified_and_no_other() -> None:
    fields = setting_fields()
    indexes = {fields[name].default for name in fields if re.fullmatch(r"AZURE_SEARCH_\w+_INDEX", name)}
    assert len(indexes) == 3
    assert stores("Indexes") == indexes


def test_every_name_of_a_store_is_one_of_these_kinds() -> None:
    """A store of another kind needs a table of its own in the page, and a test here."""
    kinds = re.compile(r"[A-Z_]+_(TABLE|QUEUE)")
    plain = {name for name, value in vars(names).items() if isinstance(value, str) and name.isupper()}
    assert {name for name in plain if not kinds.fullmatch(name)} == {
        "DOCUMENTS",
        "RUN_LOG",
        "WORK",
    }


def test_each_row_says_whether_and_how() -> None:
    for heading in ("Tables", "Containers", "Indexes", "Queues"):
        for row in rows(heading):
            assert len(row) == 4, row
            assert row[2] in ERASED, row
            assert all(row), row


SPANS = (ROOT / "docs/internals/traces.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`([^`\s]+)`", SPANS + LOGS.split("## Metrics")[0]))
ATTRIBUTE = re.compile(r"(?:http|url|code|gen_ai|groundwork|db|error)\.[a-z_]+(?:\.[a-z_.]+)?")
# Contracts, section 6.
LOG_FIELDS = {
    *("azure_operation", "search_query", "result_count", "index_name", "search_latency_ms"),
    *("filter_applied", "request_id", "run_id", "thread_id", "user_id", "tool", "error_type"),
}


def attributes_in_code() -> set[str]:
    """Names that look like those of attributes, of modules that make spans."""
    found: set[str] = set()
    for path in python_files("shared", "functions", "orchestrations"):
        tree = parse(path)
        if "tracing" not in path.read_text(encoding="utf-8") and path.stem != "tracing":
            continue
        texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
        found.update(text for text in texts if isinstance(text, str) and ATTRIBUTE.fullmatch(text))
    return found - {"http.defect", "http.response.start"}  # an event of the log, one of ASGI


def test_every_attribute_of_a_span_is_documented() -> None:
    in_code = attributes_in_code()
    assert {"http.route", "gen_ai.usage.input_tokens", "groundwork.status"} <= in_code
    assert in_code - NAMED == set()


def test_no_attribute_is_documented_that_there_is_not() -> None:
    documented = {name for name in NAMED if ATTRIBUTE.fullmatch(name)} - {"http.defect"}
    assert documented - attributes_in_code() == set()


def test_every_field_of_the_log_is_documented() -> None:
    assert LOG_FIELDS | {"trace_id", "span_id"} <= NAMED


def test_every_setting_of_traces_is_on_the_page() -> None:
    assert {str(field.alias) for field in TelemetrySettings.model_fields.values()} <= NAMED


TOOLS_PAGE = (ROOT / "docs/extend.md").read_text(encoding="utf-8")


def test_every_type_of_failure_is_documented() -> None:
    failures = TOOLS_PAGE.split("## Failures")[1].split("## ")[0]
    assert re.findall(r"`(\w+)` \(", failures) == list(HINTS)
