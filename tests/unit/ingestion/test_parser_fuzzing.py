"""Fuzz tests for parsers: damaged and hostile files of every format are read or refused without a crash.

The examples are the same in each run. Add a regression test for every new example that fails.
"""

import io
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from email.message import EmailMessage
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openpyxl import Workbook
from PIL import Image
from pptx import Presentation

from shared.ingestion.parser_worker import ParseJob, parse_file
from shared.ingestion.registry import FORMATS
from shared.platform.errors import BadDocumentError
from tests.unit.ingestion.pdf_files import PdfMaker

pytestmark = pytest.mark.attack("parser fuzzing")

_SIGNS = '<>/!-[](){}|*_`~#&;:"=\\\n\t\r\0\x1b\u202e\ufeff€𝒜é0aA '
_WORD = (
    '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>'
    '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>a</w:t></w:r></w:p>'
    '<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc>'
    "</w:tr></w:tbl></w:body></w:document>"
)
_TEXTS = {
    ".csv": 'sep=;\na;"b\n""c""";d\n1;2;3\n',
    ".html": "<table><tr><td colspan=2 rowspan=3>a</td></tr></table><ul><li>b<pre>c</pre></ul><!-- d -->",
    ".md": "# a\n\n| b | c |\n|---|---|\n| 1 | 2 |\n\n```x\ny\n```\n\n<!-- z -->\n- [d](e)\n",
    ".srt": "1\n00:00:01,000 --> 00:00:02,000\nhello\n\n2\n00:00:03,000 --> 00:00:04,000\nworld\n",
    ".vtt": "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Eva>hello</v>\n",
}


def _saved(write: Callable[[io.BytesIO], object]) -> bytes:
    target = io.BytesIO()
    write(target)
    return target.getvalue()


def _word(_folder: Path) -> bytes:
    return _joined({"[Content_Types].xml": b"<Types/>", "word/document.xml": _WORD.encode()})


def _excel(_folder: Path) -> bytes:
    book = Workbook()
    book.create_sheet("a").append(["b", 3.5])
    return _saved(book.save)


def _mail(_folder: Path) -> bytes:
    mail = EmailMessage()
    mail["Subject"] = "a"
    mail.set_content("b")
    mail.add_attachment(b"c,d", maintype="text", subtype="csv", filename="e.csv")
    return mail.as_bytes()


def _picture(kind: str) -> Callable[[Path], bytes]:
    return lambda _folder: _saved(lambda to: Image.new("RGB", (64, 64), "white").save(to, kind))


_SEEDS: dict[str, Callable[[Path], bytes]] = {
    "PDF": lambda folder: (
        PdfMaker().page().heading("A").paragraph("B c.").write(folder / "seed.pdf").read_bytes()
    ),
    "Word": _word,
    "Excel": _excel,
    "PowerPoint": lambda _folder: _saved(Presentation().save),
    "e-mail": _mail,
    **{kind: _picture(kind) for kind in ("PNG", "JPEG", "TIFF", "WebP")},
}


def seed_file(suffix: str, folder: Path) -> bytes:
    """Return a small valid file of the format."""
    make = _SEEDS.get(FORMATS[suffix].name)
    like = {".tsv": ".csv", ".htm": ".html"}.get(suffix, suffix)
    return make(folder) if make else _TEXTS.get(like, _TEXTS[".md"]).encode()


def _parts(content: bytes) -> dict[str, bytes]:
    """Return the members of an archive by name, or the whole file under "" if it is no archive."""
    if not zipfile.is_zipfile(io.BytesIO(content)):
        return {"": content}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _joined(parts: dict[str, bytes]) -> bytes:
    if "" in parts:
        return parts[""]

    def write(target: io.BytesIO) -> None:
        with zipfile.ZipFile(target, "w") as archive:
            for name, part in parts.items():
                archive.writestr(name, part)

    return _saved(write)


@st.composite
def _damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Return the file truncated, or with bytes of one part replaced, removed or repeated."""
    parts = _parts(content)
    name = draw(st.sampled_from(sorted(parts)))
    part = parts[name]
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(part)))
        end = draw(st.integers(start, min(len(part), start + 40)))
        new = draw(st.binary(max_size=8) | st.text(_SIGNS, max_size=20).map(str.encode))
        part = part[:start] + new * draw(st.sampled_from([1, 1, 50])) + part[end:]
    whole = _joined({**parts, name: part})
    return whole[: draw(st.sampled_from([len(whole), len(whole), len(whole) // 2]))]


@pytest.mark.timeout(600)  # for a loaded machine
@pytest.mark.parametrize("suffix", sorted(FORMATS))
def test_a_damaged_file_is_read_or_refused(suffix: str, tmp_path: Path) -> None:
    @settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(_damaged(seed_file(suffix, tmp_path)))
    def check(content: bytes) -> None:
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            source = Path(folder, "blob")
            source.write_bytes(content)
            job = ParseJob(
                source=source,
                target=Path(folder, "out"),
                filename=f"a{suffix}",
                max_tokens=100,
                max_blocks=1000,
            )
            with suppress(BadDocumentError):
                assert len(parse_file(job).chunks) <= 1000

    check()
