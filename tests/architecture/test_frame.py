"""Habits that keep the code readable (CONTRIBUTING.md)."""

import ast
from pathlib import Path

import pytest

from tests.architecture.source_tree import parse, python_files


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


def test_the_app_only_registers() -> None:
    defined = [type(node).__name__ for node in parse(Path("function_app.py")).body]
    assert not {"FunctionDef", "AsyncFunctionDef", "ClassDef"} & set(defined)
