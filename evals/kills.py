"""`python -m evals.kills --rounds 20 --out report.json`: measure what users lose when processes are killed.

Asks questions of a slow model, on a stack whose host fails like the real one, and kills the worker, or worker
and host, while work is in progress. Reports whether each question was answered completely and only once, and
the time from the kill to the answer. The host restarts before each round, because it gives up after a third
dead worker.

Finished rounds are saved next to the report, so an interrupted measurement resumes.
"""

import argparse
import contextlib
import http.client
import io
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx
from azure.storage.blob import BlobServiceClient

from evals.budgets.following import Caller, Followed
from evals.budgets.seen import differs, terminal_events
from local.run_all.api_client import StreamEvent
from local.run_all.app_settings import ENDPOINT_NAMES, LOCAL_CHAT_MODEL
from local.run_all.demo import bring_samples
from local.run_all.stack import DOCUMENTS_CONTAINER, LocalStack
from local.run_all.stack_settings import FREE_PORTS, StackSettings
from samples.acl import ANNA

READERS = 5
PACE = "ttft=1200,tps=15,only=answer+sub_agent+WindowSummary+MergedSummary"
# Maximum time to wait for the end of a run, in seconds. With default timeouts, a host resumes interrupted
# work after five minutes.
GIVE_UP_S = 420.0
RUNTIME = "/runtime/webhooks/durabletask/instances"
# Settings of the host as in Azure: the lease below, and the visibility timeouts of host.json.
SETTINGS = {
    # Length of the lease in Azure.
    "LOCAL_HOST_LEASE_S": "30",
    "LOCAL_WORKER_RESTART_S": "2",
    # Makes comparisons of short documents start child orchestrations.
    "WHOLE_DOCUMENTS_TOKENS": "0",
    # Divides each sample document into several windows.
    "SUMMARY_WINDOW_TOKENS": "300",
}
QUESTIONS = (
    "What is the maximum operating pressure of the Heron 400?",
    "What was the revenue in the annual report 2023?",
    "What was the revenue in the annual report 2024?",
    "What does the onboarding guide say about the first week?",
    "Which documents were written by Tobias Renner?",
)
COMPARISONS = (
    "Compare the revenue in the annual report 2023 and the annual report 2024.",
    "What changed between the annual report 2023 and the annual report 2024?",
)
OF_AGENTS = {
    "engineer": QUESTIONS[0],
    "handbook": QUESTIONS[3],
    "librarian": "Which document is about onboarding?",
}
AMBIGUOUS = "What was the total revenue according to the annual report?"
DOCUMENT_COUNT = 5
PART_BYTES = 4096
# Pause between the parts of an upload in seconds. A file of 20 kB takes half a second.
PART_PAUSE_S = 0.1
SUMMARISED = ("heron-400-manual.pdf", "annual-report-2024.pdf", "annual-report-2023.pdf")


@dataclass(frozen=True)
class Outcome:
    """The outcome for a question or document that was in progress when a process was killed.

    Attributes:
        is_whole: whether the answer has no note about missing content.
        doubled: number of events sent twice to a reader, plus end events after the first.
        recovered_s: seconds from the kill to the answer.
    """

    is_complete: bool
    is_whole: bool
    doubled: int
    recovered_s: float | None


Round = Callable[["Scene"], list[Outcome]]


class Scene:
    """A running stack with one reader, and methods that kill its processes."""

    def __init__(self, stack: LocalStack, seed: int | str) -> None:
        self.stack = stack
        self.chance = random.Random(seed)
        self.caller = Caller(lambda: stack.ports.http, stack.token(ANNA))

    def kill_worker(self) -> float:
        """Kill the worker and return the time of the kill."""
        self.stack.kill_worker()
        return time.monotonic()

    def kill_host(self) -> float:
        """Kill the host and its worker, and restart them as a platform would. Return the time of the kill."""
        self.stack.kill_host()
        killed = time.monotonic()
        self.stack.start_host()
        return killed

    def wait(self, least_s: float, most_s: float) -> None:
        time.sleep(self.chance.uniform(least_s, most_s))

    def outcome(self, followed: Followed, killed: float) -> Outcome:
        """Return the outcome of a run that was in progress when a process was killed. `killed` is a value of
        time.monotonic().
        """
        again = self.caller.replay(followed.run_id)
        last = followed.last
        answer: dict[str, Any] = last.data["answer"] if last is not None and last.name == "complete" else {}
        doubled = max(0, terminal_events(again) - 1) + differs(followed.events, again)
        if answer:
            doubled += shown_text(again).strip() != str(answer["text"]).strip()
        return Outcome(
            is_complete=bool(answer),
            is_whole=bool(answer) and not answer.get("truncated") and not answer.get("warnings"),
            doubled=doubled,
            recovered_s=followed.ended - killed if followed.ended is not None else None,
        )


def shown_text(events: Sequence[StreamEvent]) -> str:
    """Return the answer text that a reader sees at the end, without text of restarted or discarded steps."""
    texts: list[tuple[int, str]] = []
    for event in events:
        step = int(event.data.get("step") or 0)
        if event.name == "status" and event.data.get("state") in ("restarted", "discarded"):
            texts = [one for one in texts if one[0] != step]
        elif event.name == "token":
            texts.append((step, str(event.data["text"])))
    return "".join(text for _, text in texts)


def ask_during(
    scene: Scene,
    questions: Sequence[str],
    strike: Callable[[], float],
    state: str = "accepted",
    agents: Sequence[str | None] = (),
) -> list[Outcome]:
    """Ask all questions concurrently, and call `strike` once the runs have reached `state`. Return the
    outcomes of the runs that the strike interrupted.

    Args:
        agents: the agent for each question; empty = none.
    """
    waiting = threading.Semaphore(0)

    def watch(event: StreamEvent) -> None:
        if event.data.get("state") == state:
            waiting.release()

    with ThreadPoolExecutor(len(questions)) as pool:
        pairs = zip(questions, agents or [None] * len(questions), strict=True)
        futures = [pool.submit(scene.caller.ask, one, GIVE_UP_S, watch, agent) for one, agent in pairs]
        for _ in questions:
            waiting.acquire(timeout=60)
        killed = strike()
        runs = [one.result() for one in futures]
    return [scene.outcome(run, killed) for run in runs if run.ended is None or run.ended > killed]


def kill_worker(scene: Scene) -> list[Outcome]:
    """Kill the worker while five readers follow their runs."""

    def strike() -> float:
        scene.wait(0.5, 5)
        return scene.kill_worker()

    return ask_during(scene, QUESTIONS, strike)


def kill_host(scene: Scene) -> list[Outcome]:
    """Kill host and worker while five readers follow their runs."""

    def strike() -> float:
        scene.wait(0.5, 5)
        return scene.kill_host()

    return ask_during(scene, QUESTIONS, strike)


def kill_twice(scene: Scene) -> list[Outcome]:
    """Kill the worker, and then its replacement, while five readers follow their runs."""

    def strike() -> float:
        scene.wait(1, 4)
        scene.kill_worker()
        scene.wait(8, 12)
        return scene.kill_worker()

    return ask_during(scene, QUESTIONS, strike)


def kill_children(scene: Scene) -> list[Outcome]:
    """Kill the worker while sub-agents work on the comparisons of two readers."""

    def strike() -> float:
        scene.wait(0.5, 4)
        return scene.kill_worker()

    return ask_during(scene, COMPARISONS, strike, "delegation")


def kill_agents(scene: Scene) -> list[Outcome]:
    """Kill the worker, or host and worker, while each sample agent answers a question."""

    def strike() -> float:
        scene.wait(0.5, 4)
        return scene.chance.choice((scene.kill_worker, scene.kill_host))()

    return ask_during(scene, tuple(OF_AGENTS.values()), strike, agents=tuple(OF_AGENTS))


def kill_nothing(scene: Scene) -> list[Outcome]:
    """Ask the same questions without killing anything, to measure completeness and speed without
    interruptions.
    """
    return ask_during(scene, (*QUESTIONS[:3], *COMPARISONS), time.monotonic)


def kill_unread(scene: Scene) -> list[Outcome]:
    """Kill the worker during five questions whose events nobody reads. No request is sent to the app until
    the runs have ended.
    """
    run_ids = [begin(scene, one) for one in QUESTIONS]
    scene.wait(1, 6)
    struck = [one for one in run_ids if state_of(scene, one) != "Completed"]
    killed = scene.kill_worker()
    with ThreadPoolExecutor(max(1, len(struck))) as pool:
        ends = dict(zip(struck, pool.map(lambda one: wait_until_ended(scene, one), struck), strict=True))
    results = []
    for run_id, ended in ends.items():
        run = Followed(run_id=run_id, began=killed, events=scene.caller.replay(run_id), ended=ended)
        results.append(scene.outcome(run, killed))
    return results


def kill_asked(scene: Scene) -> list[Outcome]:
    """Kill the worker while a run waits for the answer to a clarification, then send the answer."""
    run_id = begin(scene, AMBIGUOUS)
    until(lambda: status_of(scene, run_id) == "waiting", 60)
    killed = scene.kill_worker()
    until(lambda: try_call(scene, "POST", f"/api/runs/{run_id}/answer", {"choice": 1})[0] == 202, 60)
    run = Followed(run_id=run_id, began=time.monotonic())
    until(lambda: status_of(scene, run_id) not in ("running", "waiting", ""), GIVE_UP_S)
    run.ended, run.events = time.monotonic(), scene.caller.replay(run_id)
    return [scene.outcome(run, killed)]


def kill_ingestion(scene: Scene) -> list[Outcome]:
    """Kill the worker while it ingests documents. Each document counts as a question in the report."""
    mark = f"kill-{scene.chance.getrandbits(32):08x}"
    names = {f"{mark}-{number}.md" for number in range(DOCUMENT_COUNT)}
    with BlobServiceClient.from_connection_string(scene.stack.storage_connection_string) as service:
        container = service.get_container_client(DOCUMENTS_CONTAINER)
        for name in names:
            container.upload_blob(name, long_document(name), metadata={"acl": ANNA.user_id})
    scene.wait(0.5, 2.5)
    killed = scene.kill_worker()
    until(lambda: set(ready_documents(scene, mark)) == names, GIVE_UP_S)
    recovered_s = time.monotonic() - killed
    documents = ready_documents(scene, mark)
    return [
        Outcome(name in documents, name in documents, max(0, documents.count(name) - 1), recovered_s)
        for name in names
    ]


def kill_summary(scene: Scene) -> list[Outcome]:
    """Kill the worker, or host and worker, while the child orchestrations of a summary read their
    documents.
    """
    _, page = scene.caller.call("GET", "/api/documents?limit=100")
    ids = {one["filename"]: one["doc_id"] for one in page["documents"]}
    order = {"doc_ids": [ids[name] for name in SUMMARISED]}
    status, view = scene.caller.call("POST", "/api/summaries", order)
    path = str(view["status_url"])
    until(lambda: windows_read(try_call(scene, "GET", path)[1]) > 0, 60)
    scene.wait(0, 4)
    if summary_status(scene, path) != "running":
        # The summary ended before the kill.
        return []
    killed = scene.chance.choice((scene.kill_worker, scene.kill_host))()
    until(lambda: summary_status(scene, path) not in ("running", ""), GIVE_UP_S)
    recovered_s = time.monotonic() - killed
    status, view = try_call(scene, "GET", path)
    is_complete = status == 200 and view["status"] == "completed"
    result = view["result"] if is_complete else {}
    is_whole = is_complete and not result["warnings"] and len(result["documents"]) == len(SUMMARISED)
    doubled = sum(max(0, one["windows_done"] - one["windows"]) for one in view["children"]) if view else 0
    return [Outcome(is_complete, is_whole, doubled, recovered_s)]


class SlowFile(io.BytesIO):
    """A file whose content is sent slowly, so that a kill interrupts the upload."""

    def read(self, _: int | None = -1) -> bytes:
        """Return the next part after a pause."""
        time.sleep(PART_PAUSE_S)
        return super().read(PART_BYTES)


def kill_uploads(scene: Scene) -> list[Outcome]:
    """Kill the worker, or host and worker, while files are uploaded to a conversation. Interrupted uploads
    are repeated with their idempotency keys. Each file counts as a question in the report.
    """
    _, thread = scene.caller.call("POST", "/api/threads", {})
    path = f"/api/threads/{thread['thread_id']}/files"
    names = [f"upload-{number}.md" for number in range(DOCUMENT_COUNT)]
    with ThreadPoolExecutor(len(names)) as pool:
        uploads = [pool.submit(upload, scene, path, name) for name in names]
        scene.wait(0, 1.5)
        killed = scene.chance.choice((scene.kill_worker, scene.kill_host))()
        accepted = dict(zip(names, [one.result() for one in uploads], strict=True))
    until(lambda: {one["filename"] for one in files_of(scene, path, "ready")} == set(names), GIVE_UP_S)
    recovered_s = time.monotonic() - killed
    ready = files_of(scene, path, "ready")
    _, listed = scene.caller.call("GET", "/api/documents?limit=100")
    leaked = [one["filename"] for one in listed["documents"]]
    outcomes = []
    for name in names:
        sizes = [one["size_bytes"] for one in ready if one["filename"] == name]
        is_complete = accepted[name] and bool(sizes)
        is_whole = is_complete and sizes == [len(long_document(name))]
        outcomes.append(
            Outcome(is_complete, is_whole, max(0, len(sizes) - 1) + leaked.count(name), recovered_s)
        )
    return outcomes


def upload(scene: Scene, path: str, name: str) -> bool:
    """Upload a file, retrying until the app accepts it or the time limit is reached. Return whether it was
    accepted.
    """
    key = f"{path}-{name}".replace("/", "-")
    headers = {"Authorization": f"Bearer {scene.stack.token(ANNA)}", "Idempotency-Key": key}

    def is_accepted() -> bool:
        files = {"file": (name, SlowFile(long_document(name).encode()), "text/markdown")}
        try:
            answer = httpx.post(scene.stack.base_url + path, headers=headers, files=files, timeout=60)
        except httpx.HTTPError:
            return False
        return answer.status_code == 202

    return until(is_accepted, GIVE_UP_S)


def files_of(scene: Scene, path: str, status: str) -> list[dict[str, Any]]:
    """Return the files of a conversation that have the given status."""
    code, page = try_call(scene, "GET", path)
    return [one for one in page["files"] if one["status"] == status] if code == 200 else []


ROUNDS: Mapping[str, Round] = {
    "nothing": kill_nothing,
    "worker": kill_worker,
    "host": kill_host,
    "no_reader": kill_unread,
    "twice": kill_twice,
    "person_asked": kill_asked,
    "children": kill_children,
    "agents": kill_agents,
    "ingestion": kill_ingestion,
    "summary": kill_summary,
    "uploads": kill_uploads,
}


def begin(scene: Scene, question: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", scene.stack.ports.http, timeout=60)
    headers = {
        "Authorization": f"Bearer {scene.stack.token(ANNA)}",
        "Content-Type": "application/json",
        "Prefer": "respond-async",
    }
    with contextlib.closing(connection):
        connection.request("POST", "/api/chat", json.dumps({"question": question}), headers)
        answer = connection.getresponse()
        return str(json.load(answer)["run_id"])


def try_call(scene: Scene, method: str, path: str, body: object = None) -> tuple[int, Any]:
    """Send a request and return the status and JSON of the response, or (0, None) if the request fails."""
    try:
        return scene.caller.call(method, path, body)
    except (OSError, http.client.HTTPException, ValueError):
        return 0, None


def status_of(scene: Scene, run_id: str) -> str:
    status, view = try_call(scene, "GET", f"/api/runs/{run_id}")
    return str(view["status"]) if status == 200 else ""


def state_of(scene: Scene, run_id: str) -> str:
    """Return the status of a run's orchestration, read from the host so that the app receives no request."""
    address = f"{scene.stack.base_url}{RUNTIME}/{run_id}"
    try:
        answer = httpx.get(address, headers=scene.stack.host_headers, timeout=60)
    except httpx.HTTPError:
        return ""
    return str(answer.json()["runtimeStatus"]) if answer.is_success else ""


def wait_until_ended(scene: Scene, run_id: str) -> float | None:
    """Wait until an orchestration completes. Return the time of completion, or None if it took too long."""
    return time.monotonic() if until(lambda: state_of(scene, run_id) == "Completed", GIVE_UP_S / 2) else None


def windows_read(view: Any) -> int:
    """Return the number of document windows that a summary has read so far."""
    return sum(one["windows_done"] for one in view["children"]) if view else 0


def summary_status(scene: Scene, path: str) -> str:
    status, view = try_call(scene, "GET", path)
    return str(view["status"]) if status == 200 else ""


def ready_documents(scene: Scene, mark: str) -> list[str]:
    status, page = try_call(scene, "GET", "/api/documents?limit=100")
    documents = page["documents"] if status == 200 else []
    return [one["filename"] for one in documents if mark in one["filename"] and one["status"] == "ready"]


def long_document(name: str) -> str:
    paragraph = "The pump of the Heron 400 is serviced every six months by a trained person. " * 6
    return f"# {name}\n\n" + "\n\n".join(f"## Part {part}\n\n{part}. {paragraph}" for part in range(40))


def until(condition: Callable[[], bool], patience_s: float) -> bool:
    """Wait up to `patience_s` seconds for a condition, and return whether it became true."""
    deadline = time.monotonic() + patience_s
    while not (is_met := condition()) and time.monotonic() < deadline:
        time.sleep(0.25)
    return is_met


def summary(outcomes: Sequence[Outcome], rounds: int) -> dict[str, Any]:
    """Return the totals and recovery times (in seconds) for one kind of kill."""
    times = sorted(one.recovered_s for one in outcomes if one.recovered_s is not None and one.is_complete)
    cuts = quantiles(times, n=20, method="inclusive") if len(times) > 1 else times * 19
    complete = sum(one.is_complete for one in outcomes)
    return {
        "rounds": rounds,
        "questions": len(outcomes),
        "complete": complete,
        "whole": sum(one.is_whole for one in outcomes),
        "lost": len(outcomes) - complete,
        "doubled_events": sum(one.doubled for one in outcomes),
        "recovered_p50_s": round(cuts[9], 1) if cuts else None,
        "recovered_p95_s": round(cuts[18], 1) if cuts else None,
    }


def measure(
    stack: LocalStack, kinds: Sequence[str], rounds: int, seed: int, out: Path, *, pace: str = PACE
) -> dict[str, Any]:
    """Run `rounds` rounds of each kind and return the report. Rounds with a stored result aren't repeated."""
    previous = rounds_beside(out)
    done: dict[str, list[list[Outcome]]] = {kind: [] for kind in kinds}
    if previous.exists():
        for kind, outcomes in map(json.loads, previous.read_text().splitlines()):
            done.setdefault(kind, []).append([Outcome(**one) for one in outcomes])
    report: dict[str, Any] = {}
    for kind in kinds:
        while len(done[kind]) < rounds:
            stack.stop_host()
            stack.start_host({"CHAT_MODEL": f"{LOCAL_CHAT_MODEL}@{pace}"})
            outcomes = ROUNDS[kind](Scene(stack, f"{seed} {kind} {len(done[kind])}"))
            done[kind].append(outcomes)
            with previous.open("a") as lines:
                lines.write(json.dumps([kind, [asdict(one) for one in outcomes]]) + "\n")
            report[kind] = summary([one for each in done[kind] for one in each], len(done[kind]))
            out.write_text(json.dumps(report, indent=1) + "\n")
        report[kind] = summary([one for each in done[kind] for one in each], len(done[kind]))
        print(kind, json.dumps(report[kind]), flush=True)
    out.write_text(json.dumps(report, indent=1) + "\n")
    previous.unlink(missing_ok=True)
    return report


def rounds_beside(out: Path) -> Path:
    """Return the path of a file next to the report. It stores finished rounds until the report is
    complete.
    """
    return out.with_name(f"{out.name}.rounds")


def main() -> int:
    """Run the command. Return 1 if any work was lost or any event was sent twice."""
    arguments = _arguments()
    # On SIGTERM, exit through the `with` block, which stops the stack.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    environment = {name: value for name, value in os.environ.items() if name not in ENDPOINT_NAMES}
    with (
        tempfile.TemporaryDirectory(prefix="groundwork-kills-", ignore_cleanup_errors=True) as folder,
        LocalStack(StackSettings(FREE_PORTS, Path(folder)), environment={**SETTINGS, **environment}) as stack,
    ):
        bring_samples(stack, lambda done, whole, current: None)
        report = measure(
            stack, arguments.kinds, arguments.rounds, arguments.seed, arguments.out, pace=arguments.pace
        )
    return 1 if any(one["lost"] or one["doubled_events"] for one in report.values()) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evals.kills", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--kinds", nargs="+", choices=ROUNDS, default=list(ROUNDS))
    parser.add_argument(
        "--pace",
        default=PACE,
        help=("Knobs of the local model, written as in its name, for example ttft=700,tps=70."),
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
