"""Tests for the web page without a browser: types, its Node tests, its texts and forbidden source code."""

import re
import subprocess
from pathlib import Path

import pytest

from functions.site import ASSETS
from local.azurite.server import find_node
from scripts.web_build import WEB, build, install_packages
from scripts.web_types import typescript, write
from shared.tools.registry import TOOLS

SOURCES = sorted((WEB / "src").rglob("*.ts*"))
FORBIDDEN = (
    r"\binnerHTML\b|\bouterHTML\b|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write",
    r"\beval\(|new Function\(",
    r'\bstyle="',
    r":\s*any\b|\bas any\b|@ts-ignore",
)


@pytest.fixture(scope="module", autouse=True)
def packages() -> None:
    install_packages()


def test_the_build_makes_the_files_that_are_served() -> None:
    build()
    asset_names = {path.name for path in (WEB / "dist/assets").iterdir() if path.suffix not in (".br", ".gz")}
    assert asset_names == set(ASSETS)  # and that the platform lists as public: tests/infra


def _run(*command: str) -> None:
    done = subprocess.run(command, cwd=WEB, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


def test_its_types_are_those_of_the_api() -> None:
    write()
    _run(*find_node().node, "node_modules/typescript/bin/tsc", "--noEmit")


def test_its_own_tests_pass(tmp_path: Path) -> None:
    _run(*find_node().node, "build.mjs", "tests", str(tmp_path))
    _run(*find_node().node, "--test", *map(str, sorted(tmp_path.glob("*.mjs"))))


@pytest.mark.parametrize("pattern", FORBIDDEN)
def test_no_text_becomes_markup(pattern: str) -> None:
    assert [path.name for path in SOURCES if re.search(pattern, path.read_text(encoding="utf-8"))] == []


def test_one_module_fetches() -> None:
    fetching = [path.name for path in SOURCES if re.search(r"\bfetch\(", path.read_text(encoding="utf-8"))]
    assert fetching == ["request.ts"]


def _keys() -> set[str]:
    words = (WEB / "src/words/en.ts").read_text(encoding="utf-8")
    return {quoted or plain for quoted, plain in re.findall(r'^  (?:"([^"]+)"|(\w+)):', words, re.MULTILINE)}


def test_every_tool_has_words() -> None:
    assert {f"tool.{name}" for name in TOOLS} - _keys() == set()


def test_every_word_is_used() -> None:
    keys = _keys()
    others = "".join(
        path.read_text(encoding="utf-8") for path in SOURCES if path.name not in ("en.ts", "de.ts")
    )
    dynamic_prefixes = {
        groups[0] or groups[1] for groups in re.findall(r't\(`([\w]+)\.\$|tOf\("(\w+)"', others)
    }
    assert len(keys) > 200
    assert {
        key for key in keys if f'"{key}"' not in others and key.partition(".")[0] not in dynamic_prefixes
    } == set()


def test_models_become_types() -> None:
    schemas = {
        "A": {
            "type": "object",
            "required": ["n"],
            "properties": {
                "n": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "of": {"type": "array", "items": {"$ref": "#/components/schemas/B"}},
                "kind": {"enum": ["x", "y"]},
            },
        },
        "B": {"type": "object", "additionalProperties": {"type": "string"}},
    }
    assert typescript(schemas).splitlines() == [
        'export type A = { "n": number | null; "of"?: readonly (B)[]; "kind"?: "x" | "y" };',
        "export type B = Record<string, string>;",
    ]
