"""The files to ingest, and the Markdown files with their expected text. Only file names are read here."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

MANIFEST = "documents.jsonl"
REFERENCE_FOLDER = "reference"


@dataclass(frozen=True)
class CorpusFile:
    """A file to ingest, with its reference text if there is one.

    Attributes:
        name: path below the folder, with slashes.
        reference: Markdown with the expected text, or None.
    """

    name: str
    path: Path
    reference: Path | None = None

    @property
    def suffix(self) -> str:
        return self.path.suffix.lower()


def find_files(folder: Path) -> list[CorpusFile]:
    """Return all files below the folder, sorted by name. Hidden files and reference texts are excluded.

    A folder with a `documents.jsonl` contains the listed files: `path` and optionally `reference_md`.
    Elsewhere the reference of `a/b.docx` is `reference/b.docx.md`, in the folder or next to it.

    Raises:
        ValueError: the folder doesn't exist or is empty.
    """
    if not folder.is_dir():
        raise ValueError(f"There is no folder {folder}.")
    manifest = folder / MANIFEST
    files = _files_in_manifest(folder, manifest) if manifest.is_file() else _files_below(folder)
    ordered = sorted(files, key=lambda file: file.name)
    if not ordered:
        raise ValueError(f"There is no file in {folder}.")
    return ordered


def _files_in_manifest(folder: Path, manifest: Path) -> Iterator[CorpusFile]:
    for line in manifest.read_text(encoding="utf-8").splitlines():
        if line.strip():
            entry: Mapping[str, object] = json.loads(line)
            reference = folder / str(entry["reference_md"]) if entry.get("reference_md") else None
            yield CorpusFile(str(entry["path"]), folder / str(entry["path"]), reference)


def _files_below(folder: Path) -> Iterator[CorpusFile]:
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in name.parts)
        if path.is_file() and not hidden and REFERENCE_FOLDER not in name.parts[:-1]:
            yield CorpusFile(name.as_posix(), path, _reference(folder, path))


def _reference(folder: Path, path: Path) -> Path | None:
    places = (folder, folder.parent)
    candidates = [place / REFERENCE_FOLDER / f"{path.name}.md" for place in places]
    return next((candidate for candidate in candidates if candidate.is_file()), None)
