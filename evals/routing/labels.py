"""The two labelled sets: what kind of question each is, and whether a document it names is ambiguous.

Labels: docs/internals/measuring.md. Each set falls into two halves by the hash of the id: rules are
improved by what fails in `dev`, and of `held_out` nobody looks at more than the numbers.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from evals.evaluation.question_set import SourceFile

Half = Literal["dev", "held_out"]
ROUTING = Path(__file__).parent / "questions.jsonl"
CLARIFICATION = Path(__file__).parent.parent / "clarification"


@dataclass(frozen=True)
class RoutingQuestion:
    """A question with its type and intent."""

    query_id: str
    text: str
    language: str
    query_type: str
    intent: str
    tags: frozenset[str]

    @property
    def half(self) -> Half:
        return half_of(self.query_id)


@dataclass(frozen=True)
class NamingQuestion:
    """A question that may name documents.

    Attributes:
        options: file names that are to be offered; none when nothing is to be asked.
        after: the question that is asked and answered before it in the same thread.
    """

    query_id: str
    text: str
    language: str
    kind: str
    ambiguous: bool
    options: frozenset[str]
    tags: frozenset[str]
    after: str | None = None

    @property
    def half(self) -> Half:
        return half_of(self.query_id)


def half_of(query_id: str) -> Half:
    """The half that a question belongs to, for ever."""
    return "held_out" if hashlib.sha256(query_id.encode()).digest()[-1] % 2 else "dev"


def read_routing(path: Path = ROUTING) -> tuple[RoutingQuestion, ...]:
    """The questions in the order of the file."""
    return tuple(
        RoutingQuestion(
            line["query_id"],
            line["query"],
            line["language"],
            line["query_type"],
            line["intent"],
            frozenset(line["tags"]),
        )
        for line in _lines(path)
    )


def read_naming(folder: Path = CLARIFICATION) -> tuple[NamingQuestion, ...]:
    """The questions in the order of the file."""
    return tuple(
        NamingQuestion(
            line["query_id"],
            line["query"],
            line["language"],
            line["kind"],
            line["ambiguous"],
            frozenset(line["options"]),
            frozenset(line["tags"]),
            line.get("after"),
        )
        for line in _lines(folder / "questions.jsonl")
    )


def read_documents(folder: Path = CLARIFICATION) -> tuple[SourceFile, ...]:
    """The documents that the questions may name, as small Markdown files."""
    return tuple(
        SourceFile(line["filename"], text=f"# {line['title']}\n\n{line['text']}\n")
        for line in _lines(folder / "documents.jsonl")
    )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())
