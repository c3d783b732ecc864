"""The pages on logs and traces name every attribute of a span, field of the log and setting."""

import ast
import re

from shared.platform.settings import TelemetrySettings
from tests.architecture.source_tree import ROOT, parse, python_files

LOGS = (ROOT / "docs/logs-and-traces.md").read_text(encoding="utf-8")
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
    return found - {"http.defect"}  # an event of the log


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
