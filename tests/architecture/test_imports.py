"""Imports follow the layers, without cycles, and pure modules import no impure module
(docs/architecture.md).
"""

import ast
import logging
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from tests.architecture.source_tree import APP, MODULES, PURE, ROOT, imports, is_within, parse, python_files

OURS = (*APP, "local", "samples", "scripts", "cli", "benchmarks", "evals")
DOES_IO = (
    *("os", "time", "random", "uuid", "asyncio", "logging", "subprocess", "socket", "pathlib", "tempfile"),
    *("azure", "openai", "httpx", "aiohttp", "structlog", "opentelemetry"),
)


def imported_modules(path: Path, *, at_start: bool = False) -> set[str]:
    """Return the modules of the app that a file imports. With `at_start`, return only modules imported when
    the file is loaded.
    """
    tree = parse(path)
    nodes = [node for node in tree.body if isinstance(node, ast.ImportFrom)] if at_start else [tree]
    names = {name for node in nodes for _, name in imports(node)}
    return {name if name in MODULES else name.rpartition(".")[0] for name in names} & MODULES.keys()


def test_the_layers_hold() -> None:
    try:
        assert lint_imports(config_filename=str(ROOT / ".importlinter"), no_logo=True) == EXIT_STATUS_SUCCESS
    finally:
        # import-linter disables every existing logger.
        for logger in logging.root.manager.loggerDict.values():
            if isinstance(logger, logging.Logger):
                logger.disabled = False


def test_there_are_no_cycles() -> None:
    graph = {module: imported_modules(path, at_start=True) - {module} for module, path in MODULES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as cycle:
        pytest.fail(" -> ".join(cycle.args[1]))


def test_every_pure_module_exists() -> None:
    assert sorted(PURE - MODULES.keys()) == []


@pytest.mark.parametrize("module", sorted(PURE & MODULES.keys()))
def test_a_pure_module_imports_nothing_that_does_io(module: str) -> None:
    path = MODULES[module]
    # Settings are plain values; only loading them reads the environment. `loading` only imports modules.
    impure = imported_modules(path) - PURE - {module, "shared.platform.settings", "shared.platform.loading"}
    outside = {name for _, name in imports(parse(path)) if any(is_within(name, io) for io in DOES_IO)}
    assert (sorted(impure), sorted(outside)) == ([], [])


def test_imports_are_absolute() -> None:
    relative = [
        str(path)
        for path in python_files(*OURS)
        if any(name.startswith(".") for _, name in imports(parse(path)))
    ]
    assert relative == []
