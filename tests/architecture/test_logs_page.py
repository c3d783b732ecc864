"""docs/logs-and-traces.md names every line of the log with its level, every field, and no other line."""

import ast
import re
from collections.abc import Iterator

from tests.architecture.source_tree import ROOT, parse, python_files

PAGE = (ROOT / "docs/logs-and-traces.md").read_text(encoding="utf-8")
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
    documented = set(re.findall(r"^\| `([a-z_.]+)` \| (info|warning|error) \|", PAGE, re.MULTILINE))
    logged = {(name, level) for name, level, _ in calls()}
    assert len(logged) > 50
    assert documented == logged


def test_every_field_is_documented() -> None:
    named = set(re.findall(r"`([a-z_]+)`", PAGE))
    fields = {field for _, _, given in calls() for field in given}
    assert {"error_type", "run_id"} <= fields
    assert fields - named == set()
