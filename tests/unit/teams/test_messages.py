"""Why files cannot be read, in German: every reason that the sources give has words."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.teams.messages import file_reason

_ROOT = Path(__file__).parents[3] / "shared"
_READING = (
    *(_ROOT / "ingestion").rglob("*.py"),
    _ROOT / "ingestion" / "uploads.py",
    _ROOT / "teams" / "files.py",
)
_ERRORS = ("BadDocumentError", "PayloadTooLargeError", "CallerError", "IngestFailure", "WorkerReply")
# What a dropped file cannot meet: it has no folder, and nobody corrects it yet.
_ELSEWHERE = ("The folder is nested", "No field to correct")


def _words(node: ast.expr) -> str | None:
    """The text of an expression, with a number for what is filled in; None when it is made elsewhere."""
    if isinstance(node, ast.BoolOp):
        return _words(node.values[-1])
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _reasons() -> Iterator[str]:
    for source in _READING:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in _ERRORS:
                named = [given.value for given in node.keywords if given.arg == "reason"]
                yield from (said for given in (*node.args[:1], *named) if (said := _words(given)))


_KIND = {"7 cannot be read.": "Files of type '.exe' cannot be read."}
_FOUND = sorted({_KIND.get(reason, reason) for reason in _reasons()})


def test_the_sources_give_reasons() -> None:
    assert len(_FOUND) > 25


@pytest.mark.parametrize("reason", [one for one in _FOUND if not one.startswith(_ELSEWHERE)])
def test_every_reason_has_german_words(reason: str) -> None:
    assert file_reason(reason, "de") != reason, "say it in shared/teams/messages.py"
    assert file_reason(reason, "en") == reason


def test_what_a_reason_counts_is_told() -> None:
    assert file_reason("Page 12 cannot be read.", "de") == "Seite 12 lässt sich nicht lesen."


def test_a_reason_that_is_not_known_is_told_as_it_is() -> None:
    assert file_reason("No answer from the model {0}.", "de") == "No answer from the model {0}."
