"""Tests for the sandbox of parser workers: each attack runs inside a real worker of the app."""

import asyncio
import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from shared.ingestion import parser_process
from shared.ingestion.landlock import landlock_version
from shared.ingestion.parser_process import ParserPool
from shared.ingestion.parser_worker import ParseJob
from shared.platform.errors import BadDocumentError
from tests.unit.ingestion.conftest import MarkdownRuns

PATIENCE_S = 60
APP = Path(parser_process.__file__).parents[2]
PYTHON = Path(sys.executable).resolve()  # the worker can't read the link in the virtual environment
REFUSED = r"not understood \((PermissionError|gaierror|CalledProcessError|AssertionError)\)"
NO_LANDLOCK = "import shared.ingestion.sandbox as box; box.restrict_files = lambda **_: False"
NO_FILTER = "import shared.ingestion.sandbox as box; box.refuse_system_calls = lambda: False"
_SIGNALS_ARE_SCOPED = 6  # minimum Landlock ABI version


def _takes_filters() -> bool:
    script = (
        "import sys; from shared.ingestion.seccomp import refuse_system_calls; "
        "sys.exit(not refuse_system_calls())"
    )
    return subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


needs_filter = pytest.mark.skipif(not _takes_filters(), reason="this kernel takes no filter")
needs_landlock = pytest.mark.skipif(landlock_version() < 1, reason="this kernel has no Landlock")
outside_temporary = pytest.mark.skipif(
    APP.is_relative_to(Path(tempfile.gettempdir()).resolve()),
    reason="workers may use the folder for temporary files, and this clone is in it",
)
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has these layers")

OTHER_PROCESSES = {
    "environment": "open(f'/proc/{os.getppid()}/environ').read()",
    "memory read": "open(f'/proc/{os.getppid()}/mem', 'rb')",
    "memory written": "open(f'/proc/{os.getppid()}/mem', 'r+b')",
    "open files": "os.readlink(f'/proc/{os.getppid()}/fd/0')",
}
SYSTEM_CALLS = {
    "tcp": "import socket; socket.create_connection(('127.0.0.1', 9))",
    "unix": "import socket; socket.socket(socket.AF_UNIX)",
    "dns": "import socket; socket.getaddrinfo('example.invalid', 80); socket.socket()",
    "child": f"import subprocess; subprocess.run([{str(PYTHON)!r}, '-c', "
    "'import socket; socket.socket()'], check=True)",
    "ptrace": "import ctypes; libc = ctypes.CDLL(None, use_errno=True); "
    "assert libc.ptrace(16, os.getppid(), 0, 0) == 0 or ctypes.get_errno() != 13",
    "signal": "os.kill(os.getppid(), 0)",
    "signal to its group": "os.kill(0, 0)",
    "signal by file": "import fcntl; fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())",
    "signal by handle": "os.pidfd_open(os.getppid())",
    "resource limit": "import resource; resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (9, 9))",
    "priority": "os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
}
FILES = {
    "the app's folder": f"open({str(APP / 'pyproject.toml')!r})",
    "users of the machine": "open('/etc/passwd')",
    "its own memory": "open('/proc/self/mem', 'r+b')",
    "written elsewhere": f"open({str(APP / 'shared' / 'planted.py')!r}, 'w')",
    "devices": "open('/dev/zero')",
}


@pytest.mark.attack("parser isolation")
@needs_filter
@pytest.mark.parametrize("line", SYSTEM_CALLS.values(), ids=SYSTEM_CALLS)
async def test_a_parser_reaches_neither_the_network_nor_other_processes(
    pool: ParserPool, tmp_path: Path, markdown_runs: MarkdownRuns, line: str
) -> None:
    markdown_runs(line, at_start=NO_LANDLOCK)
    await _expect_refusal(pool, tmp_path)


@pytest.mark.attack("parser isolation")
@needs_linux
@pytest.mark.parametrize("missing", ["", NO_LANDLOCK], ids=["all layers", "no Landlock"])
@pytest.mark.parametrize("line", OTHER_PROCESSES.values(), ids=OTHER_PROCESSES)
async def test_a_parser_cannot_open_its_hosts_memory(
    pool: ParserPool, tmp_path: Path, markdown_runs: MarkdownRuns, line: str, missing: str
) -> None:
    markdown_runs(line, at_start=missing)
    await _expect_refusal(pool, tmp_path)


@pytest.mark.attack("parser isolation")
@needs_landlock
@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, marks=outside_temporary if str(APP) in line else (), id=name)
        for name, line in FILES.items()
    ],
)
async def test_a_parser_opens_only_files_it_needs(
    pool: ParserPool, tmp_path: Path, markdown_runs: MarkdownRuns, line: str
) -> None:
    markdown_runs(line)
    await _expect_refusal(pool, tmp_path)


@pytest.mark.attack("parser isolation")
@needs_landlock
async def test_a_parser_cannot_read_processes_that_hide_nothing(
    pool: ParserPool, tmp_path: Path, markdown_runs: MarkdownRuns
) -> None:
    neighbour = await asyncio.create_subprocess_exec(PYTHON, "-c", "input()", stdin=subprocess.PIPE)
    markdown_runs(f"open('/proc/{neighbour.pid}/environ').read()")
    await _expect_refusal(pool, tmp_path)
    await neighbour.communicate(b"\n")


@pytest.mark.attack("parser isolation")
@pytest.mark.skipif(landlock_version() < _SIGNALS_ARE_SCOPED, reason="needs Linux 6.12")
async def test_a_parser_sends_no_signal_where_the_filter_is_missing(
    pool: ParserPool, tmp_path: Path, markdown_runs: MarkdownRuns
) -> None:
    markdown_runs("os.kill(os.getppid(), 0)", at_start=NO_FILTER)
    await _expect_refusal(pool, tmp_path)


@pytest.mark.attack("parser isolation")
@needs_linux
@pytest.mark.parametrize("missing", ["", NO_LANDLOCK], ids=["all layers", "no Landlock"])
async def test_a_parser_cannot_find_or_replace_a_secret_in_its_hosts_memory(
    pool: ParserPool, tmp_path: Path, markdown_runs: MarkdownRuns, missing: str
) -> None:
    marker = bytearray(secrets.token_hex(16), "ascii")
    before = bytes(marker)
    half = len(marker) // 2  # the worker is searched for the marker, so the file must not contain it whole
    source = tmp_path / "search.py"
    source.write_text(
        f"import os\nneedle = {before[:half]!r} + {before[half:]!r}\n"
        "host = f'/proc/{os.getppid()}'\n"
        "with open(f'{host}/maps') as maps, open(f'{host}/mem', 'r+b', 0) as mem:\n"
        "    for line in maps:\n"
        "        start, end = (int(one, 16) for one in line.split()[0].split('-'))\n"
        "        try:\n"
        "            mem.seek(start)\n"
        "            at = mem.read(end - start).find(needle)\n"
        "            if at >= 0:\n"
        "                mem.seek(start + at)\n"
        "                mem.write(b'x' * len(needle))\n"
        "        except (OSError, ValueError, OverflowError):\n"
        "            pass\n"
    )
    markdown_runs(f"exec(open({str(source)!r}).read())", at_start=missing)
    await _expect_refusal(pool, tmp_path)
    assert bytes(marker) == before


@needs_linux
async def test_a_parser_works_in_its_own_folder_and_may_still_abort(
    pool: ParserPool, tmp_path: Path, markdown_runs: MarkdownRuns
) -> None:
    markdown_runs(f"open({str(tmp_path / 'written')!r}, 'w').write('x'); os.kill(os.getpid(), 0); os.abort()")
    with pytest.raises(BadDocumentError, match="crashed"):
        await pool.run(_job(tmp_path), PATIENCE_S)
    assert (tmp_path / "written").read_text() == "x"


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="only root has capabilities")
async def test_a_parser_of_root_has_no_capability_but_to_read_files(
    pool: ParserPool, tmp_path: Path, markdown_runs: MarkdownRuns
) -> None:
    status = tmp_path / "status"
    line = f"open({str(status)!r}, 'w').write(open('/proc/self/status').read()); os.abort()"
    markdown_runs(line, at_start=NO_LANDLOCK)
    with pytest.raises(BadDocumentError, match="crashed"):
        await pool.run(_job(tmp_path), PATIENCE_S)
    sets = dict(row.split(":\t") for row in status.read_text().splitlines() if row.startswith("Cap"))
    capabilities = {name: int(value, 16) for name, value in sets.items()}
    assert capabilities["CapPrm"] == capabilities["CapEff"] == capabilities["CapBnd"] == 1 << 2
    assert capabilities["CapInh"] == capabilities["CapAmb"] == 0


async def _expect_refusal(pool: ParserPool, folder: Path) -> None:
    with pytest.raises(BadDocumentError, match=REFUSED):
        await pool.run(_job(folder), PATIENCE_S)


def _job(folder: Path) -> ParseJob:
    source = folder / "source"
    source.write_bytes(b"A sentence.")
    return ParseJob(source=source, target=folder / "target", filename="a.md", max_tokens=100, max_blocks=9)
