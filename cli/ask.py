"""`ask`: a question, its answer as it is written, and where each statement comes from."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
from rich.console import Console
from rich.live import Live
from rich.markdown import Markdown
from rich.text import Text

from cli.api import Api, CommandError, Event

_LOST = 5  # connections in a row without an event
_PREVIEW_LINES = 20


@dataclass
class Draft:
    """The answer while it is written, by step: a step that begins anew loses its own text only."""

    steps: dict[int, str] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Add a token, or drop what a step had written before it began anew or was given up."""
        step = int(event.data.get("step", 0))
        if event.name == "token":
            self.steps[step] = self.steps.get(step, "") + str(event.data["text"])
        elif event.name == "status" and event.data.get("state") in ("restarted", "discarded"):
            self.steps.pop(step, None)

    @property
    def text(self) -> str:
        return "".join(self.steps[step] for step in sorted(self.steps))


def ask(api: Api, console: Console, output: Console, question: str, *, as_json: bool) -> int:
    """Ask; show the draft on `console`, print the answer on `output`.

    0 with an answer, 3 when the documents have none.

    Raises:
        CommandError: the question was refused or may mean several documents, or the run failed.
    """
    draft = Draft()
    answer: dict[str, Any] | None = None
    with Live(Text("…"), console=console, transient=True, refresh_per_second=8) as live:
        for event in run_events(api, question):
            draft.take(event)
            live.update(Text("\n".join(draft.text.splitlines()[-_PREVIEW_LINES:]) or "…"))
            if event.name == "complete":
                answer = event.data["answer"]
            elif event.name == "ask_user":
                # The run would wait for days; here nobody can answer it.
                raise CommandError(str(event.data["question"]), *_options(event), "Ask again and name it.")
            elif event.name == "error":
                raise CommandError(str(event.data.get("message", "The run failed.")), *_hints(event))
    if answer is None:
        raise CommandError("The run ended without an answer.", "Ask again.")
    if as_json:
        output.print_json(json.dumps(answer))
    else:
        _print(output, answer)
    return 3 if answer.get("abstained") else 0


def _options(event: Event) -> list[str]:
    return [f"{option['title']} ({option['filename']})" for option in event.data["options"]]


def _hints(event: Event) -> list[str]:
    return [str(hint) for hint in event.data.get("hints") or ()]


def run_events(api: Api, question: str) -> Iterator[Event]:
    """Every event of the run once, over as many connections as it takes.

    Raises:
        CommandError: the question was refused, or the connection is lost for good.
    """
    run_id, last, lost = "", 0, 0
    while lost < _LOST:
        try:
            for headers, event in _connect(api, question, run_id, last):
                run_id = headers.get("x-run-id", run_id)
                if event is None:
                    continue
                last, lost = event.number, 0
                yield event
                if event.name in ("complete", "error"):
                    return
        except httpx.TransportError:
            pass  # resumed below
        if not run_id:
            break
        lost += 1
    raise CommandError("The connection was lost.", "The run goes on; ask again to start another.")


def _connect(
    api: Api, question: str, run_id: str, after: int
) -> Iterator[tuple[httpx.Headers, Event | None]]:
    if run_id:
        return api.events("GET", f"/runs/{run_id}/events", after=after)
    return api.events("POST", "/chat", body={"question": question})


def _print(console: Console, answer: dict[str, Any]) -> None:
    console.print(Markdown(str(answer.get("text", ""))))
    for cited in answer.get("citations", ()):
        page = f", page {cited['page_number']}" if cited.get("page_number") else ""
        mark = "verified" if cited.get("verified") else "not verified"
        source = Text(f"[{cited['n']}] {cited['filename']}{page} ({mark})", style="bold")
        console.print(source)
        console.print(Text(f"    “{cited['quote']}”", style="dim"))
    unsupported = answer.get("unsupported_claims")
    if unsupported:
        console.print(Text(f"{unsupported} statements are not supported by a quotation.", style="yellow"))
