"""Access to the project's source for the architecture tests: tracked files, modules and imports."""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
APP = ("shared", "functions", "orchestrations")
PURE_NAME = re.compile(r"\.(models|policy|script|plan|\w+_rules)$")
CODE_ROOTS = (
    "shared",
    "functions",
    "orchestrations",
    "local",
    "samples",
    "scripts",
    "cli",
    "benchmarks",
    "evals",
    "tests",
)


@cache
def tracked_files() -> tuple[Path, ...]:
    """Return the files under version control and new files that git doesn't ignore, relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return tuple(sorted(Path(name) for name in listed.split("\0") if name and (ROOT / name).is_file()))


def python_files(*rooms: str) -> list[Path]:
    """Return the Python files below the given folders (all code if none are given), and function_app.py."""
    roots = rooms or CODE_ROOTS
    return [
        path
        for path in tracked_files()
        if path.suffix == ".py" and (path.parts[0] in roots or (not rooms and len(path.parts) == 1))
    ]


def module_name(path: Path) -> str:
    """Return the module name of a file, such as `shared.answering.script` for `shared/answering/script.py`.
    For an `__init__.py`, it is the name of the package.
    """
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


@cache
def parse(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), filename=str(path))


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and full name of every import in a file.

    `from a.b import c` counts as `a.b.c`: c may be a module. A relative import keeps its dots.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = "." * node.level + (node.module or "")
            yield from ((node.lineno, f"{package}.{alias.name}") for alias in node.names)


def is_within(name: str, room: str) -> bool:
    """Return whether a module or name belongs to a package or module."""
    return name == room or name.startswith(f"{room}.")


MODULES = {module_name(path): path for path in python_files(*APP)}


def listed_as_pure(package: str) -> set[str]:
    """Return the modules that a package's docstring names in its line `Pure: ...`."""
    docstring = ast.get_docstring(parse(MODULES[package])) or ""
    match = re.search(r"^Pure: (.+?)\.$", docstring, re.MULTILINE | re.DOTALL)
    return {f"{package}.{name.strip()}" for name in match[1].split(",")} if match else set()


PURE = {module for module in MODULES if PURE_NAME.search(module)} | {
    module
    for package, path in MODULES.items()
    if path.name == "__init__.py" and path.parts[0] == "shared"
    for module in listed_as_pure(package)
}
