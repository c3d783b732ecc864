"""`python -m evals.chaos --rounds 100 --out report.json`: kill servers in random rounds and report
inconsistencies.

A round depends only on the seed and its number, and starts with new documents, so `--only 17` repeats round
17. The report is written after each round. An interrupted measurement continues on a new stack after the last
round in `report.json.rounds`.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from evals.chaos.checker import Checker, Finding, Stores
from evals.chaos.load import Load
from evals.chaos.strikes import KINDS, MODELS, QUIET_KINDS, Strikes
from evals.chaos.world import Paper, World
from local.run_all.app_settings import ENDPOINT_NAMES, LOCAL_CHAT_MODEL
from local.run_all.demo import bring_samples
from local.run_all.stack import LocalStack
from local.run_all.stack_settings import FREE_PORTS, StackSettings

# Time for the stores to become consistent. A failing step is retried for 460 s, and its run may restart a
# minute later.
SETTLE_S = 600.0
# Texts per embedding request. One kill may cause at most this many texts to be embedded again.
BATCH = 64
STRIKES = 3
KEYS = ("lost", "orphaned", "leaked", "stuck", "events_lost", "events_doubled")


@dataclass(frozen=True)
class Result:
    """The result of one round. `reembedded` is the number of texts embedded more than once, beyond one batch
    per strike.
    """

    number: int
    strikes: tuple[str, ...]
    finding: Finding
    reembedded: int = 0

    def document(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "strikes": list(self.strikes),
            **vars(self.finding),
            "reembedded": self.reembedded,
        }


class Chaos:
    """Runner of chaos rounds on one stack."""

    def __init__(self, stack: LocalStack, seed: int) -> None:
        self._stack, self._seed = stack, seed
        self._world = World()
        self._known: set[str] = set()
        self._checker = Checker(
            Stores(
                stack.storage_connection_string,
                stack.search_url,
                stack.secrets.search_key,
                stack.base_url,
                stack.host_headers,
            )
        )

    def round(self, number: int) -> Result:
        """Run one round: prepare documents, apply load and strikes at the same time, wait until the stores
        are consistent, and check them.

        Every third round asks no questions, so that the embedder's requests come from documents only.
        """
        chance = random.Random(f"{self._seed} {number}")
        is_quiet = number % 3 == 2
        self._world.runs.clear()
        load = Load(self._stack, self._world, chance, number)
        papers = [Paper(f"chaos-{number}-old-{at}.md") for at in range(4)]
        load.prepare(papers)
        self._settle(load)
        blocks, texts = self._checker.block_ids(), self._count_embedded()
        model = chance.choice(MODELS).format(seed=chance.getrandbits(16))
        self._restart(model)
        kinds = QUIET_KINDS if is_quiet else tuple(KINDS)
        # The strikes need their own random generator, because the threads of the load draw from theirs in an
        # unpredictable order.
        strikes = Strikes(self._stack, random.Random(chance.getrandbits(64)), STRIKES, kinds)
        striking = threading.Thread(target=strikes.run)
        striking.start()
        try:
            load.run(papers, with_questions=not is_quiet)
        finally:
            striking.join()
        if strikes.failed:
            raise strikes.failed[0]
        self._restart("")
        finding = self._settle(load)
        self._known.update(line for lines in vars(finding).values() for line in lines)
        again = 0
        if is_quiet:
            new = len(self._checker.block_ids() - blocks)
            again = max(0, self._count_embedded() - texts - new - BATCH * len(strikes.done))
        return Result(number, tuple(strikes.done), finding, again)

    def _restart(self, knobs: str) -> None:
        # A graceful restart of the host resets its count of dead workers; after the third one, the host would
        # exit.
        self._stack.stop_host()
        self._stack.start_host({"CHAT_MODEL": f"{LOCAL_CHAT_MODEL}@{knobs}" if knobs else LOCAL_CHAT_MODEL})

    def _settle(self, load: Load) -> Finding:
        """Trigger the work of the five-minute timer repeatedly, until no inconsistency is left or SETTLE_S
        seconds have passed. Return the remaining inconsistencies.
        """
        ends = time.monotonic() + SETTLE_S
        while True:
            finding = self._checker.look(self._world).without(self._known)
            if finding.is_clean or time.monotonic() > ends:
                return finding
            load.reconcile()
            time.sleep(2)

    def _count_embedded(self) -> int:
        address = f"http://127.0.0.1:{self._stack.ports.model}/v1/stats"
        headers = {"Authorization": f"Bearer {self._stack.secrets.model_key}"}
        return int(
            httpx.get(address, headers=headers, timeout=60).raise_for_status().json()["texts_embedded"]
        )


def summary(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the totals over all rounds: findings by kind, texts embedded again, and strikes by kind."""
    counts = {key: sum(len(one[key]) for one in results) for key in KEYS}
    strikes = Counter(kind for one in results for kind in one["strikes"])
    return {
        "rounds": len(results),
        **counts,
        "reembedded": sum(one["reembedded"] for one in results),
        "strikes": dict(sorted(strikes.items())),
    }


def measure(stack: LocalStack, numbers: list[int], seed: int, out: Path) -> dict[str, Any]:
    """Run the rounds that have no stored result yet, and write and return the report over all rounds."""
    rounds_path = out.with_name(f"{out.name}.rounds")
    results = (
        [json.loads(line) for line in rounds_path.read_text().splitlines()] if rounds_path.exists() else []
    )
    chaos = Chaos(stack, seed)
    for number in numbers:
        if any(one["number"] == number for one in results):
            continue
        results.append(chaos.round(number).document())
        with rounds_path.open("a") as lines:
            lines.write(json.dumps(results[-1]) + "\n")
        print(json.dumps(results[-1]), flush=True)
        out.write_text(json.dumps(summary(results), indent=1) + "\n")
    report = summary(results)
    out.write_text(json.dumps(report, indent=1) + "\n")
    rounds_path.unlink(missing_ok=True)
    return report


def main() -> int:
    """Run the command line. Return 0 only if there are no findings."""
    parser = argparse.ArgumentParser(prog="python -m evals.chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--only", type=int, help="Run only the round with this number.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    # On SIGTERM, exit through the `with` block, which stops the stack.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    numbers = list(range(arguments.rounds)) if arguments.only is None else [arguments.only]
    environment = {name: value for name, value in os.environ.items() if name not in ENDPOINT_NAMES}
    with (
        tempfile.TemporaryDirectory(prefix="groundwork-chaos-", ignore_cleanup_errors=True) as folder,
        LocalStack(StackSettings(FREE_PORTS, Path(folder)), environment=environment) as stack,
    ):
        bring_samples(stack, lambda done, whole, current: None)
        report = measure(stack, numbers, arguments.seed, arguments.out)
    print(json.dumps(report))
    return 1 if any(report[key] for key in (*KEYS, "reembedded")) else 0


if __name__ == "__main__":
    sys.exit(main())
