"""The worker process: what a bad file does to it, and that the host and the next file do not mind."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from shared.ingestion.models import ParsedFile
from shared.ingestion.parser_process import ParserPool
from shared.ingestion.parser_worker import ParseJob
from shared.platform.errors import BadDocumentError

PATIENCE_S = 60


@pytest.fixture
def pool() -> Iterator[ParserPool]:
    pool = ParserPool(workers=1)
    yield pool
    pool.close()


def job(folder: Path, filename: str, content: bytes = b"A sentence.") -> ParseJob:
    source = folder / "source"
    source.write_bytes(content)
    return ParseJob(source=source, target=folder / "target", filename=filename, max_tokens=100)


def make_format(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """Make `.md` files run `body`: workers get the host's import path, so a module there stands in."""
    package = folder / "stand_in" / "shared"
    package.mkdir(parents=True)
    root = Path(__file__).parents[3]
    (package / "__init__.py").write_text(f"__path__.append({str(root / 'shared')!r})\n")
    ingestion = package / "ingestion"
    ingestion.mkdir()
    (ingestion / "__init__.py").write_text(f"__path__.append({str(root / 'shared/ingestion')!r})\n")
    parsers = ingestion / "parsers"
    parsers.mkdir()
    (parsers / "__init__.py").write_text(f"__path__.append({str(root / 'shared/ingestion/parsers')!r})\n")
    (parsers / "markdown.py").write_text(f"import os, time\n\ndef parse_markdown(path):\n    {body}\n")
    monkeypatch.syspath_prepend(str(folder / "stand_in"))


async def test_a_file_is_parsed_and_the_worker_is_used_again(pool: ParserPool, tmp_path: Path) -> None:
    for _ in range(2):
        await pool.run(job(tmp_path, "a.txt"), PATIENCE_S)
    parsed = ParsedFile.model_validate_json((tmp_path / "target").read_text())
    assert [chunk.text for chunk in parsed.chunks] == ["A sentence."]
    assert pool.started == 1


async def test_a_refusal_crosses_the_border_with_its_hint(pool: ParserPool, tmp_path: Path) -> None:
    with pytest.raises(BadDocumentError, match="empty") as refused:
        await pool.run(job(tmp_path, "a.pdf", b""), PATIENCE_S)
    assert refused.value.hints


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("os.abort()", "crashed the parser"),
        ("raise KeyError('no such object')", r"not understood \(KeyError\)"),
        ("bytearray(1 << 40)", "GiB of memory"),
        ("print('noise'); raise ValueError", r"not understood \(ValueError\)"),
    ],
)
async def test_whatever_a_parser_does_the_next_file_is_parsed(
    pool: ParserPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, reason: str
) -> None:
    make_format(tmp_path, monkeypatch, body)
    with pytest.raises(BadDocumentError, match=reason):
        await pool.run(job(tmp_path, "a.md"), PATIENCE_S)
    await pool.run(job(tmp_path, "a.txt"), PATIENCE_S)


async def test_a_parser_that_hangs_is_ended(
    pool: ParserPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_format(tmp_path, monkeypatch, "time.sleep(3600)")
    with pytest.raises(BadDocumentError, match="took longer than 2 s"):
        await pool.run(job(tmp_path, "a.md"), 2)


async def test_files_that_wait_for_a_worker_hold_no_thread_of_the_event_loop(
    pool: ParserPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_format(tmp_path, monkeypatch, "time.sleep(3)")
    slow = job(tmp_path, "a.md")
    waiting = [asyncio.create_task(pool.run(slow, 60, patience_s=0.5)) for _ in range(50)]
    await asyncio.sleep(0.1)
    # Looking up names, files and JSON takes such threads, in answers to questions too.
    assert await asyncio.wait_for(asyncio.to_thread(lambda: "done"), timeout=2) == "done"
    ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(end).__name__ for end in ended].count("NoWorkerFreeError") == 49


async def test_whoever_stops_waiting_for_a_file_keeps_no_worker_from_others(
    pool: ParserPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_format(tmp_path, monkeypatch, "time.sleep(1)")
    given_up = asyncio.create_task(pool.run(job(tmp_path, "a.md"), PATIENCE_S))
    await asyncio.sleep(0.2)
    given_up.cancel()
    await pool.run(job(tmp_path, "a.txt"), PATIENCE_S)


OWNER = """
import asyncio, os, sys
from pathlib import Path
from shared.ingestion.parser_worker import ParseJob
from shared.ingestion.parser_process import ParserPool
folder = Path(sys.argv[1])
pool = ParserPool()
job = ParseJob(source=folder / "source", target=folder / "target", filename="a.txt", max_tokens=100)
asyncio.run(pool.run(job, 60))
print(pool._idle.get_nowait()._process.pid, flush=True)
os._exit(9)
"""


def test_a_worker_ends_when_its_owner_is_gone(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"A sentence.")
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    owner = subprocess.run(command, check=False, cwd=root, capture_output=True, text=True, timeout=60)
    assert owner.returncode == 9, owner.stderr
    worker = psutil.Process(int(owner.stdout)) if psutil.pid_exists(int(owner.stdout)) else None
    if worker is not None:
        worker.wait(timeout=30)
