"""The worker as a child process of the host: start, calls, restart after a crash, and stop.

As in the real host, no call is delivered twice: a call that is lost with a worker, or arrives before the next
worker is ready, raises `WorkerLostError`. A call that exceeds functionTimeout kills the worker.
"""

import asyncio
import json
import logging
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TypeAlias

import aiohttp
from yarl import URL

from local.host.settings import HostError
from local.host.wire import KEY_HEADER, Call, FunctionDocument, dump_call

ADDRESS = "127.0.0.1"
KEY_SETTING = "LOCAL_WORKER_KEY"
RESTART_SETTING = "LOCAL_WORKER_RESTART_S"
DEFAULT_RESTART_S = 2.0  # delay before a dead worker is replaced; the real host took 2 to 8 s
MAX_DEATHS = 3  # after this many deaths within 30 minutes of each other, the host exits, as the real one does
DEATHS_WITHIN_S = 1800.0
STOP_TIMEOUT_S = 10.0
Body: TypeAlias = bytes | AsyncIterator[bytes] | None
log = logging.getLogger(__name__)


class WorkerLostError(Exception):
    """Error raised if a call has no result because the worker died or isn't ready."""


class WorkerFailedError(HostError):
    """Error raised if the worker failed to start. The worker has already printed the cause."""


class CallFailedError(Exception):
    """Error raised if the function failed, or an argument or result could not be converted."""

    def __init__(self, reason: str, details: str) -> None:
        super().__init__(reason)
        self.details = details


class Worker:
    """The worker process of a host, replaced when it dies. Create it outside the event loop, so that the
    process starts early.
    """

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start the first process. `arguments` are passed to `local.host.worker`, which also receives the
        socket.
        """
        self._arguments = arguments
        self._restart_s = float(environment.get(RESTART_SETTING, DEFAULT_RESTART_S))
        self.key = secrets.token_hex(16)  # secret that the host and its worker share
        self._environment = {**environment, KEY_SETTING: self.key}
        self._timeout_s: float | None = None
        self._is_ready = False
        self._is_stopping = False
        self._was_ended_for_time = False
        self._deaths: list[float] = []
        self._session: aiohttp.ClientSession
        self._changed: asyncio.Event
        self._watching: asyncio.Task[None] | None = None
        self._spawn()

    @property
    def pid(self) -> int:
        return self._process.pid

    async def start(self, timeout_s: float | None) -> list[FunctionDocument]:
        """Wait until the first process is ready, and return the functions of the app.

        Args:
            timeout_s: the functionTimeout of calls, in seconds; None means no limit.

        Raises:
            WorkerFailedError: if the process exits. It has printed the cause.
        """
        self._timeout_s = timeout_s
        self._changed = asyncio.Event()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={KEY_HEADER: self.key},
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        )
        documents = await self._when_ready()
        if documents is None:
            await self._session.close()
            raise WorkerFailedError
        return [
            FunctionDocument(**{**one, "bindings": tuple(one["bindings"])}) for one in json.loads(documents)
        ]

    def watch(self, on_end: Callable[[], None]) -> None:
        """Restart the process whenever it dies from now on. If it dies too often, call `on_end` instead."""
        self._watching = asyncio.create_task(self._watch(on_end), name="worker")

    async def ready(self) -> None:
        """Wait until the worker is ready. Calls that are made earlier fail."""
        while not self._is_ready:
            self._changed.clear()
            await self._changed.wait()

    async def call(self, call: Call) -> str | None:
        """Call a function and return its result as wire text.

        Raises:
            WorkerLostError: if the worker dies or isn't ready.
            CallFailedError: if the function fails, or an argument or result cannot be converted.
        """
        async with self.request("POST", "/", {}, dump_call(call)) as answer:
            document = json.loads(await answer.read())
        if "error" in document:
            raise CallFailedError(document["error"], document["details"])
        result: str | None = document["result"]
        return result

    @asynccontextmanager
    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: Body
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send an HTTP request to the worker and yield the response. `target` is a percent-encoded path with
        a query.

        Raises:
            WorkerLostError: if the worker dies or isn't ready. It may also be raised while the response is
                read.
        """
        if not self._is_ready:
            raise WorkerLostError("Did not find any initialized language workers")
        url, process = URL(f"{self._url}{target}", encoded=True), self._process
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                self._session.request(
                    method, url, headers=headers, data=body, allow_redirects=False
                ) as answer,
            ):
                yield answer
        except TimeoutError:
            log.error("a call exceeded functionTimeout; the worker is restarted")
            self._end_now(process)
            raise WorkerLostError(f"Timeout value of {self._timeout_s} s exceeded by function") from None
        except (aiohttp.ClientError, ConnectionError) as lost:
            raise WorkerLostError(f"The worker process exited ({type(lost).__name__})") from None

    async def stop(self) -> None:
        """Ask the process to exit, and kill it after STOP_TIMEOUT_S."""
        self._is_stopping = True
        if self._watching is not None:
            self._watching.cancel()
        self._process.terminate()
        try:
            await asyncio.to_thread(self._process.wait, STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)
        await self._session.close()

    def _spawn(self) -> None:
        with socket.socket() as listener:
            # The socket listens before the worker starts, so that an early request waits for the worker
            # instead of failing.
            listener.bind((ADDRESS, 0))
            listener.listen(128)
            self._url = f"http://{ADDRESS}:{listener.getsockname()[1]}"
            number = listener.fileno()
            command = [sys.executable, "-m", "local.host.worker", "--socket", str(number), *self._arguments]
            # The worker exits when its stdin closes, which happens when this process dies.
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, pass_fds=[number], env=self._environment
            )

    async def _when_ready(self) -> bytes | None:
        try:
            async with self._session.get(f"{self._url}/") as answer:
                documents = await answer.read()
        except aiohttp.ClientError:
            return None
        self._is_ready = True
        self._changed.set()
        return documents

    async def _watch(self, on_end: Callable[[], None]) -> None:
        while True:
            code = await asyncio.to_thread(self._process.wait)
            self._is_ready = False
            if self._is_stopping:
                return
            log.error("worker %d exited with code %d", self.pid, code)
            if self._died_too_often():
                log.error("the worker died %d times; the host stops", MAX_DEATHS)
                on_end()
                return
            await asyncio.sleep(self._restart_s)
            self._spawn()
            await self._when_ready()

    def _died_too_often(self) -> bool:
        if self._was_ended_for_time:
            self._was_ended_for_time = False
            return False
        now = time.monotonic()
        if self._deaths and now - self._deaths[-1] > DEATHS_WITHIN_S:
            self._deaths.clear()
        self._deaths.append(now)
        return len(self._deaths) >= MAX_DEATHS

    def _end_now(self, process: "subprocess.Popen[bytes]") -> None:
        if process is self._process and process.poll() is None:
            self._was_ended_for_time = True
            process.kill()
