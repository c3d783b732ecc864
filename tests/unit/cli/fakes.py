"""A scripted app for the command line, and a terminal whose output tests can read."""

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
from rich.console import Console

from cli import __main__  # noqa: F401  # adds the commands
from cli.api import Api, Event
from cli.commands import Surroundings, perform
from cli.terminal import Prompt, Terminal

Answer = Callable[[httpx.Request], httpx.Response]


class AnsweringApi(Api):
    """A client whose requests are answered by a function."""

    def __init__(self, answer: Answer) -> None:
        super().__init__("http://127.0.0.1", "token")
        self._client = httpx.Client(
            base_url="http://127.0.0.1/api", transport=httpx.MockTransport(answer), auth=self._client.auth
        )


class ScriptedApi(AnsweringApi):
    """A client whose event streams follow scripts, one per connection. An exception in a script breaks the
    connection.
    """

    def __init__(
        self,
        *scripts: list[Event | Exception | None],
        answer: Answer = lambda _: httpx.Response(404, json={"detail": "Not there."}),
    ) -> None:
        super().__init__(answer)
        self.calls: list[tuple[str, str, int]] = []
        self.keys: list[str] = []
        self.bodies: list[Any] = []
        self._scripts = list(scripts)

    def events(
        self, method: str, path: str, *, after: int = 0, body: Any = None, key: str = ""
    ) -> Iterator[tuple[httpx.Headers, Event | None]]:
        self.calls.append((method, path, after))
        self.keys.append(key)
        self.bodies.append(body)
        for step in self._scripts.pop(0) if self._scripts else []:
            if isinstance(step, Exception):
                raise step
            yield httpx.Headers({"X-Run-Id": "r1"}), step


@dataclass
class ReadTerminal:
    """A terminal that records its output. `answers` are typed at its prompts."""

    answers: list[str] | None = None
    as_json: bool = False
    width: int = 80
    out: io.StringIO = field(default_factory=io.StringIO)
    err: io.StringIO = field(default_factory=io.StringIO)

    @property
    def terminal(self) -> Terminal:
        prompt: Prompt | None = None
        if self.answers is not None:
            answers = self.answers

            def prompt(question: str) -> str:
                self.err.write(question)
                if not answers:
                    raise KeyboardInterrupt
                return answers.pop(0)

        return Terminal(Console(file=self.out), Console(file=self.err), self.as_json, prompt)


class RecordingApp:
    """An app that responds by method and path, and records what it received."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.sent: list[tuple[str, Any]] = []
        self.api = AnsweringApi(self._answer)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        call = f"{request.method} {request.url.path.removeprefix('/api')}"
        body = request.read()
        self.sent.append((call, json.loads(body) if body else dict(request.url.params)))
        if call not in self.answers:
            return httpx.Response(404, json={"detail": f"No {call}.", "hints": ["Look."]})
        answer = self.answers[call]
        return answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=answer)


def run(api: Api, read: ReadTerminal, *words: str) -> int:
    """Run a command with a client and a terminal, and return its exit code."""
    surroundings = Surroundings(lambda _: api)
    surroundings.terminal = read.terminal
    return perform(words, surroundings)


def done(app: RecordingApp, *words: str, answers: list[str] | None = None, as_json: bool = False) -> Any:
    """Run a command, and return its exit code and output. With `as_json`, the output is parsed."""
    read = ReadTerminal(answers, as_json)
    code = run(app.api, read, *words)
    text = read.out.getvalue()
    return code, json.loads(text) if as_json else text
