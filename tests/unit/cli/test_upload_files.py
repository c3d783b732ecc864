"""Tests for the selection of files to upload."""

from pathlib import Path

import pytest

from cli.errors import CommandError
from cli.upload_files import files_of, find_files


def test_files_keep_their_place_below_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "handbook"
    for name in ("b.md", "deep/er/a.md", ".git/config", "deep/.x.md", "b.md.acl.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    files = [(path.name, place) for path, place in find_files(folder)]
    assert files == [("b.md", "handbook"), ("a.md", "handbook/deep/er")]
    assert [place for _, place in find_files(folder, "/x/")] == ["x", "x/deep/er"]
    assert [place for _, place in find_files(folder, "")] == ["", "deep/er"]
    assert list(find_files(folder / "b.md")) == [(folder / "b.md", "")]
    with pytest.raises(CommandError, match="There is no"):
        list(find_files(tmp_path / "missing"))


def test_several_files_and_patterns_are_uploaded_together(tmp_path: Path) -> None:
    folder = tmp_path / "handbook"
    for name in ("a.md", "b.md", "c.txt", "b.md.acl.json", "deep/b.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")

    def names(*sources: Path) -> list[str]:
        return [path.name for path, _ in files_of(sources, None)]

    assert names(folder / "a.md", folder / "b.md", folder / "a.md") == ["a.md", "b.md"]
    assert names(folder / "*.md") == ["a.md", "b.md"]  # a quoted pattern, or a shell without globbing
    assert names(folder / "b*") == ["b.md"]
    with pytest.raises(CommandError, match="would become the same document"):
        names(folder / "b.md", folder / "deep/b.md")
    with pytest.raises(CommandError, match=r"There is no .*\.pdf"):
        names(folder / "a.md", folder / "*.pdf")
