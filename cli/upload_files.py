"""Files to upload: their selection, and their destination folders."""

import glob
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from cli.errors import CommandError

_SIDECAR = ".acl.json"


def files_of(sources: Sequence[Path], folder: str | None) -> list[tuple[Path, str]]:
    """Return (file, destination folder) for the files of all sources, each file once.

    Raises:
        CommandError: no files were found, or two of them would become the same document.
    """
    files: dict[tuple[str, str], Path] = {}
    for source in sources:
        for path, target in find_files(source, folder):
            other = files.setdefault((target, path.name), path)
            if other.resolve() != path.resolve():
                raise CommandError(
                    f"{other} and {path} would become the same document.",
                    "Upload them one after the other, each with its own --folder.",
                )
    if not files:
        raise CommandError(f"There are no files in {', '.join(map(str, sources))}.")
    return [(path, target) for (target, _), path in files.items()]


def find_files(source: Path, folder: str | None = None) -> Iterator[tuple[Path, str]]:
    """Yield each file and its destination folder, except hidden files.

    Files keep their path below the source folder. Patterns that the shell didn't expand are expanded here.

    Raises:
        CommandError: the file or folder doesn't exist, or nothing matches.
    """
    if not source.exists():
        paths = glob.glob(str(source), recursive=True)  # noqa: PTH207  # Path.glob takes no absolute pattern
        matches = sorted(map(Path, paths))
        if not matches:
            raise CommandError(f"There is no {source}.")
        for match in matches:
            if not match.name.endswith(_SIDECAR):
                yield from find_files(match, folder)
        return
    if source.is_file():
        yield source, folder or ""
        return
    root = source.resolve().name if folder is None else folder
    for path in sorted(source.rglob("*")):
        relative = path.relative_to(source)
        hidden = any(part.startswith(".") for part in relative.parts)
        if path.is_file() and not hidden and not path.name.endswith(_SIDECAR):
            yield path, "/".join(part for part in (root.strip("/"), *relative.parent.parts) if part)


def content_hash(path: Path) -> str:
    """Return the file's SHA-256, the same value that the app computes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
