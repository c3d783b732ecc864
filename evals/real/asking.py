"""Asks questions on a separate stack, records the model calls, and stores each run in a file.

Stored runs are not asked again, so an interrupted evaluation continues where it stopped.
"""

import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx

from evals.evaluation.app import own_stack
from evals.real.recorder import ChatCall, Endpoint, JsonObject, Recorder, call_from, recording
from local.run_all.app_settings import ENDPOINT_NAMES
from local.run_all.stack import FUNCTIONS_HOST, LocalStack
from samples.acl import ANNA, SAMPLE_USERS

URL_SETTING, KEY_SETTING, MODEL_SETTING = "EVAL_CHAT_URL", "EVAL_CHAT_KEY", "EVAL_CHAT_MODEL"
POLL_S = 0.5
HTTP_TIMEOUT_S = 120.0
_ENDS = frozenset({"completed", "failed", "cancelled", "waiting"})
_FOUR_HOURS_MS = str(4 * 3_600_000)
# Time limits for an endpoint where a person writes the replies.
PATIENT = {
    "MAX_TOTAL_LATENCY_MS": _FOUR_HOURS_MS,
    "SUBAGENTS_CHILD_TIMEOUT_MS": _FOUR_HOURS_MS,
    "PLAN_TIMEOUT_S": "7200",
    "ANSWER_TIMEOUT_S": "7200",
    "REPAIR_TIMEOUT_S": "7200",
    "JUDGE_TIMEOUT_S": "7200",
    "RETRIEVAL_TIMEOUT_S": "7200",
    "AzureFunctionsJobHost__functionTimeout": "-1",
}


@dataclass(frozen=True)
class Asked:
    """A question to ask, with its user and conversation.

    Attributes:
        user: id of a sample user.
        thread: questions with the same name form one conversation in file order; empty = a separate one.
        documents: file names to which the question is limited; empty = all.
    """

    id: str
    question: str
    user: str = ANNA.user_id
    thread: str = ""
    documents: tuple[str, ...] = ()
    project_id: str | None = None


@dataclass(frozen=True)
class RecordedRun:
    """A stored run with its answer, times and model calls.

    Attributes:
        status: of the run; `waiting` if it asked for a clarification.
        degraded: whether no model wrote the complete answer.
        answer: as returned by the API; empty without one.
        first_s, seconds: from the question to the first text, and to the stored answer.
    """

    id: str
    question: str
    run_id: str
    thread_id: str
    status: str
    degraded: bool
    seconds: float
    first_s: float | None = None
    answer: JsonObject = field(default_factory=dict)
    calls: tuple[ChatCall, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether the run completed and its model wrote the whole answer."""
        return self.status == "completed" and not self.degraded and not self.answer.get("truncated")


def read_run(path: Path) -> RecordedRun:
    """Read a stored run from its file."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    return RecordedRun(**{**stored, "calls": tuple(call_from(call) for call in stored["calls"])})


def read_runs(folder: Path, ids: Sequence[str] = ()) -> list[RecordedRun]:
    """Return the runs stored in a folder: those with the given ids, in that order, or all runs. Ids without a
    stored run are skipped.
    """
    paths = [folder / f"{one}.json" for one in ids] if ids else sorted(folder.glob("*.json"))
    return [read_run(path) for path in paths if path.is_file()]


def hosted_endpoint(environment: Mapping[str, str] = os.environ) -> Endpoint | None:
    """Return the model endpoint configured by EVAL_CHAT_URL, or None if the stack's own model is used."""
    url = environment.get(URL_SETTING)
    if not url:
        return None
    model = environment.get(MODEL_SETTING, "")
    return Endpoint(url.rstrip("/"), environment.get(KEY_SETTING) or "none", model)


@contextmanager
def recorded_stack(changes: Mapping[str, str]) -> Iterator["RecordedStack"]:
    """Yield a running stack with its data in GROUNDWORK_DATA. Its model calls pass through a recorder.

    Args:
        changes: app settings that override the stack's.

    Raises:
        StackError: the stack did not start.
    """
    environment = {name: value for name, value in os.environ.items() if name not in ENDPOINT_NAMES}
    with ExitStack() as opened:
        stack = opened.enter_context(own_stack(environment))
        local = Endpoint(f"http://127.0.0.1:{stack.ports.model}/v1")
        recorder = opened.enter_context(recording(local, hosted_endpoint()))
        stack.kill_host()
        # The app sends trace ids to its models only if a trace receiver is configured.
        traced = {"OPENAI_BASE_URL": f"{recorder.url}/v1", "OTEL_EXPORTER_OTLP_ENDPOINT": recorder.url}
        stack.start_host({**traced, **changes})
        yield RecordedStack(stack, recorder)


@dataclass(frozen=True)
class RecordedStack:
    """A running stack and the recorder of its model calls."""

    stack: LocalStack
    recorder: Recorder

    def ask_all(self, prompts: Sequence[Asked], folder: Path, at_once: int) -> None:
        """Ask the questions without a stored run, in up to `at_once` concurrent conversations, and store
        their runs.
        """
        folder.mkdir(parents=True, exist_ok=True)
        by_thread = sorted(prompts, key=lambda one: one.thread)
        conversations = [[one] for one in prompts if not one.thread]
        conversations += [list(same) for name, same in groupby(by_thread, lambda one: one.thread) if name]
        with ThreadPoolExecutor(at_once) as pool:
            for _ in pool.map(lambda questions: self._converse(questions, folder), conversations):
                pass

    def _converse(self, questions: Sequence[Asked], folder: Path) -> None:
        thread_id = None
        for one in questions:
            path = folder / f"{one.id}.json"
            if path.is_file():
                thread_id = read_run(path).thread_id
                continue
            run = self._ask(one, thread_id)
            thread_id = run["thread_id"]
            fresh = path.with_suffix(".part")
            fresh.write_text(json.dumps(run, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
            fresh.replace(path)
            print(f"{one.id}: {run['status']}, {len(run['calls'])} calls, {run['seconds']:.1f} s", flush=True)

    def _ask(self, one: Asked, thread_id: str | None) -> JsonObject:
        trace_id = secrets.token_hex(16)
        self.recorder.watch(trace_id)
        began = time.monotonic()
        user = next(user for user in SAMPLE_USERS if user.user_id == one.user)
        headers = {"Authorization": f"Bearer {self.stack.token(user)}"}
        with httpx.Client(base_url=self.stack.base_url, headers=headers, timeout=HTTP_TIMEOUT_S) as http:
            body = {
                "question": one.question,
                "thread_id": thread_id,
                "project_id": one.project_id,
                "doc_ids": [_doc_id(http, name) for name in one.documents],
            }
            traced = {"traceparent": f"00-{trace_id}-{secrets.token_hex(8)}-01", "Prefer": "respond-async"}
            view = _json(http.post("/api/chat", json=body, headers=traced))
            run_id, first_s = view["run_id"], self._first_text(http, view["run_id"], began)
            while view["status"] not in _ENDS:
                self.stack.check()
                time.sleep(POLL_S)
                view = _json(http.get(f"/api/runs/{run_id}"))
        return {
            "id": one.id,
            "question": one.question,
            "run_id": run_id,
            "thread_id": view["thread_id"],
            "status": view["status"],
            "degraded": run_id in _degraded_runs(self.stack),
            "seconds": round(time.monotonic() - began, 3),
            "first_s": first_s,
            "answer": view["answer"] or {},
            "calls": self.recorder.take(trace_id),
        }

    def _first_text(self, http: httpx.Client, run_id: str, began: float) -> float | None:
        """Read the events of a run until it ends or asks the user a question. Return the seconds from `began`
        to the first text, or None if there was no text.
        """
        first_s, last, name = None, "0", ""
        while True:
            with http.stream("GET", f"/api/runs/{run_id}/events", headers={"Last-Event-ID": last}) as stream:
                if stream.status_code == httpx.codes.NO_CONTENT:
                    return first_s
                stream.raise_for_status()
                for line in stream.iter_lines():
                    field_name, _, value = line.partition(": ")
                    if field_name == "id":
                        last = value
                    elif field_name == "event":
                        name = value
                        if name == "token" and first_s is None:
                            first_s = round(time.monotonic() - began, 3)
                    if name in ("complete", "error", "ask_user") and not line:
                        return first_s


def _doc_id(http: httpx.Client, filename: str) -> str:
    params = {"filename": filename, "limit": "1"}
    documents = _json(http.get("/api/documents", params=params))["documents"]
    if not documents:
        raise ValueError(f"There is no document {filename} that the user of this question may read.")
    return str(documents[0]["doc_id"])


def _json(answer: httpx.Response) -> JsonObject:
    body: Any = answer.raise_for_status().json()
    return dict(body)


def _degraded_runs(stack: LocalStack) -> set[str]:
    """Return the ids of the runs whose answers were completed without a model, as recorded in the host's
    log.
    """
    log = stack.data / f"{FUNCTIONS_HOST.lower().replace(' ', '-')}.log"
    run_ids = set()
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        if '"answer.degraded"' in line:
            run_ids.add(str(json.loads(line[line.index("{") :]).get("run_id")))
    return run_ids
