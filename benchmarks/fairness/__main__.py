"""`python -m benchmarks.fairness --out report.json`: measure how much one user's files delay another user.

Ben repeatedly sends a small text and asks a question: first on an idle stack, then while Anna's files are
ingested: a PDF of thousands of pages, slow and long files, and many notes. The result is the ratio of the
medians. Both are measured in the same run, so other load on the machine affects both.
"""

import argparse
import json
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from benchmarks.fairness.worst_files import WorstFile, worst_files
from local.run_all.app_settings import LOCAL_CHAT_MODEL
from local.run_all.demo import bring_samples
from local.run_all.stack import LocalStack
from local.run_all.stack_settings import FREE_PORTS, StackSettings
from samples.acl import ANNA, BEN, SampleUser
from samples.questions import FIRST_QUESTION

# Disables the rate limits, which would normally stop a user with so many files.
LIMITS = {"RATE_LIMIT_PER_MINUTE": "0", "MAX_CONCURRENT_RUNS": "0"}
_TIMEOUT_S = 600.0
_POLL_S = 0.05
# Seconds until the ingestion of Anna's first files has surely started.
_BEGINNING_S = 5.0


def main() -> int:
    """Run the benchmark and write the report. Return 1 if the ingestion of Anna's files more than doubles
    Ben's waiting times.
    """
    arguments = _arguments()
    with (
        TemporaryDirectory(prefix="groundwork-fairness-") as folder,
        LocalStack(StackSettings(FREE_PORTS, Path(folder)), LIMITS) as stack,
    ):
        bring_samples(stack, lambda done, whole, current: None)
        if arguments.pace:
            stack.stop_host()
            stack.start_host({"CHAT_MODEL": f"{LOCAL_CHAT_MODEL}@{arguments.pace}"})
        results = measure(stack, arguments.rounds, worst_files(arguments.pages, arguments.files))
    text = json.dumps(results, indent=1)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n", encoding="utf-8")
    return int(max(results["file"]["ratio"], results["question"]["ratio"]) > 2)


def measure(stack: LocalStack, rounds: int, files: Sequence[WorstFile]) -> dict[str, dict[str, float]]:
    """Measure Ben's waiting times without and with load on one stack, and return seconds and ratios for files
    and questions.
    """
    stop = threading.Event()
    with _client(stack, ANNA) as anna, _client(stack, BEN) as ben, ThreadPoolExecutor(1) as sender:
        _rounds(ben, "warm", 2)
        idle = _rounds(ben, "idle", rounds)
        sending = sender.submit(_send, anna, files, stop)
        time.sleep(_BEGINNING_S)
        loaded = _rounds(ben, "loaded", rounds)
        stop.set()
        uploads = sending.result()
        in_work = _count_unfinished(anna)
    return {
        "file": _compare([one for one, _ in idle], [one for one, _ in loaded]),
        "question": _compare([one for _, one in idle], [one for _, one in loaded]),
        "anna": {"sent": uploads, "in_work_at_the_end": in_work},
    }


def _compare(idle: Sequence[float], loaded: Sequence[float]) -> dict[str, float]:
    before, after = statistics.median(idle), statistics.median(loaded)
    comparison = {"idle_s": before, "loaded_s": after, "ratio": after / before, "slowest_s": max(loaded)}
    return {name: round(value, 2) for name, value in comparison.items()}


def _rounds(ben: httpx.Client, name: str, rounds: int) -> list[tuple[float, float]]:
    """Upload a small file and ask a question as Ben, once per round. Return the seconds until the file was
    ready and until the question was answered.
    """
    return [(_small_file(ben, f"{name}-{number}.md"), _question(ben)) for number in range(rounds)]


def _small_file(ben: httpx.Client, name: str) -> float:
    began = time.perf_counter()
    content = f"# Note {name}\n\nThe spare key of {name} lies in drawer {abs(hash(name)) % 1000}.\n".encode()
    response = ben.post("/documents", files={"file": (name, content)})
    response.raise_for_status()
    while True:
        document = ben.get(f"/documents/{response.json()['doc_id']}").raise_for_status().json()
        if document["status"] == "ready":
            return time.perf_counter() - began
        if document["status"] == "failed" or time.perf_counter() - began > _TIMEOUT_S:
            raise RuntimeError(f"A small file was not ingested: {document['status_reason']}")
        time.sleep(_POLL_S)


def _question(ben: httpx.Client) -> float:
    began = time.perf_counter()
    body = {"question": FIRST_QUESTION.text}
    ben.post("/chat", json=body, headers={"Accept": "application/json"}).raise_for_status()
    return time.perf_counter() - began


def _send(anna: httpx.Client, files: Sequence[WorstFile], stop: threading.Event) -> int:
    for place, file in enumerate(files):
        if stop.is_set():
            return place
        anna.post("/documents", files={"file": (file.name, file.content)}).raise_for_status()
    return len(files)


def _count_unfinished(anna: httpx.Client) -> int:
    """Return how many of Anna's hundred newest files are still being ingested. The load lasted to the end of
    the measurement only if there are any.
    """
    documents = anna.get("/documents", params={"limit": 100}).raise_for_status().json()["documents"]
    return sum(one["status"] not in ("ready", "failed") for one in documents)


def _client(stack: LocalStack, who: SampleUser) -> httpx.Client:
    headers = {"Authorization": f"Bearer {stack.token(who)}"}
    return httpx.Client(base_url=f"{stack.base_url}/api", headers=headers, timeout=_TIMEOUT_S)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fairness", description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to which the report is written.")
    parser.add_argument(
        "--rounds",
        type=int,
        default=10,
        help=("Number of files that Ben uploads, and of questions that he asks, per phase."),
    )
    parser.add_argument("--pages", type=int, default=5000, help="Number of pages in Anna's largest PDF.")
    parser.add_argument("--files", type=int, default=200, help="Number of Anna's other files.")
    parser.add_argument(
        "--pace",
        help="Knobs of the chat model, such as ttft=700,tps=70. By default, it replies without delay.",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
