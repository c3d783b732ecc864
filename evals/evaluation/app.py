"""HTTP client of the app under test, which is a running deployment or a local stack."""

import json
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from evals.real.recorder import ChatCall, Endpoint, Recorder, call_from, recording
from local.run_all.stack import LocalStack
from local.run_all.stack_settings import DATA_SETTING, FREE_PORTS, PORT_SETTINGS, read_stack_settings
from samples.acl import ANNA

URL_SETTING = "GROUNDWORK_URL"
TOKEN_SETTING = "GROUNDWORK_TOKEN"
DEFAULT_DATA = Path(".local/eval")
# Timeout of a call, which must exceed the app's time limit for a run.
CALL_TIMEOUT_S = 300.0
TRIES = 4
# Pause before the first retry, in seconds. It doubles with each further retry.
PAUSE_S = 1.0
_RETRIED = frozenset({429, 502, 503, 504})
_HAS_ENDED = 409
JsonObject = dict[str, Any]


@dataclass
class Watch:
    """The headers that mark the requests for one question, and the model calls recorded for them."""

    headers: Mapping[str, str] = field(default_factory=dict)
    calls: tuple[ChatCall, ...] = ()


class App:
    """A thread-safe client of the app for one user.

    Args:
        model: names of the models, for the report.
        check: raises an error if the app is known to have died.
        recorder: records the app's model calls, if given.
    """

    def __init__(
        self,
        http: httpx.Client,
        model: str = "unknown",
        check: Callable[[], None] = lambda: None,
        recorder: Recorder | None = None,
    ) -> None:
        self._http = http
        self.model = model
        self._check = check
        self._recorder = recorder

    def upload(self, filename: str, content: bytes, project_id: str) -> JsonObject:
        """Upload a file to a project, readable by all users, and return the new document."""
        fields = {"folder": project_id, "project_id": project_id, "acl": "*"}
        return self._call("POST", "/api/documents", data=fields, files={"file": (filename, content)})

    def find(self, filename: str, project_id: str) -> JsonObject | None:
        """Return the fully ingested document with this name in a project, or None."""
        params = {"filename": filename, "project_id": project_id, "limit": "1"}
        documents: list[JsonObject] = self._call("GET", "/api/documents", params=params)["documents"]
        return documents[0] if documents else None

    def content(self, doc_id: str) -> bytes:
        """Return the bytes of a document's original file."""
        return self._send_with_retries("GET", f"/api/documents/{doc_id}/content").content

    def document(self, doc_id: str) -> JsonObject:
        return self._call("GET", f"/api/documents/{doc_id}")

    def search(self, query: str, top_k: int, filters: Mapping[str, str]) -> list[JsonObject]:
        """Return at most `top_k` hits of a search, best first."""
        body = {"query": query, "top_k": top_k, "filters": dict(filters)}
        hits: list[JsonObject] = self._call("POST", "/api/search", json=body)["results"]
        return hits

    @contextmanager
    def watching(self) -> Iterator["Watch"]:
        """Record the model calls of all requests that carry the headers of the yielded watch. When the block
        exits, `calls` of the watch is set.
        """
        if self._recorder is None:
            yield Watch()
            return
        trace_id = secrets.token_hex(16)
        self._recorder.watch(trace_id)
        watch = Watch({"traceparent": f"00-{trace_id}-{secrets.token_hex(8)}-01"})
        try:
            yield watch
        finally:
            watch.calls = tuple(call_from(call) for call in self._recorder.take(trace_id))

    def ask(self, question: str, project_id: str, headers: Mapping[str, str] | None = None) -> JsonObject:
        """Ask a question and return the run with its answer. Failures are not retried, because a retry would
        hide them.
        """
        body = {"question": question, "project_id": project_id, "stream": False}
        answer = self._http.post("/api/chat", json=body, headers=dict(headers or {})).raise_for_status()
        run: JsonObject = answer.json()
        return run

    def begin(self, question: str, project_id: str, thread_id: str | None = None) -> JsonObject:
        """Start a run and return it without waiting for its end. Failures are not retried, as in `ask`."""
        body = {"question": question, "project_id": project_id, "thread_id": thread_id}
        response = self._http.post("/api/chat", json=body, headers={"Prefer": "respond-async"})
        run: JsonObject = response.raise_for_status().json()
        return run

    def events(self, run_id: str) -> Iterator[tuple[str, JsonObject]]:
        """Yield (name, data) of each event of a run, from the first until the stream ends."""
        with self._http.stream("GET", f"/api/runs/{run_id}/events") as stream:
            stream.raise_for_status()
            name = ""
            for line in stream.iter_lines():
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    yield name, json.loads(value)

    def cancel(self, run_id: str) -> None:
        """Cancel a run. If it has already ended, nothing happens."""
        answer = self._http.post(f"/api/runs/{run_id}/cancel")
        if answer.status_code != _HAS_ENDED:
            answer.raise_for_status()

    def _call(self, method: str, path: str, **arguments: Any) -> JsonObject:
        """Send a request and return the JSON of the response."""
        result: JsonObject = self._send_with_retries(method, path, **arguments).json()
        return result

    def _send_with_retries(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        """Send a request and return the response. Temporary failures are retried.

        Raises:
            httpx.HTTPError: it was refused, or failed TRIES times.
        """
        for attempt in range(TRIES - 1):
            self._check()
            try:
                answer = self._http.request(method, path, **arguments)
            except httpx.TransportError:
                time.sleep(PAUSE_S * 2**attempt)
                continue
            if answer.status_code not in _RETRIED:
                return answer.raise_for_status()
            time.sleep(PAUSE_S * 2**attempt)
        return self._http.request(method, path, **arguments).raise_for_status()


@contextmanager
def connected_app(environment: Mapping[str, str] = os.environ, *, prompts: bool = False) -> Iterator[App]:
    """Yield a client of the app at GROUNDWORK_URL. Without this variable, start a local stack with its data
    in GROUNDWORK_DATA.

    Args:
        prompts: whether to record the model calls of a local stack.

    Raises:
        ValueError: GROUNDWORK_URL is set without GROUNDWORK_TOKEN, or prompts can't be recorded there.
        StackError: the stack didn't start.
    """
    url = environment.get(URL_SETTING)
    if url and prompts:
        raise ValueError(f"Prompts can only be recorded on a separate local stack: unset {URL_SETTING}.")
    if url:
        token = environment.get(TOKEN_SETTING)
        if not token:
            raise ValueError(f"{URL_SETTING} is set, but not {TOKEN_SETTING}: set it to the token of a user.")
        with _client(url, token) as http:
            yield App(http, environment.get("CHAT_MODEL") or f"unknown, at {url}")
        return
    with ExitStack() as opened:
        stack = opened.enter_context(own_stack(environment))
        recorder = opened.enter_context(_recorder_before(stack)) if prompts else None
        yield opened.enter_context(app_of(stack, recorder))


@contextmanager
def _recorder_before(stack: LocalStack) -> Iterator[Recorder]:
    """Redirect the stack's model calls to a recorder, and yield the recorder."""
    base_url = stack.app_settings.get("OPENAI_BASE_URL")
    if base_url is None:
        raise ValueError("Prompts can only be recorded for a model behind OPENAI_BASE_URL.")
    with recording(Endpoint(base_url.rstrip("/")), None) as recorder:
        stack.kill_host()
        # The app sends trace ids to its models only if a trace receiver is configured.
        traced = {"OPENAI_BASE_URL": f"{recorder.url}/v1", "OTEL_EXPORTER_OTLP_ENDPOINT": recorder.url}
        stack.start_host(traced)
        yield recorder


@contextmanager
def own_stack(environment: Mapping[str, str]) -> Iterator[LocalStack]:
    """Yield a running local stack without samples, on free ports unless the environment sets them."""
    free = {setting: str(getattr(FREE_PORTS, name)) for name, setting in PORT_SETTINGS.items()}
    settings = read_stack_settings({DATA_SETTING: str(DEFAULT_DATA), **free, **environment})
    with LocalStack(settings) as stack:
        yield stack


@contextmanager
def app_of(stack: LocalStack, recorder: Recorder | None = None) -> Iterator[App]:
    """Yield a client of a running stack that acts as a sample user."""
    environment = {**os.environ, **stack.app_settings}
    model = f"{environment.get('CHAT_MODEL')}, {environment.get('EMBEDDING_MODEL')}"
    with _client(stack.base_url, stack.token(ANNA)) as http:
        yield App(http, model, stack.check, recorder)


def _client(url: str, token: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token}"}
    # Each thread needs one connection, so the default limit of 100 connections suffices.
    return httpx.Client(base_url=url.rstrip("/"), headers=headers, timeout=CALL_TIMEOUT_S)
