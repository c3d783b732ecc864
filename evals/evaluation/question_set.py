"""A folder of documents (or passages) with labelled questions, in the uniform format. Only reads files.

Format: docs/internals/measuring.md. Pages are 1-based. Fields that are not named there are passed over.
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
    """One document to bring in: a file, or a passage written as one.

    Attributes:
        path: where the file lies; None for a passage.
        text: the passage with its title; None for a file.
    """

    filename: str
    path: Path | None = None
    text: str | None = None

    @property
    def key(self) -> str:
        return name_key(self.filename)

    def content(self) -> bytes:
        """The bytes that are uploaded."""
        return self.path.read_bytes() if self.path is not None else (self.text or "").encode()


@dataclass(frozen=True)
class Question:
    """One labelled question.

    Attributes:
        kind: the set's own word for the kind of question; "" where it has none.
        unit: what the labels name; "none" when nothing holds the answer.
        grades: relevant target -> how relevant; empty = the documents do not hold the answer.
        also_acceptable: targets that are no worse than the labelled one, such as the page before.
        scope: file that the question assumes to be known; None when it is asked of the whole set.
        answers: reference answers, each of them right.
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
    """A set as it is read; `left_out` counts questions with labels not to be trusted, or that need SQL."""

    name: str
    sources: tuple[SourceFile, ...]
    questions: tuple[Question, ...]
    left_out: int = 0


def name_key(filename: str) -> str:
    """A file's name as it is compared: a store may compose letters and fold blanks."""
    return " ".join(unicodedata.normalize("NFC", filename).split())


def find_sets(data: Path, names: str) -> list[Path]:
    """The folders of the sets that are named (separated by commas), or of all below `data`, or `data` itself.

    Raises:
        ValueError: a folder that is named is no set, or there is none at all.
    """
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if wanted:
        folders = [data / name for name in wanted]
    elif _is_set(data):
        folders = [data]
    else:
        folders = sorted(path for path in data.glob("*") if _is_set(path))
    wrong = [folder.name for folder in folders if not _is_set(folder)]
    if wrong or not folders:
        said = f"no set: {', '.join(wrong)}" if wrong else f"no set in {data}"
        raise ValueError(f"There is {said}. A set has {QUERIES}, and {DOCUMENTS} or {PASSAGES}.")
    return folders


def read_set(folder: Path, queries: str | None = None, limit: int | None = None) -> QuestionSet:
    """A set with its first `limit` questions, from the file `queries` (else the sample, where there is one).

    Raises:
        ValueError: a file is missing, or a line of it is not of the format.
    """
    default = SAMPLE_QUERIES if (folder / SAMPLE_QUERIES).is_file() else QUERIES
    entries = list(_lines(folder / (queries or default)))
    usable = [entry for entry in entries if entry.get("label_ok", True) and "gold_sql" not in entry]
    read = [_question(entry) for entry in usable[:limit]]
    sources = tuple(_sources(folder))
    return QuestionSet(folder.resolve().name, sources, tuple(read), len(entries) - len(usable))


def passage_filename(passage_id: str) -> str:
    """The name of the small file that a passage becomes: every store leaves it as it is."""
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
            filename = str(_required(entry, "filename"))
            path = folder / str(entry.get("path") or f"docs/{filename}")
            if not path.is_file():
                raise ValueError(f"{entry['place']}: there is no file {path}.")
            yield SourceFile(filename, path=path)
    if (folder / PASSAGES).is_file():
        for entry in _lines(folder / PASSAGES):
            parts = (str(entry.get("title") or ""), str(_required(entry, "text")))
            text = "\n\n".join(part for part in parts if part)
            yield SourceFile(passage_filename(str(_required(entry, "passage_id"))), text=text)


def _question(entry: dict[str, Any]) -> Question:
    relevant = entry.get("relevant") or []
    return Question(
        query_id=str(_required(entry, "query_id")),
        text=str(_required(entry, "query")),
        kind=str(entry.get("type") or ""),
        unit=_unit(relevant),
        grades={_target(found, entry): float(found.get("grade") or 1) for found in relevant},
        also_acceptable=frozenset(_target(found, entry) for found in entry.get("also_acceptable") or []),
        scope=str(entry["scope_filename"]) if entry.get("scope_filename") else None,
        answers=tuple(_answers(entry)),
    )


def _unit(relevant: list[dict[str, Any]]) -> Unit:
    if not relevant:
        return "none"
    if any("passage_id" in found for found in relevant):
        return "passage"
    return "page" if all(found.get("page") is not None for found in relevant) else "document"


def _target(found: dict[str, Any], entry: dict[str, Any]) -> Target:
    if "passage_id" in found:
        return name_key(passage_filename(str(found["passage_id"]))), None
    if "filename" not in found:
        raise ValueError(f"{entry['place']}: a relevant target names neither filename nor passage_id.")
    page = found.get("page")
    return name_key(str(found["filename"])), int(page) if page is not None else None


def _answers(entry: dict[str, Any]) -> Iterator[str]:
    for answer in (entry.get("answers"), entry.get("answer")):
        several = answer if isinstance(answer, list) else [answer]
        yield from (str(one) for one in several if one not in (None, ""))


def _required(entry: dict[str, Any], name: str) -> object:
    if entry.get(name) in (None, ""):
        raise ValueError(f"{entry['place']} has no {name}.")
    return entry[name]
