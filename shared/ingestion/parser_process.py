"""Pools of worker processes for parsing, so that a bad file can neither hang nor crash the host.

A worker is a fresh interpreter, not a fork, because the host has threads. It is reused, killed after a
timeout, and replaced after a crash. Each pool has threads that communicate with its workers, so any event
loop can wait for them. Waiting for a worker blocks no thread and times out early, since the host ends a
function after ten minutes.

This module also divides the memory of an instance between the host, the app and the workers.
"""

import asyncio
import os
import re
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
from shared.ingestion.parser_worker import READY, Job, ParseJob, WorkerReply, memory_reply
from shared.platform.errors import BadDocumentError, DependencyError
from shared.platform.process_memory import hide_memory
from shared.platform.telemetry import get_logger

# Memory for the Functions host (300 MB), its Python worker (250 MB), and buffered uploads (4 MB each).
_APP_MB = 768
# Memory limit of a worker for short texts. Parsing 32 KB of text takes 90 MB with a tokenizer.
_TEXT_MB = 144
# Memory limit of a worker for page pictures. Rendering a lossless colour scan at 600 dpi takes 175 MB.
_PAGE_MB = 224
# Memory limit of a worker for SQL queries: 55 MB plus the memory limit of SQLite (sql_worker.py).
_QUERY_MB = 144
# Parsing is CPU-bound, so more workers would only slow each other down.
_FILE_WORKERS = 2
# Maximum number of files at a parser service at once. They need no worker, but each occupies disk space.
_SENT_FILES = 3
COPIES = _FILE_WORKERS + _SENT_FILES + 1
"""Maximum number of documents on disk at once, each of up to MAX_DOCUMENT_BYTES. One is for page pictures."""
# Maximum wait for a free worker. Together with the parsing timeout, it must stay below the function timeout
# of ten minutes.
PATIENCE_S = 45.0
# Timeout for the start of a worker process. A start takes 1 s, or 10 s on a busy machine.
_START_TIMEOUT_S = 60.0
# Interval between checks for a free worker.
_POLL_S = 0.05
# With this niceness, parsers still get a third of the CPU while the app is busy answering questions.
_FILE_NICENESS = 5
# A worker process is replaced after this many jobs, because libraries leak memory.
_JOBS_PER_WORKER = 200
# Return code of a process that was killed, as by the kernel.
_KILLED = -9
# Maximum wait until a process that closed its pipe has exited.
_EXIT_TIMEOUT_S = 5.0
# Messages of libraries when an allocation fails, and the length of the end of the output that is searched.
_OUT_OF_MEMORY = re.compile(
    r"memory allocation of \d+ bytes failed|MemoryError|bad_alloc|out of memory", re.IGNORECASE
)
_MESSAGES_BYTES = 4000
_START = (
    "import sys; sys.path[:] = {path!r}; "
    "from shared.ingestion.parser_worker import main; "
    "main({memory_bytes}, {niceness}, {folder!r}, {readable!r}, {modules!r})"
)
# Pass only these environment variables to a worker, because others may contain secrets. The variables in
# `_SMALL` reduce its address space, which is limited.
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR")
_SMALL = {"MALLOC_ARENA_MAX": "1", "TOKENIZERS_PARALLELISM": "false"}

RunJob = Callable[[Job, float], Awaitable[None]]
"""Runs a job with a timeout in seconds, and writes the result to `job.target`.

Raises BadDocumentError: the file cannot be read, took too long, or crashed the parser.
"""


class ParserPool:
    """A fixed number of worker processes that are started on demand. Each may use `memory_mb` megabytes.

    Workers are assigned fairly, and the files of one user leave at least one worker free if there are
    several. `niceness` is added to that of the host process: higher values mean lower priority. `modules`
    are imported at the start of a worker, so that the import doesn't count towards the timeout of a job.
    """

    def __init__(
        self, workers: int, memory_mb: int, niceness: int = 0, modules: tuple[str, ...] = ()
    ) -> None:
        self.memory_mb = memory_mb
        self._workers = [_Worker(memory_mb << 20, niceness, modules) for _ in range(workers)]
        # A stack: the worker that was used last, whose process is already running, is used first.
        self._free = deque(self._workers)
        # Users of the busy workers. Several threads share this dict, so only atomic operations are allowed.
        self._holders: dict[_Worker, str] = {}
        self._order = FairOrder(most_of_one=max(1, workers - 1))
        # Use a separate executor, because the default one of the event loop has few threads and DNS lookups
        # need them.
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="parser")

    @property
    def started(self) -> int:
        """Number of worker processes started so far. A high number suggests that workers crash."""
        return sum(worker.started for worker in self._workers)

    async def run(self, job: Job, timeout_s: float, patience_s: float = PATIENCE_S, whose: str = "") -> None:
        """Run one job for the user `whose`. The result is written to `job.target`.

        Raises:
            BadDocumentError: the file cannot be read, took longer than `timeout_s`, or crashed the parser.
            NoPlaceFreeError: no worker became free within `patience_s`.
        """
        async with self.turn(whose, patience_s) as run:
            await run(job, timeout_s)

    @asynccontextmanager
    async def turn(self, whose: str, patience_s: float = PATIENCE_S) -> AsyncIterator[RunJob]:
        """Reserve a worker for several jobs of the user `whose`, and yield a function that runs a job on it.

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
            else:
                # The caller may be cancelled while the worker is still busy, so release the worker only when
                # it has replied.
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
            self._order.start_turn(waiter)
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
    """Slot of a worker pool, with at most one running process."""

    def __init__(self, memory_bytes: int, niceness: int = 0, modules: tuple[str, ...] = ()) -> None:
        self.started = 0  # number of processes started so far
        self._memory_bytes = memory_bytes
        self._niceness = niceness
        self._modules = modules
        self._process: subprocess.Popen[str] | None = None
        self._messages: IO[bytes] | None = None  # standard error of the process
        self._jobs = 0

    def ask(self, job: Job, timeout_s: float) -> WorkerReply:
        """Run a job in the worker process, and return the reply. Crashes and timeouts are reported as
        replies.

        Raises:
            DependencyError: no process could be started.
        """
        if self._process is None or self._process.poll() is not None or self._jobs >= _JOBS_PER_WORKER:
            self._restart(readable=_further_files(job))
        self._jobs += 1
        cast("IO[bytes]", self._messages).truncate(0)
        line, is_late = self._answer(job.model_dump_json() + "\n", timeout_s)
        # The reply arrived in time, but the timer had already fired and killed the process.
        if line and is_late:
            self.end()
        if line:
            return WorkerReply.model_validate_json(line)
        if is_late:
            self.end()
            reason = f"Reading the file took longer than {timeout_s:g} s."
            return WorkerReply(ok=False, reason=reason, hint="Split the file.", failure="too_large")
        if self._end_dead():
            return memory_reply(self._memory_bytes)
        return WorkerReply(
            ok=False,
            reason="The file crashed the parser and may be damaged or malicious.",
            hint="Check that the file opens in a viewer, or export it again.",
        )

    def _answer(self, question: str, timeout_s: float) -> tuple[str, bool]:
        """Send a line to the process. Return its reply ("" if it died) and whether the timeout expired."""
        process, line = cast("subprocess.Popen[str]", self._process), ""
        deadline = _Deadline(process)
        timer = threading.Timer(timeout_s, deadline.expire)
        timer.daemon = True
        timer.start()
        try:
            # The pipe is broken if the process has crashed.
            with suppress(OSError):
                cast("IO[str]", process.stdin).write(question)
                cast("IO[str]", process.stdin).flush()
                line = cast("IO[str]", process.stdout).readline()
        finally:
            is_late = deadline.withdraw()
            timer.cancel()
        return line, is_late

    def _end_dead(self) -> bool:
        """Clean up after a process that died by itself. Return whether it ran out of memory.

        Python raises MemoryError, which the process reports itself. Libraries in C++ and Rust write a message
        and abort. The kernel kills a process without a message if the whole instance runs out of memory.
        """
        process, messages = cast("subprocess.Popen[str]", self._process), cast("IO[bytes]", self._messages)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_EXIT_TIMEOUT_S)
        is_killed = process.returncode == _KILLED
        messages.seek(-min(_MESSAGES_BYTES, messages.seek(0, os.SEEK_END)), os.SEEK_END)
        text = messages.read().decode(errors="replace")
        self.end()
        sys.stderr.write(text)
        return is_killed or _OUT_OF_MEMORY.search(text) is not None

    def end(self) -> None:
        """Kill the process, if any, and wait for it to exit."""
        if self._process is not None:
            # Closing the pipe fails if the process died before it read all of its input.
            with suppress(OSError), self._process as process:
                process.kill()
        if self._messages is not None:
            self._messages.close()
        self._process = self._messages = None

    def _restart(self, readable: tuple[str, ...]) -> None:
        self.end()
        hide_memory()
        _report_missing_landlock()
        # Copy the import path of the host, because on Azure no environment variable contains the packages
        # folder.
        start = _START.format(
            path=list(sys.path),
            memory_bytes=self._memory_bytes,
            niceness=self._niceness,
            folder=tempfile.gettempdir(),
            readable=readable,
            modules=self._modules,
        )
        # The file has no name. Each job starts with an empty one (`ask`), so that it can't grow for long.
        self._messages = tempfile.TemporaryFile("ab+")  # noqa: SIM115 - closed with the process
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        self._process = subprocess.Popen(  # noqa: S603 - starts this interpreter with a fixed module
            [sys.executable, "-X", "utf8", "-c", start],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._messages,
            text=True,
            encoding="utf-8",
            env={**environment, **_SMALL},
        )
        self._jobs, self.started = 0, self.started + 1
        line, is_late = self._answer("", _START_TIMEOUT_S)
        if line != READY or is_late:
            self._end_dead()
            raise DependencyError("The parser process did not start.", "Try again in a moment.")


class _Deadline:
    """Timeout for one job. It kills the worker process only while that job runs, never during a later one."""

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
        """Cancel the timeout. Return whether it had already killed the process."""
        with self._lock:
            self._is_running = False
            return self._has_expired


@cache
def _report_missing_landlock() -> None:
    """Log a warning, once per process, if Landlock is unavailable and so can't keep the parsers from other
    files and processes.
    """
    if not landlock_version():
        get_logger().warning("parser.landlock_missing")


def _further_files(job: Job) -> tuple[str, ...]:
    """Return the files that a job reads from outside its folder, such as the tokenizer. They are the same for
    all jobs of a pool.
    """
    if not isinstance(job, ParseJob):
        return ()
    return tuple(str(path) for path in (job.tokenizer_path, job.languages) if path)


@dataclass(frozen=True)
class Parsers:
    """Worker pools of one app process.

    Attributes:
        files: pool for parsing most documents.
        texts: pool for short texts, which would otherwise wait for minutes behind scanned pages.
        pages: pool for page pictures and web pages, for which users are waiting.
        queries: pool for SQL queries on tables, where a hostile query may use its full timeout.
        sent: limit on files at a parser service. It starts no worker: they are then parsed in `files`.
    """

    files: ParserPool
    texts: ParserPool
    pages: ParserPool
    queries: ParserPool
    sent: ParserPool

    def close(self) -> None:
        """Terminate the idle workers of all pools."""
        for pool in (self.files, self.texts, self.pages, self.queries):
            pool.close()


@cache
def parsers(instance_memory_mb: int) -> Parsers:
    """Return the worker pools of this process. The pool `files` gets the memory that the host and the other
    pools don't need.
    """
    file_mb = (instance_memory_mb - _APP_MB - _TEXT_MB - _PAGE_MB - _QUERY_MB) // _FILE_WORKERS
    return Parsers(
        files=ParserPool(_FILE_WORKERS, file_mb, _FILE_NICENESS),
        texts=ParserPool(1, _TEXT_MB),
        pages=ParserPool(1, _PAGE_MB),
        queries=ParserPool(1, _QUERY_MB, modules=("shared.tables.sql_worker",)),
        sent=ParserPool(_SENT_FILES, 0),
    )
