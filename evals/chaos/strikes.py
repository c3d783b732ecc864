"""The strikes of a chaos round. Each kills or suspends one process of the stack."""

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from local.run_all.stack import AZURITE, MODEL, SEARCH, LocalStack

HANG_S = (1.0, 4.0)
# Minimum and maximum pause between strikes in seconds. An ingestion takes seconds after an upload.
PAUSE_S = (0.1, 2.0)
MODELS = (
    "ttft=200",
    "chaos={seed}",
    "fail=429:40%,retry_after=1",
    "fail=500:40%",
    "garbage=body,only=answer",
)


@dataclass
class Strikes:
    """The strikes of one round, performed one after the other in a thread."""

    stack: LocalStack
    chance: random.Random
    count: int
    kinds: tuple[str, ...]
    done: list[str] = field(default_factory=list)
    failed: list[BaseException] = field(default_factory=list)

    def run(self) -> None:
        """Perform all strikes, with random pauses. An exception is stored in `failed`."""
        kinds = list(self.kinds)
        try:
            for _ in range(self.count):
                time.sleep(self.chance.uniform(*PAUSE_S))
                kind = self.chance.choice(kinds)
                if kind == "worker":
                    # At most one worker is killed per round, because the host exits after the third dead
                    # worker.
                    kinds.remove(kind)
                self.done.append(kind)
                KINDS[kind](self)
        except BaseException as error:  # noqa: BLE001  # of a thread: the round fails with it
            self.failed.append(error)


def _kill_worker(strikes: Strikes) -> None:
    # Ignore a worker that is already dead.
    with contextlib.suppress(OSError):
        strikes.stack.kill_worker()


def _kill_host(strikes: Strikes) -> None:
    strikes.stack.kill_host()
    strikes.stack.start_host()


def _hang(pid: Callable[[LocalStack], int]) -> Callable[[Strikes], None]:
    def strike(strikes: Strikes) -> None:
        with contextlib.suppress(OSError):
            stopped = pid(strikes.stack)
            os.kill(stopped, signal.SIGSTOP)
            try:
                time.sleep(strikes.chance.uniform(*HANG_S))
            finally:
                os.kill(stopped, signal.SIGCONT)

    return strike


KINDS: Mapping[str, Callable[[Strikes], None]] = {
    "worker": _kill_worker,
    "host": _kill_host,
    "search": lambda strikes: strikes.stack.crash(SEARCH),
    "model": lambda strikes: strikes.stack.crash(MODEL),
    "storage": lambda strikes: strikes.stack.crash(AZURITE),
    "worker hangs": _hang(lambda stack: stack.worker_pid),
    "search hangs": _hang(lambda stack: stack.pid_of(SEARCH)),
    "model hangs": _hang(lambda stack: stack.pid_of(MODEL)),
    "storage hangs": _hang(lambda stack: stack.pid_of(AZURITE)),
}
# Strikes that spare the model server. Killing it resets its count of embedded texts, and suspending it makes
# the app repeat batches.
QUIET_KINDS = tuple(kind for kind in KINDS if not kind.startswith("model"))
