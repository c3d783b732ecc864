"""Sizes and habits that keep the code readable (CONTRIBUTING.md)."""

import ast
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT, imports, is_within, parse, python_files

MAX_FILE_LINES = 300
MAX_BODY_LINES = 40
MAX_APP_LINES = 40
# Data, not logic: a table may be as long as what it lists.
DATA_TABLES: frozenset[tuple[str, str]] = frozenset({("tests/e2e/search_sdk/hotels.py", "_schema")})

Function = ast.FunctionDef | ast.AsyncFunctionDef
FILES = python_files()


def functions(path: Path) -> list[Function]:
    return [node for node in ast.walk(parse(path)) if isinstance(node, Function)]


def body_lines(function: Function) -> int:
    """Lines from the first statement after the docstring to the last."""
    body = function.body
    if len(body) > 1 and ast.get_docstring(function, clean=False) is not None:
        body = body[1:]
    return (body[-1].end_lineno or 0) - body[0].lineno + 1


def test_no_file_is_longer_than_it_should_be() -> None:
    lengths = {str(path): len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {path: lines for path, lines in lengths.items() if lines > MAX_FILE_LINES} == {}


def test_no_function_is_longer_than_it_should_be() -> None:
    lengths = {
        (str(path), function.name): body_lines(function) for path in FILES for function in functions(path)
    }
    too_long = {place for place, lines in lengths.items() if lines > MAX_BODY_LINES}
    assert too_long - DATA_TABLES == set()
    assert {place for place in DATA_TABLES if place in lengths} <= too_long, "an exemption nobody needs"


def test_the_measure_counts_a_body_without_its_docstring() -> None:
    tree = ast.parse('def f():\n    """One\n    two."""\n    a = 1\n    b = 2\n    return a + b\n')
    assert isinstance(tree.body[0], ast.FunctionDef)
    assert body_lines(tree.body[0]) == 3


def test_package_files_are_empty() -> None:
    # A stand-in for somebody else's package has to look like that package.
    packages = [path for path in FILES if path.name == "__init__.py" and "stand_in" not in path.parts]
    filled = [str(path) for path in packages if (ROOT / path).read_text(encoding="utf-8").strip()]
    assert filled == []


@pytest.mark.parametrize(
    "room", ["shared", "functions", "orchestrations", "local", "samples", "scripts", "cli"]
)
def test_every_module_opens_with_the_rule_of_its_file(room: str) -> None:
    silent = [
        str(path)
        for path in python_files(room)
        if path.name != "__init__.py" and ast.get_docstring(parse(path)) is None
    ]
    assert silent == []


def test_nothing_is_mocked() -> None:
    mock = "unittest" + ".mock"
    users = [
        str(path)
        for path in FILES
        if any(is_within(name, mock) or name == "unittest" for _, name in imports(parse(path)))
    ]
    assert users == []


def test_the_app_only_registers() -> None:
    lines = (ROOT / "function_app.py").read_text(encoding="utf-8").splitlines()
    assert len(lines) < MAX_APP_LINES
    assert functions(Path("function_app.py")) == []
