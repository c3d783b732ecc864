"""Tests for archives that are unsafe to unpack and for packages that don't match their suffix."""

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
from docx import Document
from openpyxl import Workbook

from shared.ingestion.parsers.office import MAX_ENTRIES, check_zip
from shared.platform.errors import BadDocumentError
from tests.unit.ingestion.conftest import Parse


@pytest.fixture
def whole() -> bytes:
    content = io.BytesIO()
    Document().save(content)
    return content.getvalue()


def archive(path: Path, parts: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target:
        for name, content in parts.items():
            target.writestr(name, content)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(BadDocumentError) as refused:
        check_zip(path)
    assert refused.value.hints
    return refused.value.detail


def test_a_bomb_is_refused_before_it_unfolds(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.docx", {"word/document.xml": bytes(60 << 20)})
    assert "decompression bomb" in refusal(path)


def test_too_many_parts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    with zipfile.ZipFile(path, "w") as target:
        for number in range(MAX_ENTRIES + 1):
            target.writestr(str(number), b"")
    assert f"{MAX_ENTRIES + 1} parts" in refusal(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_refused(tmp_path: Path, encoding: str) -> None:
    xml = (
        f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///x">]><a>&b;</a>'
    )
    assert "entities" in refusal(archive(tmp_path / "a.docx", {"word/document.xml": xml.encode(encoding)}))


def test_an_encrypted_archive_says_so(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.docx", {"a.xml": b"<a/>"})
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1  # general purpose flags of the central directory
    path.write_bytes(bytes(content))
    assert "encrypted" in refusal(path)


@pytest.mark.parametrize("size_bytes", [10, 2000])
def test_a_truncated_archive_is_damaged(tmp_path: Path, whole: bytes, size_bytes: int) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(whole[:size_bytes])
    assert "damaged or incomplete" in refusal(path)


def test_an_archive_of_flipped_bytes_is_refused_and_nothing_else_is_raised(
    parse: Parse, whole: bytes
) -> None:
    refused = []
    for start in range(0, len(whole) - 50, len(whole) // 40):
        try:
            parse(whole[:start] + bytes(50) + whole[start + 50 :], ".docx")
        except BadDocumentError:
            refused.append(start)
    assert len(refused) > 10


@pytest.mark.parametrize(
    ("content", "suffix", "actual"),
    [(Workbook(), ".docx", "an Excel workbook"), (Document(), ".pptx", "a Word document")],
)
def test_a_package_of_another_kind_is_named(parse: Parse, content: Any, suffix: str, actual: str) -> None:
    with pytest.raises(BadDocumentError, match=f"the content is {actual}"):
        parse(content, suffix)


def test_a_zip_archive_with_an_office_suffix_is_named(tmp_path: Path, parse: Parse) -> None:
    path = archive(tmp_path / "a.zip", {"readme.txt": b"words"})
    with pytest.raises(BadDocumentError, match="the content is another kind of ZIP archive"):
        parse(path.read_bytes(), ".xlsx")
