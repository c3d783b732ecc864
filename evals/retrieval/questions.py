"""Questions with their true pages, read from a set's `queries.jsonl`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.retrieval.metrics import Target


@dataclass(frozen=True)
class Question:
    """One labelled question.

    Attributes:
        relevant: pages (or whole documents, where the set names no pages) that hold the answer.
        scope: file that the question assumes to be known, None when it is asked of the whole set.
        kind: the set's own word for the kind of question.
    """

    query_id: str
    text: str
    relevant: tuple[Target, ...]
    scope: str | None
    kind: str

    @property
    def names_pages(self) -> bool:
        return all(page is not None for _, page in self.relevant)


def read_questions(path: Path) -> list[Question]:
    """The answerable questions whose labels the set's makers trust."""
    lines = path.read_text(encoding="utf-8").splitlines()
    entries: list[dict[str, Any]] = [json.loads(line) for line in lines if line.strip()]
    return [_question(entry) for entry in entries if entry["relevant"] and entry.get("label_ok", True)]


def _question(entry: dict[str, Any]) -> Question:
    relevant = {(str(found["filename"]), found.get("page")) for found in entry["relevant"]}
    return Question(
        query_id=str(entry["query_id"]),
        text=str(entry["query"]),
        relevant=tuple(sorted(relevant, key=str)),
        scope=entry.get("scope_filename"),
        kind=str(entry.get("type", "")),
    )
