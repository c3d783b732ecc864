"""Parsing in worker processes, so that a bad file can neither hang nor kill the host.

A worker is a fresh interpreter, never a fork: the host has threads. It is reused, ended after a time limit,
and replaced after a crash. Exchanges run in threads of the pool's own, so that any event loop may wait for
them; who waits for a worker holds none, and not for long: the host ends a function after ten minutes.
"""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import cache
from queue import Empty, SimpleQueue

from shared.ingestion.parser_worker import ParseJob, RenderJob, WorkerReply
from shared.platform.errors import BadDocumentError, DependencyError

Job = ParseJob | RenderJob

_WORKERS = 2  # at once; parsing is bound by the processor
PATIENCE_S = 45.0  # with the parser's own limits below the ten minutes that a function may take
_LOOK_S = 0.05  # between two looks for a free worker
_JOBS_PER_WORKER = 200  # then a fresh one: what a library leaks is given back
_START = "import sys; sys.path[:] = {path!r}; from shared.ingestion.parser_worker import main; main()"


class NoWorkerFreeError(DependencyError):
    """Others are being read. Nothing is wrong with the file, nor with any service: it is to come again."""


class ParserPool:
    """Some workers, started when they are needed."""

    def __init__(self, workers: int = _WORKERS) -> None:
        self._slots = threading.BoundedSemaphore(workers)
        # None of the event loop's: looking up a host's name takes one of those, and there are few.
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="parser")
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        self.started = 0  # workers so far: many mean many crashes

    async def run(self, job: Job, timeout_s: float, patience_s: float = PATIENCE_S) -> None:
        """Read one file; the result lies in `job.target`.

        Raises:
            BadDocumentError: the file cannot be read, took longer than `timeout_s`, or crashed the parser.
            NoWorkerFreeError: no worker became free within `patience_s`.
        """
        async with self.turn(patience_s) as turn:
            await turn.run(job, timeout_s)

    @asynccontextmanager
    async def turn(self, patience_s: float = PATIENCE_S) -> AsyncIterator["Turn"]:
        """A worker of one's own for a while. Whoever has one must not ask for a second: all could have one.

        Raises:
            NoWorkerFreeError: none became free within `patience_s`.
        """
        await self._wait(patience_s)
        turn = Turn(self)
        try:
            yield turn
        finally:
            if turn.exchange is None:
                self._slots.release()
            else:  # whatever becomes of who waits: a slot is free when its worker is
                turn.exchange.add_done_callback(lambda _: self._slots.release())

    def begin(self, job: Job, timeout_s: float) -> "Future[WorkerReply]":
        """Begin to read one file, in a thread; for those who have a turn."""
        return self._threads.submit(self._exchange, job, timeout_s)

    def close(self) -> None:
        """End the idle workers."""
        while True:
            try:
                self._idle.get_nowait().end()
            except Empty:
                return

    async def _wait(self, patience_s: float) -> None:
        ends = time.monotonic() + patience_s
        while not self._slots.acquire(blocking=False):
            if time.monotonic() >= ends:
                raise NoWorkerFreeError("Other files are being read.", "This one is read after them.")
            await asyncio.sleep(_LOOK_S)

    def _exchange(self, job: Job, timeout_s: float) -> WorkerReply:
        worker = self._take()
        reply = worker.ask(job, timeout_s)
        if worker.usable:
            self._idle.put(worker)
        else:
            worker.end()
        return reply

    def _take(self) -> "_Worker":
        while True:
            try:
                worker = self._idle.get_nowait()
            except Empty:
                self.started += 1
                return _Worker()
            if worker.usable:
                return worker
            worker.end()


class Turn:
    """The right to one of a pool's workers: one file after the other, without another wait for it."""

    def __init__(self, pool: ParserPool) -> None:
        self._pool = pool
        self.exchange: Future[WorkerReply] | None = None  # the last one

    async def run(self, job: Job, timeout_s: float) -> None:
        """Read one file; the result lies in `job.target`.

        Raises:
            BadDocumentError: the file cannot be read, took longer than `timeout_s`, or crashed the parser.
        """
        self.exchange = self._pool.begin(job, timeout_s)
        reply = await asyncio.wrap_future(self.exchange)
        if not reply.ok:
            raise BadDocumentError(reply.reason, reply.hint)


class _Worker:
    """One process."""

    def __init__(self) -> None:
        # The host's import path, as it is: in Azure packages lie in a folder that no variable names.
        start = _START.format(path=list(sys.path))
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-c", start],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._jobs = 0
        self._broken = False

    @property
    def usable(self) -> bool:
        return not self._broken and self._process.poll() is None and self._jobs < _JOBS_PER_WORKER

    def ask(self, job: Job, timeout_s: float) -> WorkerReply:
        """The worker's reply; a reply of ours when it crashed or was ended for lateness."""
        self._jobs += 1
        late = threading.Event()
        timer = threading.Timer(timeout_s, self._kill, [late])
        timer.daemon = True
        timer.start()
        try:
            line = self._send(job.model_dump_json())
        finally:
            timer.cancel()
        if line:
            return WorkerReply.model_validate_json(line)
        # Its pipe ends a moment before the process does: asking whether it lives would be too early.
        self._broken = True
        if late.is_set():
            return WorkerReply(
                ok=False, reason=f"Reading the file took longer than {timeout_s:g} s.", hint="Split the file."
            )
        return WorkerReply(
            ok=False,
            reason="The file crashed the parser: it is damaged, or was made to do harm.",
            hint="Check that it opens in a viewer; export it again.",
        )

    def end(self) -> None:
        """End the process and wait for it."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):  # unwritten input of a dead process
                    pipe.close()

    def _send(self, line: str) -> str:
        """The answering line; empty when the process ended."""
        process = self._process
        if process.stdin is None or process.stdout is None:
            return ""
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            return process.stdout.readline()
        except OSError:  # the process died: the pipe is broken
            return ""

    def _kill(self, late: threading.Event) -> None:
        late.set()
        self._process.kill()
        self._process.wait()


@cache
def parser_pool() -> ParserPool:
    """The process's pool."""
    return ParserPool()


@cache
def text_pool() -> ParserPool:
    """The process's pool for short texts: minutes of scans before them would be nobody's gain."""
    return ParserPool(workers=1)
