"""What a kill costs: `python -m evals.kills --rounds 20 --out report.json`.

Asks at a slow model's pace, on a stack whose host fails as the real one does, and kills the worker, or the
host with it, while there is work. Reports for each question whether it was answered, completely and once, and
how long after the kill. The host restarts before each round: its third dead worker would end it.

Each round is saved next to the report until the end, so an interrupted measurement resumes.
"""

import argparse
import contextlib
import http.client
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
PACE = "ttft=1200,tps=15,only=answer+sub_agent"
GIVE_UP_S = 420.0  # a host with default timeouts gives its work back after five minutes
RUNTIME = "/runtime/webhooks/durabletask/instances"
# As in Azure; the visibility timeouts are those of host.json.
SETTINGS = {
    "LOCAL_HOST_LEASE_S": "30",  # as in Azure
    "LOCAL_WORKER_RESTART_S": "2",
    "WHOLE_DOCUMENTS_TOKENS": "0",  # else a comparison of short documents starts no children
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


@dataclass(frozen=True)
class Outcome:
    """One question, or one document, that was in work when a process was killed.

    Attributes:
        is_whole: an answer without a word about what is missing.
        doubled: events that a reader was sent twice, or ends after the first.
        recovered_s: from the kill to the answer.
    """

    is_complete: bool
    is_whole: bool
    doubled: int
    recovered_s: float | None


Round = Callable[["Scene"], list[Outcome]]


class Scene:
    """One stack, its reader, and the kills."""

    def __init__(self, stack: LocalStack, seed: int | str) -> None:
        self.stack = stack
        self.chance = random.Random(seed)
        self.caller = Caller(lambda: stack.ports.http, stack.token(ANNA))

    def kill_worker(self) -> float:
        """Kill it; when."""
        self.stack.kill_worker()
        return time.monotonic()

    def kill_host(self) -> float:
        """Kill host and worker, and start them again as a platform does; when they died."""
        self.stack.kill_host()
        killed = time.monotonic()
        self.stack.start_host()
        return killed

    def wait(self, least_s: float, most_s: float) -> None:
        time.sleep(self.chance.uniform(least_s, most_s))

    def outcome(self, followed: Followed, killed: float) -> Outcome:
        """What became of a run that was killed at that moment."""
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
    """The answer as a reader puts it together: text of a restarted or discarded step is dropped."""
    texts: list[tuple[int, str]] = []
    for event in events:
        step = int(event.data.get("step") or 0)
        if event.name == "status" and event.data.get("state") in ("restarted", "discarded"):
            texts = [one for one in texts if one[0] != step]
        elif event.name == "token":
            texts.append((step, str(event.data["text"])))
    return "".join(text for _, text in texts)


def asked_while(
    scene: Scene,
    questions: Sequence[str],
    strike: Callable[[], float],
    state: str = "accepted",
    agents: Sequence[str | None] = (),
) -> list[Outcome]:
    """Ask all at once, strike when each has reached `state`; returns those that were running then.

    Args:
        agents: for each question the one that is asked; empty = none is.
    """
    waiting = threading.Semaphore(0)

    def watch(event: StreamEvent) -> None:
        if event.data.get("state") == state:
            waiting.release()

    with ThreadPoolExecutor(len(questions)) as pool:
        pairs = zip(questions, agents or [None] * len(questions), strict=True)
        asked = [pool.submit(scene.caller.ask, one, GIVE_UP_S, watch, agent) for one, agent in pairs]
        for _ in questions:
            waiting.acquire(timeout=60)
        killed = strike()
        runs = [one.result() for one in asked]
    return [scene.outcome(run, killed) for run in runs if run.ended is None or run.ended > killed]


def kill_worker(scene: Scene) -> list[Outcome]:
    """Five readers; the worker dies."""

    def strike() -> float:
        scene.wait(0.5, 5)
        return scene.kill_worker()

    return asked_while(scene, QUESTIONS, strike)


def kill_host(scene: Scene) -> list[Outcome]:
    """Five readers; host and worker die."""

    def strike() -> float:
        scene.wait(0.5, 5)
        return scene.kill_host()

    return asked_while(scene, QUESTIONS, strike)


def kill_twice(scene: Scene) -> list[Outcome]:
    """Five readers; the worker dies, and the next one, too."""

    def strike() -> float:
        scene.wait(1, 4)
        scene.kill_worker()
        scene.wait(8, 12)
        return scene.kill_worker()

    return asked_while(scene, QUESTIONS, strike)


def kill_children(scene: Scene) -> list[Outcome]:
    """Two readers of comparisons; the worker dies while sub-agents are at work."""

    def strike() -> float:
        scene.wait(0.5, 4)
        return scene.kill_worker()

    return asked_while(scene, COMPARISONS, strike, "delegation")


def kill_agents(scene: Scene) -> list[Outcome]:
    """A question to each of the sample agents; the worker dies, or the host with it."""

    def strike() -> float:
        scene.wait(0.5, 4)
        return scene.chance.choice((scene.kill_worker, scene.kill_host))()

    return asked_while(scene, tuple(OF_AGENTS.values()), strike, agents=tuple(OF_AGENTS))


def kill_nothing(scene: Scene) -> list[Outcome]:
    """Readers of all of them, and no kill: how many answers are whole at this pace, and how soon."""
    return asked_while(scene, (*QUESTIONS[:3], *COMPARISONS), time.monotonic)


def kill_unread(scene: Scene) -> list[Outcome]:
    """Five questions whose readers do not come back; nothing asks the app before they have ended."""
    run_ids = [begin(scene, one) for one in QUESTIONS]
    scene.wait(1, 6)
    struck = [one for one in run_ids if state_of(scene, one) != "Completed"]
    killed = scene.kill_worker()
    with ThreadPoolExecutor(max(1, len(struck))) as pool:
        ends = dict(zip(struck, pool.map(lambda one: ended_by_itself(scene, one), struck), strict=True))
    found = []
    for run_id, ended in ends.items():
        run = Followed(run_id=run_id, began=killed, events=scene.caller.replay(run_id), ended=ended)
        found.append(scene.outcome(run, killed))
    return found


def kill_asked(scene: Scene) -> list[Outcome]:
    """A run asks its reader something; the worker dies; the reader answers."""
    run_id = begin(scene, AMBIGUOUS)
    until(lambda: status_of(scene, run_id) == "waiting", 60)
    killed = scene.kill_worker()
    until(lambda: called(scene, "POST", f"/api/runs/{run_id}/answer", {"choice": 1})[0] == 202, 60)
    run = Followed(run_id=run_id, began=time.monotonic())
    until(lambda: status_of(scene, run_id) not in ("running", "waiting", ""), GIVE_UP_S)
    run.ended, run.events = time.monotonic(), scene.caller.replay(run_id)
    return [scene.outcome(run, killed)]


def kill_ingestion(scene: Scene) -> list[Outcome]:
    """New documents; the worker dies while they are read. A question here is a document."""
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
    found = ready_documents(scene, mark)
    return [
        Outcome(name in found, name in found, max(0, found.count(name) - 1), recovered_s) for name in names
    ]


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


def called(scene: Scene, method: str, path: str, body: object = None) -> tuple[int, Any]:
    """Status and JSON; 0 where there was no answer, or none with a body."""
    try:
        return scene.caller.call(method, path, body)
    except (OSError, http.client.HTTPException, ValueError):
        return 0, None


def status_of(scene: Scene, run_id: str) -> str:
    status, view = called(scene, "GET", f"/api/runs/{run_id}")
    return str(view["status"]) if status == 200 else ""


def state_of(scene: Scene, run_id: str) -> str:
    """Of a run's orchestration, asked of the host: the app hears nothing of it."""
    address = f"{scene.stack.base_url}{RUNTIME}/{run_id}"
    try:
        answer = httpx.get(address, headers=scene.stack.host_headers, timeout=60)
    except httpx.HTTPError:
        return ""
    return str(answer.json()["runtimeStatus"]) if answer.is_success else ""


def ended_by_itself(scene: Scene, run_id: str) -> float | None:
    """When an orchestration was seen completed; None = it was not in time."""
    return time.monotonic() if until(lambda: state_of(scene, run_id) == "Completed", GIVE_UP_S / 2) else None


def ready_documents(scene: Scene, mark: str) -> list[str]:
    status, page = called(scene, "GET", "/api/documents?limit=100")
    documents = page["documents"] if status == 200 else []
    return [one["filename"] for one in documents if mark in one["filename"] and one["status"] == "ready"]


def long_document(name: str) -> str:
    paragraph = "The pump of the Heron 400 is serviced every six months by a trained person. " * 6
    return f"# {name}\n\n" + "\n\n".join(f"## Part {part}\n\n{part}. {paragraph}" for part in range(40))


def until(condition: Callable[[], bool], patience_s: float) -> bool:
    """Whether it came to be."""
    deadline = time.monotonic() + patience_s
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(0.25)
    return met


def summary(outcomes: Sequence[Outcome], rounds: int) -> dict[str, Any]:
    """The figures of one kind; times in seconds."""
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
    """Every kind, so many rounds each; those that were measured before are not measured again."""
    known = rounds_beside(out)
    done: dict[str, list[list[Outcome]]] = {kind: [] for kind in kinds}
    if known.exists():
        for kind, outcomes in map(json.loads, known.read_text().splitlines()):
            done.setdefault(kind, []).append([Outcome(**one) for one in outcomes])
    report: dict[str, Any] = {}
    for kind in kinds:
        while len(done[kind]) < rounds:
            stack.stop_host()
            stack.start_host({"CHAT_MODEL": f"{LOCAL_CHAT_MODEL}@{pace}"})
            outcomes = ROUNDS[kind](Scene(stack, f"{seed} {kind} {len(done[kind])}"))
            done[kind].append(outcomes)
            with known.open("a") as lines:
                lines.write(json.dumps([kind, [asdict(one) for one in outcomes]]) + "\n")
            report[kind] = summary([one for each in done[kind] for one in each], len(done[kind]))
            out.write_text(json.dumps(report, indent=1) + "\n")
        report[kind] = summary([one for each in done[kind] for one in each], len(done[kind]))
        print(kind, json.dumps(report[kind]), flush=True)
    out.write_text(json.dumps(report, indent=1) + "\n")
    known.unlink(missing_ok=True)
    return report


def rounds_beside(out: Path) -> Path:
    """Where the outcomes of each round are kept until the report is whole."""
    return out.with_name(f"{out.name}.rounds")


def main() -> int:
    """Measure and write. Exit code 1 when something was lost, or came twice."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the stack is ended in order
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
    parser.add_argument("--pace", default=PACE, help="of the stand-in, as in the name of its model")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
