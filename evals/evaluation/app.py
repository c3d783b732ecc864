"""The app under test, over HTTP and nothing else; it runs already, or is a local stack of one's own."""

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
CALL_TIMEOUT_S = 300.0  # longer than the app lets a run take
TRIES = 4
PAUSE_S = 1.0  # before the second try; doubled before each further one
_RETRIED = frozenset({429, 502, 503, 504})
_HAS_ENDED = 409
JsonObject = dict[str, Any]


@dataclass
class Watch:
    """What one question is asked with, and the calls of models that it led to."""

    headers: Mapping[str, str] = field(default_factory=dict)
    calls: tuple[ChatCall, ...] = ()


class App:
    """One user's calls. Safe to use from several threads.

    Args:
        model: the models that answer and embed, for the report.
        check: raises when the app is known to be gone.
        recorder: keeps what the app's models are shown.
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
        """Send a file into a folder and a project, for everybody to read; its document."""
        fields = {"folder": project_id, "project_id": project_id, "acl": "*"}
        return self._call("POST", "/api/documents", data=fields, files={"file": (filename, content)})

    def find(self, filename: str, project_id: str) -> JsonObject | None:
        """A project's complete document of that name, None while there is none."""
        params = {"filename": filename, "project_id": project_id, "limit": "1"}
        found: list[JsonObject] = self._call("GET", "/api/documents", params=params)["documents"]
        return found[0] if found else None

    def content(self, doc_id: str) -> bytes:
        """The file as it was uploaded."""
        return self._tried("GET", f"/api/documents/{doc_id}/content").content

    def document(self, doc_id: str) -> JsonObject:
        return self._call("GET", f"/api/documents/{doc_id}")

    def search(self, query: str, top_k: int, filters: Mapping[str, str]) -> list[JsonObject]:
        """Hits, best first."""
        body = {"query": query, "top_k": top_k, "filters": dict(filters)}
        hits: list[JsonObject] = self._call("POST", "/api/search", json=body)["results"]
        return hits

    @contextmanager
    def watching(self) -> Iterator["Watch"]:
        """Record the model calls of what is asked with the watch's headers; they are there at the end."""
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
        """A run with its answer. Asked once: a second try would hide the failure that is to be counted."""
        body = {"question": question, "project_id": project_id, "stream": False}
        answer = self._http.post("/api/chat", json=body, headers=dict(headers or {})).raise_for_status()
        run: JsonObject = answer.json()
        return run

    def begin(self, question: str, project_id: str, thread_id: str | None = None) -> JsonObject:
        """A run that was started and is not waited for. Asked once, as `ask`."""
        body = {"question": question, "project_id": project_id, "thread_id": thread_id}
        begun = self._http.post("/api/chat", json=body, headers={"Prefer": "respond-async"})
        run: JsonObject = begun.raise_for_status().json()
        return run

    def events(self, run_id: str) -> Iterator[tuple[str, JsonObject]]:
        """A run's events from the first, (name, data), until the stream ends or nobody reads on."""
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
        """End a run; one that has ended already is left as it is."""
        answer = self._http.post(f"/api/runs/{run_id}/cancel")
        if answer.status_code != _HAS_ENDED:
            answer.raise_for_status()

    def _call(self, method: str, path: str, **arguments: Any) -> JsonObject:
        """The answer's JSON."""
        found: JsonObject = self._tried(method, path, **arguments).json()
        return found

    def _tried(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        """The answer; what may pass by itself is tried again.

        Raises:
            httpx.HTTPError: it was refused, or did not work within TRIES.
        """
        for tried in range(TRIES - 1):
            self._check()
            try:
                answer = self._http.request(method, path, **arguments)
            except httpx.TransportError:
                time.sleep(PAUSE_S * 2**tried)
                continue
            if answer.status_code not in _RETRIED:
                return answer.raise_for_status()
            time.sleep(PAUSE_S * 2**tried)
        return self._http.request(method, path, **arguments).raise_for_status()


@contextmanager
def connected_app(environment: Mapping[str, str] = os.environ, *, prompts: bool = False) -> Iterator[App]:
    """The app at GROUNDWORK_URL, else a local stack on GROUNDWORK_DATA (`.local/eval`), which is kept.

    Args:
        prompts: record what the models of a local stack are shown.

    Raises:
        ValueError: GROUNDWORK_URL is set, and GROUNDWORK_TOKEN is not, or prompts are to be recorded there.
        StackError: the stack did not start.
    """
    url = environment.get(URL_SETTING)
    if url and prompts:
        raise ValueError(f"Prompts are recorded on a stack of one's own: unset {URL_SETTING}.")
    if url:
        token = environment.get(TOKEN_SETTING)
        if not token:
            raise ValueError(f"{URL_SETTING} is set, but not {TOKEN_SETTING}: who asks?")
        with _client(url, token) as http:
            yield App(http, environment.get("CHAT_MODEL") or f"unknown, at {url}")
        return
    with ExitStack() as opened:
        stack = opened.enter_context(own_stack(environment))
        recorder = opened.enter_context(_recorder_before(stack)) if prompts else None
        yield opened.enter_context(app_of(stack, recorder))


@contextmanager
def _recorder_before(stack: LocalStack) -> Iterator[Recorder]:
    """Have the stack's app reach its models through a recorder."""
    base_url = stack.app_settings.get("OPENAI_BASE_URL")
    if base_url is None:
        raise ValueError("Prompts are recorded of models behind OPENAI_BASE_URL.")
    with recording(Endpoint(base_url.rstrip("/")), None) as recorder:
        stack.kill_host()
        # Without a receiver of traces the app would send no trace's id to its models.
        traced = {"OPENAI_BASE_URL": f"{recorder.url}/v1", "OTEL_EXPORTER_OTLP_ENDPOINT": recorder.url}
        stack.start_host(traced)
        yield recorder


@contextmanager
def own_stack(environment: Mapping[str, str]) -> Iterator[LocalStack]:
    """A local stack without the samples, on free ports unless the environment names some."""
    free = {setting: str(getattr(FREE_PORTS, name)) for name, setting in PORT_SETTINGS.items()}
    settings = read_stack_settings({DATA_SETTING: str(DEFAULT_DATA), **free, **environment})
    with LocalStack(settings) as stack:
        yield stack


@contextmanager
def app_of(stack: LocalStack, recorder: Recorder | None = None) -> Iterator[App]:
    """A running stack, asked as one of the sample users."""
    named = {**os.environ, **stack.app_settings}
    model = f"{named.get('CHAT_MODEL')}, {named.get('EMBEDDING_MODEL')}"
    with _client(stack.base_url, stack.token(ANNA)) as http:
        yield App(http, model, stack.check, recorder)


def _client(url: str, token: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token}"}
    # A connection per thread; the default's 100 are enough for any sensible number.
    return httpx.Client(base_url=url.rstrip("/"), headers=headers, timeout=CALL_TIMEOUT_S)
