"""Reader for question sets, which are folders with documents or passages and labelled questions.

Format: docs/internals/measuring.md. Pages count from 1. Unknown fields are ignored.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Target = tuple[str, int | None]
"""A page of a document, (name, page), or a whole document or passage, (name, None); names by `name_key`."""

Unit = Literal["page", "document", "passage", "none"]

QUERIES = "queries.jsonl"
SAMPLE_QUERIES = "queries_1000.jsonl"
DOCUMENTS = "documents.jsonl"
PASSAGES = "passages.jsonl"


@dataclass(frozen=True)
class SourceFile:
    """A document to ingest: a file, or a passage that is uploaded as a text file.

    Attributes:
        path: path of the file; None for a passage.
        text: the passage with its title; None for a file.
    """

    filename: str
    path: Path | None = None
    text: str | None = None

    @property
    def key(self) -> str:
        return name_key(self.filename)

    def content(self) -> bytes:
        """Return the bytes to upload."""
        return self.path.read_bytes() if self.path is not None else (self.text or "").encode()


@dataclass(frozen=True)
class Question:
    """A question, labelled with the targets that contain its answer.

    Attributes:
        kind: the set's own category; "" without one.
        unit: what the labels name; "none" if unanswerable.
        grades: relevance by target; empty if the documents don't contain the answer.
        also_acceptable: targets as good as the labelled one, such as the page before.
        scope: file that the question presumes; None for the whole set.
        answers: reference answers, each correct.
    """

    query_id: str
    text: str
    kind: str = ""
    unit: Unit = "none"
    grades: Mapping[Target, float] = field(default_factory=dict)
    also_acceptable: frozenset[Target] = frozenset()
    scope: str | None = None
    answers: tuple[str, ...] = ()

    @property
    def is_answerable(self) -> bool:
        return bool(self.grades)


@dataclass(frozen=True)
class QuestionSet:
    """The documents and questions of a set. `left_out` is the number of questions skipped because their
    labels are unreliable or their answers need SQL.
    """

    name: str
    sources: tuple[SourceFile, ...]
    questions: tuple[Question, ...]
    left_out: int = 0


def name_key(filename: str) -> str:
    """Normalise a file name for comparison: stores may compose Unicode letters and merge spaces."""
    return " ".join(unicodedata.normalize("NFC", filename).split())


def find_sets(data: Path, names: str) -> list[Path]:
    """Return the folders of the named sets (separated by commas). Without names, return all sets below
    `data`, or `data` itself.

    Raises:
        ValueError: if a named folder isn't a question set, or there is none.
    """
    selected = [name.strip() for name in names.split(",") if name.strip()]
    if selected:
        folders = [data / name for name in selected]
    elif _is_set(data):
        folders = [data]
    else:
        folders = sorted(path for path in data.glob("*") if _is_set(path))
    wrong = [folder.name for folder in folders if not _is_set(folder)]
    if wrong or not folders:
        message = f"no question set: {', '.join(wrong)}" if wrong else f"no question set in {data}"
        raise ValueError(f"There is {message}. A set has {QUERIES}, and {DOCUMENTS} or {PASSAGES}.")
    return folders


def read_set(folder: Path, queries: str | None = None, limit: int | None = None) -> QuestionSet:
    """Read a set with at most `limit` questions. `queries` names the question file; by default, it is the
    sample file if there is one.

    Raises:
        ValueError: if a file is missing or malformed.
    """
    default = SAMPLE_QUERIES if (folder / SAMPLE_QUERIES).is_file() else QUERIES
    entries = list(_lines(folder / (queries or default)))
    usable = [entry for entry in entries if entry.get("label_ok", True) and "gold_sql" not in entry]
    read = [_question(entry) for entry in usable[:limit]]
    sources = tuple(_sources(folder))
    return QuestionSet(folder.resolve().name, sources, tuple(read), len(entries) - len(usable))


def passage_filename(passage_id: str) -> str:
    """Return the file name for a passage id. It contains only characters that every store preserves."""
    return re.sub(r"[^\w.-]+", "_", passage_id) + ".txt"


def _is_set(folder: Path) -> bool:
    has_documents = (folder / DOCUMENTS).is_file() or (folder / PASSAGES).is_file()
    return has_documents and (folder / QUERIES).is_file()


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        raise ValueError(f"There is no file {path}.")
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield _entry(line, f"{path}, line {number}")


def _entry(line: str, place: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:
        raise ValueError(f"{place} is not JSON.") from None
    if not isinstance(entry, dict):
        raise ValueError(f"{place} is not a JSON object.")
    return {**entry, "place": place}


def _sources(folder: Path) -> Iterator[SourceFile]:
    if (folder / DOCUMENTS).is_file():
        for entry in _lines(folder / DOCUMENTS):
            filename = str(_required_field(entry, "filename"))
            path = folder / str(entry.get("path") or f"docs/{filename}")
            if not path.is_file():
                raise ValueError(f"{entry['place']}: there is no file {path}.")
            yield SourceFile(filename, path=path)
    if (folder / PASSAGES).is_file():
        for entry in _lines(folder / PASSAGES):
            parts = (str(entry.get("title") or ""), str(_required_field(entry, "text")))
            text = "\n\n".join(part for part in parts if part)
            yield SourceFile(passage_filename(str(_required_field(entry, "passage_id"))), text=text)


def _question(entry: dict[str, Any]) -> Question:
    relevant = entry.get("relevant") or []
    return Question(
        query_id=str(_required_field(entry, "query_id")),
        text=str(_required_field(entry, "query")),
        kind=str(entry.get("type") or ""),
        unit=_unit(relevant),
        grades={_target(target, entry): float(target.get("grade") or 1) for target in relevant},
        also_acceptable=frozenset(_target(target, entry) for target in entry.get("also_acceptable") or []),
        scope=str(entry["scope_filename"]) if entry.get("scope_filename") else None,
        answers=tuple(_answers(entry)),
    )


def _unit(relevant: list[dict[str, Any]]) -> Unit:
    if not relevant:
        return "none"
    if any("passage_id" in target for target in relevant):
        return "passage"
    return "page" if all(target.get("page") is not None for target in relevant) else "document"


def _target(target: dict[str, Any], entry: dict[str, Any]) -> Target:
    if "passage_id" in target:
        return name_key(passage_filename(str(target["passage_id"]))), None
    if "filename" not in target:
        raise ValueError(f"{entry['place']}: a relevant target has neither filename nor passage_id.")
    page = target.get("page")
    return name_key(str(target["filename"])), int(page) if page is not None else None


def _answers(entry: dict[str, Any]) -> Iterator[str]:
    for answer in (entry.get("answers"), entry.get("answer")):
        several = answer if isinstance(answer, list) else [answer]
        yield from (str(one) for one in several if one not in (None, ""))


def _required_field(entry: dict[str, Any], name: str) -> object:
    if entry.get(name) in (None, ""):
        raise ValueError(f"{entry['place']} has no {name}.")
    return entry[name]
