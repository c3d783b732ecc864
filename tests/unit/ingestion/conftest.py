"""Fixtures for parser tests: parsed files with known content, and stand-ins for Tesseract and a parser."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from PIL.Image import Image

from shared.documents.models import ParsedDocument
from shared.ingestion import parser_process, task
from shared.ingestion.parser_process import ParserPool
from shared.ingestion.parsers import tesseract as engine_module
from shared.ingestion.parsers.tesseract import Problem
from shared.ingestion.registry import format_of
from shared.wiring import Services
from tests.contract.ingestion.models import counting_services

Parse = Callable[[Any, str], ParsedDocument]
"""Takes content (bytes, text, or what has a `save` method) and a suffix; parses it as a file of that kind."""

Tesseract = Callable[[str], None]
"""Takes lines of Python that stand in for the engine from now on."""

NO_MEMORY = 12
"""The exit code by which such lines say that the picture takes too much memory."""

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
        prelude = f"{stand_in}{module}\n{at_start}".replace("{", "{{").replace("}", "}}")
        start = f"{before}\n{prelude}\nfrom {main}"
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
def no_tesseract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "is_installed", lambda _=None: False)


@pytest.fixture
def services() -> Services:
    return counting_services()


@pytest.fixture(params=["one step", "many steps"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test twice, with short texts ingested in one step and in several."""
    if request.param == "many steps":
        monkeypatch.setattr(task, "MAX_SMALL_BYTES", -1)


class StandIn:
    """A stand-in for Tesseract that runs Python code, whose output is the table of recognised words."""

    def __init__(self, lines: str) -> None:
        self._command = [sys.executable, "-c", f"import sys, time\n{lines}"]

    def read(self, picture: Image, timeout_s: float) -> tuple[str, Problem | None]:
        try:
            done = subprocess.run(
                self._command, check=True, capture_output=True, text=True, timeout=timeout_s
            )
        except subprocess.TimeoutExpired:
            return "", "time"
        except subprocess.CalledProcessError as failed:
            return "", "memory" if failed.returncode == NO_MEMORY else "failed"
        return done.stdout, None

    def close(self) -> None:
        """Do nothing, because no engine is open."""


@pytest.fixture
def tesseract(monkeypatch: pytest.MonkeyPatch) -> Tesseract:
    def install(lines: str) -> None:
        monkeypatch.setattr(engine_module, "is_installed", lambda _=None: True)
        monkeypatch.setattr(engine_module, "open_engines", lambda _=None: StandIn(lines))

    return install


def printing(*paragraphs: str) -> str:
    """Return code with which the stand-in recognises these paragraphs, each on one line."""
    rows = ["level\tand eleven more"]
    for paragraph, text in enumerate(paragraphs, start=1):
        for number, word in enumerate(text.split(), start=1):
            rows.append(f"5\t1\t1\t{paragraph}\t1\t{number}\t0\t0\t9\t9\t96.5\t{word}")
    return f"print({chr(10).join(rows)!r})\n"
