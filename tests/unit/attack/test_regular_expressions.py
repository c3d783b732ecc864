"""Tests that regular expressions take at most linear time on untrusted text."""

import ast
import importlib
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.attack.regex_steps import StepCounter, hostile_texts

pytestmark = [pytest.mark.attack("ReDoS"), pytest.mark.e2e, pytest.mark.nightly]  # takes a minute

ROOT = Path(__file__).resolve().parents[3]
SHORT, LONG = 10, 40
LIMIT = 2 * LONG / SHORT  # linear growth is 4, quadratic 16

# Inputs of superlinear expressions, with the limit on their length. Every such expression reads one of these.
_ANSWER = "an answer, as long as a model may write"
_QUOTE = "a quotation, or the block of MAX_BLOCK_TOKENS that it is compared with"
_TAG = "a tag of at most 4,000 characters"
BOUNDED = {
    "functions.http.openai_format:_MARK": _ANSWER,
    "shared.conversations.window:_PICTURE": _ANSWER,
    "shared.conversations.window:_REMARK": _ANSWER,
    "shared.evidence.tags:_ATTRIBUTE": _TAG,
    "shared.evidence.tags:_OPEN_ATTRIBUTE": _TAG,
    "shared.evidence.tags:_TAG": _TAG,
    "shared.evidence.quote_places:_SIGNS_AT_END": _QUOTE,
    "shared.evidence.words:_BROKEN": _QUOTE,
    "shared.evidence.words:_GROUPED": _QUOTE,
    "shared.evidence.words:_UNGROUPED": _QUOTE,
    "shared.ingestion.parsers.html:_DECLARED": "the first 4,096 bytes of a file",
    "shared.platform.language_models.prompted:_FENCED": _ANSWER,
}
FOLDERS = sorted({path.parent for part in ("shared", "functions") for path in (ROOT / part).glob("*/*.py")})


@pytest.mark.parametrize("folder", [ROOT / "functions", *FOLDERS], ids=lambda folder: folder.name)
def test_steps_grow_in_proportion_to_a_hostile_text(folder: Path) -> None:
    sys.setrecursionlimit(20_000)  # the step counter recurses once per part of a match
    paths = folder.glob("*.py") if folder.name == "functions" else folder.glob("**/*.py")
    growths = {name: worst_growth(pattern, everywhere) for name, pattern, everywhere in patterns(paths)}
    fast = {name: text for name, (growth, text) in growths.items() if growth > LIMIT and name not in BOUNDED}
    assert not fast, "name and a text: mend the pattern, or say in BOUNDED what bounds its texts"


def test_the_counter_tells_linear_growth_from_worse() -> None:
    for pattern, is_linear in ((r"\s*x", False), (r"(a|aa)+$", False), (r"a*+b", False), (r"<[^<>]*>", True)):
        growth, _ = worst_growth(re.compile(pattern), everywhere=True)
        assert (growth <= LIMIT) is is_linear, pattern


def patterns(paths: Iterable[Path]) -> list[tuple[str, re.Pattern[Any], bool]]:
    """Return each expression of these modules, its name, and whether it may match anywhere in a text."""
    expressions = []
    for path in sorted(paths):
        source = path.read_text(encoding="utf-8")
        if re.search(r"^import re$", source, re.MULTILINE):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            expressions += [(f"{module}:{name}", one, how) for name, one, how in _of_module(module, source)]
    return expressions


def _of_module(module: str, source: str) -> Iterator[tuple[str, re.Pattern[Any], bool]]:
    for name, value in vars(importlib.import_module(module)).items():
        for number, pattern in enumerate(_patterns_in(value)):
            used = set(re.findall(rf"\b{name}\.(\w+)", source))
            yield (f"{name}{number or ''}", pattern, not used or not used <= {"match", "fullmatch"})
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.") and node.args:
            first, method = node.args[0], ast.unparse(node.func)
            if isinstance(first, ast.Constant) and method != "re.compile":
                yield (
                    f"line {node.lineno}",
                    re.compile(first.value),
                    method not in ("re.match", "re.fullmatch"),
                )


def _patterns_in(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _patterns_in(one)
    elif isinstance(value, dict):
        yield from _patterns_in([*value.keys(), *value.values()])


def worst_growth(pattern: re.Pattern[Any], everywhere: bool) -> tuple[float, str]:
    """Return the worst ratio of steps for LONG pumps to steps for SHORT pumps, and the shorter text."""
    counter = StepCounter(pattern, everywhere=everywhere)
    pairs = zip(hostile_texts(counter, SHORT), hostile_texts(counter, LONG), strict=True)
    return max(
        ((counter.steps(long) / counter.steps(short), short) for short, long in pairs), default=(1.0, "")
    )
