"""Parsing in worker processes, so that a bad file can neither hang nor kill the host.

A worker is a fresh interpreter, never a fork: the host has threads. It is reused, ended after a timeout, and
replaced after a crash. The pool's own threads talk to the workers, so that any event loop can wait for them.
A caller that waits for a worker blocks no thread, and gives up early: the host ends a function after ten
minutes.

An instance's memory is shared out here: what the host and the app need, and a limit for each worker. The sum
never exceeds what the instance has.
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

_APP_MB = 768  # the host (300 MB), its Python worker (250 MB), uploads that it holds whole (4 MB each)
_TEXT_MB = 144  # texts of up to 32 KB: 90 MB with a tokenizer
_PAGE_MB = 224  # a page in colour, scanned at 600 dpi without loss: 175 MB
_QUERY_MB = 144  # 55 MB, and what SQLite may take (sql_worker.py)
_FILE_WORKERS = 2  # parsing is bound by the processor
_SENT_FILES = 3  # which a parser service reads; they use no worker, but a copy on the disk
COPIES = _FILE_WORKERS + _SENT_FILES + 1
"""Documents of up to MAX_DOCUMENT_BYTES that may lie on the disk at once; the last for pictures of pages."""
PATIENCE_S = 45.0  # with the parser's own limits below the ten minutes that a function may take
_START_TIMEOUT_S = 60.0  # it takes 1 s; on a machine with many busy processes ten times as long
_POLL_S = 0.05  # between two looks for a free worker
_FILE_NICENESS = 5  # a third of the processor where the app, which answers questions, wants it too
_JOBS_PER_WORKER = 200  # then a fresh one: what a library leaks is given back
_START = (
    "import sys; sys.path[:] = {path!r}; "
    "from shared.ingestion.parser_worker import main; "
    "main({memory_bytes}, {niceness}, {folder!r}, {readable!r}, {modules!r})"
)
# Everything else may be a secret. The last two keep address space small, which is what is limited.
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR")
_SMALL = {"MALLOC_ARENA_MAX": "1", "TOKENIZERS_PARALLELISM": "false"}

RunJob = Callable[[Job, float], Awaitable[None]]
"""Performs a job within a timeout in seconds; the result lies in `job.target`.

Raises BadDocumentError: the file cannot be read, took too long, or crashed the parser.
"""


class ParserPool:
    """Some workers, started when they are needed; each may take `memory_mb`.

    They are shared out fairly, and one person's files take all but one at most. `niceness` is added to that
    of the host's process: the higher, the lower the priority. `modules` are imported as a worker starts, so
    that no job's time goes into it.
    """

    def __init__(
        self, workers: int, memory_mb: int, niceness: int = 0, modules: tuple[str, ...] = ()
    ) -> None:
        self.memory_mb = memory_mb
        self._workers = [_Worker(memory_mb << 20, niceness, modules) for _ in range(workers)]
        self._free = deque(self._workers)  # used from its end: the last one to work has started already
        self._holders: dict[_Worker, str] = {}  # changed by threads too: never read and written in two steps
        self._order = FairOrder(most_of_one=max(1, workers - 1))
        # Not the event loop's threads: looking up a host's name takes one of those, and there are few.
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="parser")

    @property
    def started(self) -> int:
        """Worker processes so far: many mean many crashes."""
        return sum(worker.started for worker in self._workers)

    async def run(self, job: Job, timeout_s: float, patience_s: float = PATIENCE_S, whose: str = "") -> None:
        """Perform one job of a person; the result lies in `job.target`.

        Raises:
            BadDocumentError: the file cannot be read, took longer than `timeout_s`, or crashed the parser.
            NoPlaceFreeError: no worker became free within `patience_s`.
        """
        async with self.turn(whose, patience_s) as run:
            await run(job, timeout_s)

    @asynccontextmanager
    async def turn(self, whose: str, patience_s: float = PATIENCE_S) -> AsyncIterator[RunJob]:
        """Reserve a worker for some jobs of a person.

        Don't ask for a second one meanwhile: that could deadlock.

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
            else:  # the caller may have been cancelled: the worker is free when it has replied
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
        """End the processes of the workers that are free."""
        for worker in list(self._free):
            worker.end()


class _Worker:
    """One process at a time."""

    def __init__(self, memory_bytes: int, niceness: int = 0, modules: tuple[str, ...] = ()) -> None:
        self.started = 0  # processes so far
        self._memory_bytes = memory_bytes
        self._niceness = niceness
        self._modules = modules
        self._process: subprocess.Popen[str] | None = None
        self._jobs = 0

    def ask(self, job: Job, timeout_s: float) -> WorkerReply:
        """Return the reply of the process; if it crashes or takes too long, a reply that says so.

        Raises:
            DependencyError: no process could be started.
        """
        if self._process is None or self._process.poll() is not None or self._jobs >= _JOBS_PER_WORKER:
            self._restart(readable=_further_files(job))
        self._jobs += 1
        line, is_late = self._answer(job.model_dump_json() + "\n", timeout_s)
        if line and is_late:  # it replied in time, but was killed all the same
            self.end()
        if line:
            return WorkerReply.model_validate_json(line)
        self.end()
        if is_late:
            reason = f"Reading the file took longer than {timeout_s:g} s."
            return WorkerReply(ok=False, reason=reason, hint="Split the file.", failure="too_large")
        return WorkerReply(
            ok=False,
            reason="The file crashed the parser: it is damaged or malicious.",
            hint="Check that it opens in a viewer; export it again.",
        )

    def _answer(self, question: str, timeout_s: float) -> tuple[str, bool]:
        """Return the next line of the process, "" if it died, and whether its time was over."""
        process, line = cast("subprocess.Popen[str]", self._process), ""
        deadline = _Deadline(process)
        timer = threading.Timer(timeout_s, deadline.expire)
        timer.daemon = True
        timer.start()
        try:
            with suppress(OSError):  # the process died: the pipe is broken
                cast("IO[str]", process.stdin).write(question)
                cast("IO[str]", process.stdin).flush()
                line = cast("IO[str]", process.stdout).readline()
        finally:
            is_late = deadline.withdraw()
            timer.cancel()
        return line, is_late

    def end(self) -> None:
        """End the process, if there is one, and wait for it."""
        if self._process is not None:
            with suppress(OSError), self._process as process:  # input that a dead process has not read
                process.kill()
        self._process = None

    def _restart(self, readable: tuple[str, ...]) -> None:
        self.end()
        hide_memory()
        _report_missing_landlock()
        # The host's import path, as it is: in Azure packages lie in a folder that no variable names.
        start = _START.format(
            path=list(sys.path),
            memory_bytes=self._memory_bytes,
            niceness=self._niceness,
            folder=tempfile.gettempdir(),
            readable=readable,
            modules=self._modules,
        )
        kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-X", "utf8", "-c", start],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**kept, **_SMALL},
        )
        self._jobs, self.started = 0, self.started + 1
        line, is_late = self._answer("", _START_TIMEOUT_S)
        if line != READY or is_late:
            self.end()
            raise DependencyError("A parser process did not start.", "Try again in a moment.")


class _Deadline:
    """The end of one job's time. It kills the process during that job and never during the next one."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._lock = threading.Lock()
        self._is_running = True
        self._has_expired = False

    def expire(self) -> None:
        """Kill the process if the job still runs."""
        with self._lock:
            if self._is_running:
                self._has_expired = True
                self._process.kill()

    def withdraw(self) -> bool:
        """Let the process live from now on. Returns whether it has been killed."""
        with self._lock:
            self._is_running = False
            return self._has_expired


@cache
def _report_missing_landlock() -> None:
    """Warn once per process that parsers can read the app's files and other processes."""
    if not landlock_version():
        get_logger().warning("parser.landlock_missing")


def _further_files(job: Job) -> tuple[str, ...]:
    """Files outside the job's folder that it reads; the same for all jobs of a pool."""
    if not isinstance(job, ParseJob):
        return ()
    return tuple(str(path) for path in (job.tokenizer_path, job.languages) if path)


@dataclass(frozen=True)
class Parsers:
    """The pools of one process.

    Attributes:
        texts: for short texts, so that they don't wait for minutes of scanned pages.
        pages: for pictures of pages and texts of web pages, which somebody waits for.
        queries: for SQL over tables, of which a hostile query may take all of its time.
        sent: files that a parser service reads take a turn here, then one of `files`. It starts no worker.
    """

    files: ParserPool
    texts: ParserPool
    pages: ParserPool
    queries: ParserPool
    sent: ParserPool

    def close(self) -> None:
        """End the processes of the workers that are free."""
        for pool in (self.files, self.texts, self.pages, self.queries):
            pool.close()


@cache
def parsers(instance_memory_mb: int) -> Parsers:
    """The process's pools; their workers together take what the host and the app leave of the memory."""
    file_mb = (instance_memory_mb - _APP_MB - _TEXT_MB - _PAGE_MB - _QUERY_MB) // _FILE_WORKERS
    return Parsers(
        files=ParserPool(_FILE_WORKERS, file_mb, _FILE_NICENESS),
        texts=ParserPool(1, _TEXT_MB),
        pages=ParserPool(1, _PAGE_MB),
        queries=ParserPool(1, _QUERY_MB, modules=("shared.tables.sql_worker",)),
        sent=ParserPool(_SENT_FILES, 0),
    )
