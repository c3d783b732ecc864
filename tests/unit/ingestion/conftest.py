"""What tests of parsers share: a file of known content, parsed; stand-ins for Tesseract and a parser."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

from shared.documents.models import ParsedDocument
from shared.ingestion import parser_process
from shared.ingestion.parser_process import ParserPool
from shared.ingestion.parsers import ocr
from shared.ingestion.registry import format_of

Parse = Callable[[Any, str], ParsedDocument]
"""Takes content (bytes, text, or what has a `save` method) and a suffix; parses it as a file of that kind."""

Tesseract = Callable[[str], None]
"""Takes lines of Python that stand in for the program from now on; its input is read already."""

MarkdownRuns = Callable[..., None]
"""Has workers run a line of Python in place of the Markdown parser, and `at_start` when they start."""


@pytest.fixture
def pool() -> Iterator[ParserPool]:
    pool = ParserPool(workers=1, memory_mb=384)
    yield pool
    pool.close()


@pytest.fixture
def markdown_runs(monkeypatch: pytest.MonkeyPatch) -> MarkdownRuns:
    def install(line: str, at_start: str = "") -> None:
        before, main = parser_process._START.split("from ")
        stand_in = f"def parse_markdown(path, context):\n    import os, time; {line}\n"
        module = "import shared.ingestion.parsers.markdown as module; module.parse_markdown = parse_markdown"
        added = f"{stand_in}{module}\n{at_start}".replace("{", "{{").replace("}", "}}")
        start = f"{before}\n{added}\nfrom {main}"
        monkeypatch.setattr(parser_process, "_START", start)

    return install


@pytest.fixture
def parse(tmp_path: Path) -> Parse:
    def parsed(content: Any, suffix: str) -> ParsedDocument:
        path = tmp_path / f"parsed{suffix}"
        if isinstance(content, bytes | str):
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        else:
            content.save(str(path))
        document: ParsedDocument = resolve_name(format_of(path.name).parser)(path, None)
        return document

    return parsed


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Sets the name under which Tesseract is looked for."""

    def use(name: str) -> None:
        monkeypatch.setattr(ocr, "_PROGRAM", name)
        ocr.tesseract_path.cache_clear()
        ocr.installed_languages.cache_clear()

    yield use
    ocr.tesseract_path.cache_clear()
    ocr.installed_languages.cache_clear()


@pytest.fixture
def no_tesseract(program: Callable[[str], None]) -> None:
    program("no-such-program")


@pytest.fixture
def tesseract(tmp_path: Path, program: Callable[[str], None]) -> Tesseract:
    def install(lines: str) -> None:
        listing = 'if "--list-langs" in sys.argv:\n    print("List:\\neng\\nosd\\ndeu")\n    sys.exit()\n'
        path = tmp_path / "tesseract"
        path.write_text(f"#!{sys.executable}\nimport sys, time\n{listing}sys.stdin.buffer.read()\n{lines}")
        path.chmod(0o755)
        program(str(path))

    return install


def printing(*paragraphs: str) -> str:
    """Lines with which the stand-in recognises these paragraphs, of one line each."""
    rows = ["level\tand eleven more"]
    for paragraph, text in enumerate(paragraphs, start=1):
        for number, word in enumerate(text.split(), start=1):
            rows.append(f"5\t1\t1\t{paragraph}\t1\t{number}\t0\t0\t9\t9\t96.5\t{word}")
    return f"print({chr(10).join(rows)!r})\n"
