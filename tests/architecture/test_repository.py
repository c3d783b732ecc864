"""Content that must not be in the repository: paths of a machine, hosts of registries, leftovers."""

import json
import re

import pytest

from tests.architecture.source_tree import ROOT, tracked_files

TEXT_SUFFIXES = {".py", ".md", ".txt", ".in", ".toml", ".json", ".yaml", ".yml", ".sh", ".bicep", ".ts", ""}
# Written in pieces, so that this file doesn't contain what it searches for.
FORBIDDEN = {
    "a path of one machine": re.compile("/wo" "rk/|/ro" "ot/|/home/" r"\w"),
    "the host of a package registry": re.compile("py" r"pi\.org|python" r"hosted\.org|registry\.npm" "js"),
    "a leftover": re.compile(r"(?:#|//) ?(?:TO" r"DO|FIX" r"ME|XX" r"X)\b"),
}


def text_files() -> list[str]:
    return [str(path) for path in tracked_files() if path.suffix in TEXT_SUFFIXES]


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_holds(what: str) -> None:
    violations = [
        f"{name}:{number}: {line.strip()[:80]}"
        for name in text_files()
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), start=1)
        if FORBIDDEN[what].search(line)
    ]
    assert violations == []


def test_npm_lock_files_name_no_source() -> None:
    locks = [path for path in tracked_files() if path.name == "package-lock.json"]
    assert locks
    for path in locks:
        packages = json.loads((ROOT / path).read_text(encoding="utf-8"))["packages"]
        assert [name for name, package in packages.items() if "resolved" in package] == []
        assert all("integrity" in package for name, package in packages.items() if name)


def test_every_requirement_is_pinned_by_hash() -> None:
    for path in (ROOT / "requirements").glob("*.txt"):
        entries = re.split(r"\n(?=\S)", path.read_text(encoding="utf-8").strip())
        unpinned = [entry for entry in entries if not entry.startswith("#") and "--hash=sha256:" not in entry]
        assert unpinned == [], path.name


def test_prompts_are_finished_text() -> None:
    prompts = [path for path in tracked_files() if "prompts" in path.parts and path.suffix == ".md"]
    assert prompts
    for path in prompts:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert text.strip(), path
        assert re.sub(r"\{\{\w+\}\}", "", text).count("{{") == 0, path
        assert not re.search(r"(?i)lorem ipsum|<your |\?\?\?", text), path
