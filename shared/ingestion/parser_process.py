"""Parsing in worker processes, so that a bad file can neither hang nor crash the host.

A worker is a fresh interpreter, not a fork, because the host has threads. It is reused, killed after a
timeout, and replaced after a crash. The pool's own threads communicate with the workers, so any event loop
can wait for them. Waiting for a worker blocks no thread and times out early, since the host ends a function
after ten minutes.

This module also divides an instance's memory between the host, the app and a limit for each worker. The sum
never exceeds the instance's memory.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import IO, cast

from shared.ingestion.fair_turns import FairOrder, NoPlaceFreeError, Waiter
from shared.ingestion.landlock import landlock_version
from shared.ingestion.parser_worker import READY, Job, ParseJob, WorkerReply
from shared.platform.errors import BadDocumentError, DependencyError
from shared.platform.process_memory import hide_memory
from shared.platform.telemetry import get_logger

_APP_MB = 768  # the host (300 MB), its Python worker (250 MB), buffered uploads (4 MB each)
_TEXT_MB = 144  # texts of up to 32 KB take 90 MB with a tokenizer
_PAGE_MB = 224  # a lossless colour scan at 600 dpi takes 175 MB
_QUERY_MB = 144  # 55 MB plus SQLite's limit (sql_worker.py)
_FILE_WORKERS = 2  # parsing is CPU-bound
_SENT_FILES = 3  # read by a parser service: no worker, but a copy on disk each
COPIES = _FILE_WORKERS + _SENT_FILES + 1
"""Documents of up to MAX_DOCUMENT_BYTES that may lie on the disk at once; the last for pictures of pages."""
PATIENCE_S = 45.0  # together with the parser's limits, below a function's ten minutes
_START_TIMEOUT_S = 60.0  # takes 1 s, ten times as long on a busy machine
_POLL_S = 0.05  # between checks for a free worker
_FILE_NICENESS = 5  # a third of the CPU when the app is busy answering questions
_JOBS_PER_WORKER = 200  # then the process is replaced, which frees leaked memory
_START = (
    "import sys; sys.path[:] = {path!r}; "
    "from shared.ingestion.parser_worker import main; "
    "main({memory_bytes}, {niceness}, {folder!r}, {readable!r}, {modules!r})"
)
# Other variables may be secrets. The last two reduce address space, which is limited.
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR")
_SMALL = {"MALLOC_ARENA_MAX": "1", "TOKENIZERS_PARALLELISM": "false"}

RunJob = Callable[[Job, float], Awaitable[None]]
"""Performs a job within a timeout in seconds; the result lies in `job.target`.

Raises BadDocumentError: the file cannot be read, took too long, or crashed the parser.
"""


class ParserPool:
    """A fixed number of workers, started on demand, each limited to `memory_mb`.

    Workers are assigned fairly, and one user's files occupy at most all but one. `niceness` is added to that
    of the host's process: higher values mean lower priority. `modules` are imported at the start of a worker,
    so that the import doesn't count towards a job's timeout.
    """

    def __init__(
        self, workers: int, memory_mb: int, niceness: int = 0, modules: tuple[str, ...] = ()
    ) -> None:
        self.memory_mb = memory_mb
        self._workers = [_Worker(memory_mb << 20, niceness, modules) for _ in range(workers)]
        self._free = deque(self._workers)  # a stack: the most recently used worker is already running
        self._holders: dict[_Worker, str] = {}  # shared with threads: use atomic operations only
        self._order = FairOrder(most_of_one=max(1, workers - 1))
        # Not the event loop's few threads, which DNS lookups need.
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="parser")

    @property
    def started(self) -> int:
        """Number of worker processes started; a high number means many crashes."""
        return sum(worker.started for worker in self._workers)

    async def run(self, job: Job, timeout_s: float, patience_s: float = PATIENCE_S, whose: str = "") -> None:
        """Run one job for the user `whose`; the result is written to `job.target`.

        Raises:
            BadDocumentError: the file cannot be read, took longer than `timeout_s`, or crashed the parser.
            NoPlaceFreeError: no worker became free within `patience_s`.
        """
        async with self.turn(whose, patience_s) as run:
            await run(job, timeout_s)

    @asynccontextmanager
    async def turn(self, whose: str, patience_s: float = PATIENCE_S) -> AsyncIterator[RunJob]:
        """Reserve a worker for several jobs of the user `whose`.

        Don't reserve a second worker within the block, which could deadlock.

        Raises:
            NoPlaceFreeError: no worker became free within `patience_s`.
        """
        worker = await self._free_worker(whose, patience_s)
        exchange: Future[WorkerReply] | None = None

        async def run(job: Job, timeout_s: float) -> None:
            nonlocal exchange
            exchange = self._threads.submit(worker.ask, job, timeout_s)
            reply = await asyncio.wrap_future(exchange)
            if not reply.ok:
                raise BadDocumentError(reply.reason, reply.hint, failure=reply.failure)

        try:
            yield run
        finally:
            if exchange is None:
                self._give_back(worker)
            else:  # the caller may be cancelled; the worker is free after its reply
                exchange.add_done_callback(lambda _: self._give_back(worker))

    async def _free_worker(self, whose: str, patience_s: float) -> "_Worker":
        ends = time.monotonic() + patience_s
        waiter = Waiter(whose)
        self._order.add(waiter)
        try:
            while not self._free or self._order.next(list(self._holders.values())) is not waiter:
                if time.monotonic() >= ends:
                    raise NoPlaceFreeError
                await asyncio.sleep(_POLL_S)
            self._order.took(waiter)
            worker = self._free.pop()
            self._holders[worker] = whose
            return worker
        finally:
            self._order.remove(waiter)

    def _give_back(self, worker: "_Worker") -> None:
        del self._holders[worker]
        self._free.append(worker)

    def close(self) -> None:
        """Terminate the idle workers."""
        for worker in list(self._free):
            worker.end()


class _Worker:
    """A worker slot with at most one process."""

    def __init__(self, memory_bytes: int, niceness: int = 0, modules: tuple[str, ...] = ()) -> None:
        self.started = 0  # number of processes started
        self._memory_bytes = memory_bytes
        self._niceness = niceness
        self._modules = modules
        self._process: subprocess.Popen[str] | None = None
        self._jobs = 0

    def ask(self, job: Job, timeout_s: float) -> WorkerReply:
        """Run a job and return the reply. Crashes and timeouts become replies too.

        Raises:
            DependencyError: no process could be started.
        """
        if self._process is None or self._process.poll() is not None or self._jobs >= _JOBS_PER_WORKER:
            self._restart(readable=_further_files(job))
        self._jobs += 1
        line, is_late = self._answer(job.model_dump_json() + "\n", timeout_s)
        if line and is_late:  # it replied in time but was killed afterwards
            self.end()
        if line:
            return WorkerReply.model_validate_json(line)
        self.end()
        if is_late:
            reason = f"Reading the file took longer than {timeout_s:g} s."
            return WorkerReply(ok=False, reason=reason, hint="Split the file.", failure="too_large")
        return WorkerReply(
            ok=False,
            reason="The file crashed the parser and may be damaged or malicious.",
            hint="Check that it opens in a viewer; export it again.",
        )

    def _answer(self, question: str, timeout_s: float) -> tuple[str, bool]:
        """Return the process's next line, "" if it died, and whether the timeout expired."""
        process, line = cast("subprocess.Popen[str]", self._process), ""
        deadline = _Deadline(process)
        timer = threading.Timer(timeout_s, deadline.expire)
        timer.daemon = True
        timer.start()
        try:
            with suppress(OSError):  # broken pipe after a crash
                cast("IO[str]", process.stdin).write(question)
                cast("IO[str]", process.stdin).flush()
                line = cast("IO[str]", process.stdout).readline()
        finally:
            is_late = deadline.withdraw()
            timer.cancel()
        return line, is_late

    def end(self) -> None:
        """Kill the process, if any, and wait for it."""
        if self._process is not None:
            with suppress(OSError), self._process as process:  # unread input of a dead process
                process.kill()
        self._process = None

    def _restart(self, readable: tuple[str, ...]) -> None:
        self.end()
        hide_memory()
        _report_missing_landlock()
        # Copy the host's import path: on Azure, no variable names the packages folder.
        start = _START.format(
            path=list(sys.path),
            memory_bytes=self._memory_bytes,
            niceness=self._niceness,
            folder=tempfile.gettempdir(),
            readable=readable,
            modules=self._modules,
        )
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-X", "utf8", "-c", start],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**environment, **_SMALL},
        )
        self._jobs, self.started = 0, self.started + 1
        line, is_late = self._answer("", _START_TIMEOUT_S)
        if line != READY or is_late:
            self.end()
            raise DependencyError("A parser process did not start.", "Try again in a moment.")


class _Deadline:
    """The timeout of one job. It kills the process only during that job, never during the next one."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._lock = threading.Lock()
        self._is_running = True
        self._has_expired = False

    def expire(self) -> None:
        """Kill the process if the job is still running."""
        with self._lock:
            if self._is_running:
                self._has_expired = True
                self._process.kill()

    def withdraw(self) -> bool:
        """Cancel the deadline. Returns whether it already killed the process."""
        with self._lock:
            self._is_running = False
            return self._has_expired


@cache
def _report_missing_landlock() -> None:
    """Warn once per process that parsers can read the app's files and other processes."""
    if not landlock_version():
        get_logger().warning("parser.landlock_missing")


def _further_files(job: Job) -> tuple[str, ...]:
    """Return files outside the job's folder that it reads. They are the same for all jobs of a pool."""
    if not isinstance(job, ParseJob):
        return ()
    return tuple(str(path) for path in (job.tokenizer_path, job.languages) if path)


@dataclass(frozen=True)
class Parsers:
    """The pools of one process.

    Attributes:
        texts: for short texts, which would otherwise wait for minutes behind scanned pages.
        pages: for page pictures and web pages, which users wait for.
        queries: for SQL over tables, where a hostile query may use its full timeout.
        sent: limits files sent to a parser service, which then use one of `files`. Starts no worker.
    """

    files: ParserPool
    texts: ParserPool
    pages: ParserPool
    queries: ParserPool
    sent: ParserPool

    def close(self) -> None:
        """Terminate the idle workers."""
        for pool in (self.files, self.texts, self.pages, self.queries):
            pool.close()


@cache
def parsers(instance_memory_mb: int) -> Parsers:
    """Return the process's pools. Together, the workers use the memory left by the host and the app."""
    file_mb = (instance_memory_mb - _APP_MB - _TEXT_MB - _PAGE_MB - _QUERY_MB) // _FILE_WORKERS
    return Parsers(
        files=ParserPool(_FILE_WORKERS, file_mb, _FILE_NICENESS),
        texts=ParserPool(1, _TEXT_MB),
        pages=ParserPool(1, _PAGE_MB),
        queries=ParserPool(1, _QUERY_MB, modules=("shared.tables.sql_worker",)),
        sent=ParserPool(_SENT_FILES, 0),
    )
