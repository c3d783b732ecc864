"""Tests for the parser process: a damaged file affects neither the host nor the next file."""

import asyncio
import io
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from PIL import Image

from shared.ingestion import parser_process
from shared.ingestion.models import ParsedFile
from shared.ingestion.parser_process import ParserPool
from shared.ingestion.parser_worker import ParseJob
from shared.platform.errors import BadDocumentError
from tests.unit.ingestion.conftest import MarkdownRuns

PATIENCE_S = 60


def job(folder: Path, filename: str, content: bytes = b"A sentence.") -> ParseJob:
    source = folder / "source"
    source.write_bytes(content)
    return ParseJob(
        source=source, target=folder / "target", filename=filename, max_tokens=100, max_blocks=1000
    )


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
    ("line", "reason"),
    [
        ("os.abort()", "crashed the parser"),
        ("raise KeyError('no such object')", r"not understood \(KeyError\)"),
        ("bytearray(1 << 40)", "384 MB of memory"),
        ("print('noise'); raise ValueError", r"not understood \(ValueError\)"),
    ],
)
async def test_whatever_a_parser_does_the_next_file_is_parsed(
    pool: ParserPool, tmp_path: Path, markdown_runs: MarkdownRuns, line: str, reason: str
) -> None:
    markdown_runs(line)
    with pytest.raises(BadDocumentError, match=reason):
        await pool.run(job(tmp_path, "a.md"), PATIENCE_S)
    await pool.run(job(tmp_path, "a.txt"), PATIENCE_S)


@pytest.mark.parametrize(
    "line",
    [
        "bytearray(1 << 40)",
        "os.write(2, b'memory allocation of 805306368 bytes failed'); os.abort()",
        "os.kill(os.getpid(), 9)",
    ],
)
async def test_a_file_that_needs_too_much_memory_is_not_called_damaged(
    pool: ParserPool, tmp_path: Path, markdown_runs: MarkdownRuns, line: str
) -> None:
    markdown_runs(line)
    with pytest.raises(BadDocumentError, match="384 MB of memory") as refused:
        await pool.run(job(tmp_path, "a.md"), PATIENCE_S)
    assert refused.value.failure == "needs_memory"
    assert "Split the file" in refused.value.hints[0]


async def test_a_crash_after_a_file_that_needed_too_much_memory_is_still_a_crash(
    pool: ParserPool, tmp_path: Path, markdown_runs: MarkdownRuns
) -> None:
    markdown_runs("os.write(2, open(path, 'rb').read()); 'abort' in open(path).read() and os.abort()")
    with suppress(BadDocumentError):
        await pool.run(job(tmp_path, "a.md", b"out of memory"), PATIENCE_S)
    with pytest.raises(BadDocumentError, match="crashed the parser"):
        await pool.run(job(tmp_path, "a.md", b"abort"), PATIENCE_S)


async def test_a_parser_that_hangs_is_ended(
    pool: ParserPool, tmp_path: Path, markdown_runs: MarkdownRuns
) -> None:
    markdown_runs("time.sleep(3600)")
    with pytest.raises(BadDocumentError, match="took longer than 2 s"):
        await pool.run(job(tmp_path, "a.md"), 2)


async def test_a_timer_that_fires_as_a_job_ends_does_not_kill_the_next_one(
    pool: ParserPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class LateTimer(threading.Timer):
        """A timer that fires just before it is cancelled."""

        def cancel(self) -> None:
            super().cancel()
            self.function(*self.args)

    monkeypatch.setattr(threading, "Timer", LateTimer)
    for _ in range(3):
        await pool.run(job(tmp_path, "a.txt"), PATIENCE_S)
    assert pool.started == 1


async def test_files_that_wait_for_a_worker_hold_no_thread_of_the_event_loop(
    pool: ParserPool, tmp_path: Path, markdown_runs: MarkdownRuns
) -> None:
    markdown_runs("time.sleep(3)")
    slow = job(tmp_path, "a.md")
    waiting = [asyncio.create_task(pool.run(slow, 60, patience_s=0.5)) for _ in range(50)]
    await asyncio.sleep(0.1)
    # Name lookups, file access and JSON parsing need these threads, also while answering.
    assert await asyncio.wait_for(asyncio.to_thread(lambda: "done"), timeout=2) == "done"
    ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(end).__name__ for end in ended].count("NoPlaceFreeError") == 49


async def test_a_caller_that_gives_up_keeps_no_worker_from_others(
    pool: ParserPool, tmp_path: Path, markdown_runs: MarkdownRuns
) -> None:
    markdown_runs("time.sleep(1)")
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
pool = ParserPool(workers=1, memory_mb=384)
paths = {"source": folder / "source", "target": folder / "target"}
job = ParseJob(**paths, filename="a.txt", max_tokens=100, max_blocks=9)
asyncio.run(pool.run(job, 60))
print(pool._free.pop()._process.pid, flush=True)
os._exit(9)
"""


def test_a_worker_ends_when_its_owner_is_gone(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"A sentence.")
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    owner = subprocess.run(command, check=False, cwd=root, capture_output=True, text=True, timeout=60)
    assert owner.returncode == 9, owner.stderr
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int(owner.stdout)).wait(timeout=30)


BUSY_OWNER = """
import asyncio, sys
from pathlib import Path
from shared.ingestion import parser_process
from shared.ingestion.parser_worker import ParseJob
folder = Path(sys.argv[1])
before, main = parser_process._START.split("from ")
hangs = "import shared.ingestion.parsers.text as module; module.parse_text = lambda *_: time.sleep(3600)"
parser_process._START = f"{before}import time; {hangs}\\nfrom {main}"
pool = parser_process.ParserPool(workers=1, memory_mb=384)
paths = {"source": folder / "source", "target": folder / "target"}
job = ParseJob(**paths, filename="a.txt", max_tokens=100, max_blocks=9)

async def main():
    asking = asyncio.create_task(pool.run(job, 3600))
    while (process := pool._workers[0]._process) is None:
        await asyncio.sleep(0.1)
    await asyncio.sleep(3)
    print(process.pid, flush=True)
    await asking

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_a_busy_worker_ends_with_its_owner(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"A sentence.")
    command = [sys.executable, "-c", BUSY_OWNER, str(tmp_path)]
    with subprocess.Popen(command, cwd=Path(__file__).parents[3], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        worker = psutil.Process(int(owner.stdout.readline()))
        assert worker.is_running()
        owner.kill()
    with suppress(psutil.NoSuchProcess):
        worker.wait(timeout=30)


async def test_a_worker_gets_no_secret_of_the_app(
    pool: ParserPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_SEARCH_API_KEY", "canary-of-the-environment")
    await pool.run(job(tmp_path, "a.txt"), PATIENCE_S)
    process = pool._workers[0]._process
    assert process is not None
    assert "canary-of-the-environment" not in psutil.Process(process.pid).environ().values()


@pytest.mark.parametrize("instance_memory_mb", [2048, 4096])
def test_the_parsers_of_an_instance_fit_into_its_memory(instance_memory_mb: int) -> None:
    pools = parser_process.parsers(instance_memory_mb)
    everything = [(2, pools.files), (1, pools.texts), (1, pools.pages), (1, pools.queries)]
    assert all(len(pool._workers) == count for count, pool in everything)
    taken_mb = sum(count * pool.memory_mb for count, pool in everything)
    assert taken_mb <= instance_memory_mb - parser_process._APP_MB
    assert pools.files.memory_mb >= 384


async def test_a_picture_that_unfolds_is_refused_within_the_memory_of_a_small_instance(
    tmp_path: Path,
) -> None:
    pool = ParserPool(workers=1, memory_mb=parser_process.parsers(2048).files.memory_mb)
    with io.BytesIO() as content:
        Image.new("RGB", (10_000, 9_999)).save(content, "PNG")
        too_large = content.getvalue()
    with pytest.raises(BadDocumentError, match="40 million colour"):
        await pool.run(job(tmp_path, "a.png", too_large), PATIENCE_S)
    with io.BytesIO() as content:
        # A smooth image: recognising noise takes half a minute, and memory only depends on the size.
        Image.linear_gradient("L").resize((8000, 4900)).convert("RGB").save(content, "PNG")
        largest = content.getvalue()
    await pool.run(job(tmp_path, "b.png", largest), PATIENCE_S)
    pool.close()


async def test_a_persons_second_file_waits_for_somebody_elses_first(
    tmp_path: Path, markdown_runs: MarkdownRuns
) -> None:
    markdown_runs("time.sleep(0.5)")
    pool, order = ParserPool(workers=2, memory_mb=384), list[str]()

    async def parse(whose: str, number: int) -> None:
        folder = tmp_path / f"{whose}{number}"
        folder.mkdir()
        async with pool.turn(whose, PATIENCE_S) as run:
            order.append(whose)
            with suppress(BadDocumentError):
                await run(job(folder, "a.md"), PATIENCE_S)

    # Although three of Anna's files wait, one of the two workers stays free for Ben.
    await asyncio.gather(*(parse("anna", number) for number in range(4)), parse("ben", 0))
    pool.close()
    assert order == ["anna", "ben", "anna", "anna", "anna"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other priorities")
async def test_a_worker_gives_way_to_the_app(tmp_path: Path) -> None:
    pool = ParserPool(workers=1, memory_mb=384, niceness=5)
    before = set(psutil.Process().children())
    await pool.run(job(tmp_path, "a.md"), PATIENCE_S)
    (worker,) = set(psutil.Process().children()) - before
    assert worker.nice() == min(19, psutil.Process().nice() + 5)
    pool.close()
