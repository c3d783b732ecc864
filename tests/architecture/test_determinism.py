"""Orchestrator generators decide the same on every replay, because they use nothing that differs between
runs.
"""

import ast
from pathlib import Path

import pytest

from orchestrations.registration import ORCHESTRATORS
from tests.architecture.source_tree import PURE, is_within, parse, python_files

# Modules whose names a generator, and any function of its module that it calls, may use.
DETERMINISTIC = (
    *PURE,
    "orchestrations",
    "azure.durable_functions",
    "typing",
    "collections.abc",
    "dataclasses",
    "functools",
    "itertools",
    "json",
    "math",
    "datetime.timedelta",
    "datetime.datetime",
)
# Functions that read the clock, whatever object they belong to.
CLOCK_READERS = {"now", "utcnow", "today", "time", "monotonic", "perf_counter"}
BUILT_IN_WORLD = {"open", "input", "print", "id", "hash"}

Functions = dict[str, ast.FunctionDef | ast.AsyncFunctionDef]


def functions_of(tree: ast.Module) -> Functions:
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def is_generator(function: ast.AST) -> bool:
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))


def reached_from(names: set[str], functions: Functions) -> set[str]:
    """Return the module's functions that are called, directly or through others."""
    reached: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        reached.add(name)
        used = {node.id for node in ast.walk(functions[name]) if isinstance(node, ast.Name)}
        waiting |= (used & functions.keys()) - reached
    return reached


def imported_names(tree: ast.AST) -> dict[str, str]:
    """Return the full name that each imported local name refers to."""
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            bound |= {alias.asname or alias.name.split(".")[0]: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            bound |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return bound


def offences(source: ast.Module) -> list[str]:
    """Return the expressions in a module's generators that could differ between two replays."""
    functions = functions_of(source)
    generators = {
        name
        for name, function in functions.items()
        if is_generator(function) and isinstance(function, ast.FunctionDef)
    }
    bound = imported_names(source)
    violations = []
    for name in sorted(reached_from(generators, functions)):
        # The signature and the decorators run once, at import.
        for statement in functions[name].body:
            violations += [f"{name}: {what}" for what in _offences_of(statement, bound)]
    return violations


def _offences_of(statement: ast.stmt, bound: dict[str, str]) -> list[str]:
    violations = []
    for node in ast.walk(statement):
        if isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith):
            violations.append("awaits")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            source = bound.get(node.id)
            if source is not None and not any(is_within(source, allowed) for allowed in DETERMINISTIC):
                violations.append(f"uses {source}")
            if node.id in BUILT_IN_WORLD:
                violations.append(f"calls {node.id}")
        elif isinstance(node, ast.Attribute) and node.attr in CLOCK_READERS:
            violations.append(f"reads the clock by .{node.attr}")
    return violations


GENERATOR_FILES = [
    path
    for path in python_files("orchestrations")
    if any(
        is_generator(node) and isinstance(node, ast.FunctionDef)
        for node in functions_of(parse(path)).values()
    )
]


def test_there_are_generators_to_look_at() -> None:
    assert Path("orchestrations/run_agent.py") in GENERATOR_FILES


@pytest.mark.parametrize("path", GENERATOR_FILES, ids=str)
def test_generators_are_deterministic(path: Path) -> None:
    assert offences(parse(path)) == []


@pytest.mark.parametrize(("name", "module"), ORCHESTRATORS.items())
def test_each_orchestrator_hands_over_to_a_generator_of_its_name(name: str, module: str) -> None:
    path = Path(f"{module.replace('.', '/')}.py")
    assert path in GENERATOR_FILES
    assert is_generator(functions_of(parse(path))[name])


@pytest.mark.parametrize(
    ("body", "offence"),
    [
        ("yield context.call_activity('a', datetime.now(UTC))", "reads the clock"),
        ("yield str(uuid4())", "uses uuid.uuid4"),
        ("yield os.environ['A']", "uses os"),
        ("yield get_services()", "uses shared.wiring.get_services"),
        ("from random import random\n    yield random()", "uses random.random"),
        ("yield helper()", "uses os"),
        ("yield open('a')", "calls open"),
    ],
)
def test_what_differs_between_replays_is_found(body: str, offence: str) -> None:
    source = (
        "import os\nfrom datetime import UTC, datetime\nfrom uuid import uuid4\n"
        "from shared.wiring import get_services\n"
        f"def orchestrate(context):\n    {body}\n"
        "def helper():\n    return os.getpid()\n"
    )
    assert any(offence in violation for violation in offences(ast.parse(source)))


def test_time_and_ids_of_the_context_are_welcome() -> None:
    source = (
        "from datetime import timedelta\n"
        "def orchestrate(context):\n"
        "    yield context.create_timer(context.current_utc_datetime + timedelta(seconds=1))\n"
        "    yield context.call_sub_orchestrator('child', None, f'{context.instance_id}:c0')\n"
    )
    assert offences(ast.parse(source)) == []
