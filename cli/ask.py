"""`ask` streams an answer and shows its sources. `agents` lists the agents.

Clarifications are asked on the terminal. Ctrl-C cancels the run, not only the display.
"""

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from cli import sending
from cli.answers import print_answer
from cli.api import Api, Event, segment
from cli.commands import Call, QuietOption, app, option, program_name
from cli.documents import resolve
from cli.errors import ASKED_BACK, DONE, INTERRUPTED, NO_ANSWER, CommandError
from cli.following import RunStream
from cli.progress import ProgressDisplay
from cli.terminal import Terminal
from cli.threads import thread_id_of

_BAD_REQUEST = 400
_CLOSED = 409


@dataclass(frozen=True)
class Asking:
    """The client, terminal and progress display used to present one run.

    Attributes:
        display: shows progress.
        answered: the outcome of a clarification that was already answered; it is shown but not asked again.
    """

    api: Api
    terminal: Terminal
    display: ProgressDisplay
    answered: str = ""


@app.add("agents")
def list_agents(call: Call) -> None:
    """List the agents that you can ask."""
    agents = call.api.call("GET", "/agents")["agents"]
    if call.terminal.as_json:
        call.terminal.json(agents)
        return
    for agent in agents:
        call.terminal.say(agent["name"], "bold")
        call.terminal.say(f"    {agent['description']}")
    if not agents:
        call.terminal.say("There are no agents that you can ask.")


@app.add("ask")
def ask(
    call: Call,
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="Question to ask; `-` reads it from standard input")
    ],
    *,
    thread: Annotated[
        str | None, option("--thread", "ID", "Thread to continue; `last` means the newest one")
    ] = None,
    deep: Annotated[bool, typer.Option("--deep", help="Allow more time and more sub-agents")] = False,
    agent: Annotated[
        str | None, option("--agent", "NAME", "Agent to ask; the command `agents` lists them")
    ] = None,
    project: Annotated[str | None, option("--project", "ID", "Use only documents of this project")] = None,
    doc: Annotated[
        list[str] | None, option("--doc", "DOC", "Use only this document. Repeat for several.")
    ] = None,
    file: Annotated[
        list[Path] | None,
        option("--file", "PATH", "File to add to this conversation only. Repeat for several."),
    ] = None,
    quiet: QuietOption = False,
) -> int:
    """Ask a question and stream the answer."""
    body: dict[str, Any] = {"question": _question(question), "deep": deep}
    if thread:
        body["thread_id"] = thread_id_of(call.api, thread)
    if project:
        body["project_id"] = project
    if agent:
        body["agent"] = agent
    if doc:
        body["doc_ids"] = [resolve(call.api, name) for name in doc]
    if file:
        body["thread_id"] = body.get("thread_id") or call.api.call("POST", "/threads", json={})["thread_id"]
        for path in file:
            _attach(call, path, body["thread_id"])
    display = ProgressDisplay(call.terminal, is_quiet=quiet)
    # All attempts use the same key, so that a repeated start doesn't create a second run.
    stream = RunStream(call.api, body, key=uuid.uuid4().hex, on_trouble=display.trouble)
    return follow(Asking(call.api, call.terminal, display), stream)


def _attach(call: Call, path: Path, thread_id: str) -> None:
    """Add a file to a conversation. A question asked afterwards waits until the file has been ingested."""
    if not path.is_file():
        raise CommandError(f"There is no file {path}.")
    address, size_bytes = f"/threads/{segment(thread_id)}/files", path.stat().st_size
    if size_bytes <= sending.LARGE_BYTES:
        sending.send_through(call.api, path, {}, _ignore, address)
        return
    ticket = sending.Ticket(call.api, {"filename": path.name, "size_bytes": size_bytes}, address)
    sending.send_in_blocks(call.api, path, ticket, _ignore, call.terminal.note)


def _ignore(_: int) -> None:
    """Ignore the number of uploaded bytes."""


def follow(asking: Asking, stream: RunStream) -> int:
    """Show a run until it ends. Ctrl-C cancels it."""
    try:
        with asking.display:
            ended = _follow_to_end(asking, stream)
    except KeyboardInterrupt:
        return _cancel(asking, stream.run_id)
    if ended is None:
        return ASKED_BACK
    return _show(asking, ended)


def _follow_to_end(asking: Asking, stream: RunStream) -> Event | None:
    """Follow the run and return its last event. Return None if it waits for a clarification and nobody is at
    the terminal.
    """
    for event in stream:
        asking.display.take(event)
        if event.name == "complete":
            return event
        if event.name == "error":
            message = str(event.data.get("message") or "The run failed.")
            code = str(event.data.get("type") or "")
            raise CommandError(message, *(str(hint) for hint in event.data.get("hints") or ()), code=code)
        if event.name == "ask_user" and not _choose(asking, stream, event):
            return None
    raise CommandError("The run ended without an answer.", "Ask the question again.")


def _choose(asking: Asking, stream: RunStream, event: Event) -> bool:
    """Ask the user the run's clarification, and return whether it was answered."""
    terminal, run_id = asking.terminal, stream.run_id
    asking.display.pause()
    if str(event.data.get("expires_at")) == asking.answered:
        return True
    view = asking.api.call("GET", f"/runs/{segment(run_id)}")
    if view["status"] != "waiting":
        return True  # another client has answered it
    if terminal.prompt is None:
        _leave_waiting(terminal, run_id, event)
        return False
    for line in _options(event):
        terminal.note(line, "")
    while True:
        reply = terminal.prompt("Number, or words: ")
        if reply and _send_reply(asking, run_id, reply):
            return True


def _send_reply(asking: Asking, run_id: str, reply: str) -> bool:
    try:
        send_answer(asking.api, run_id, reply)
    except CommandError as refused:
        if refused.status == _CLOSED:  # another client answered, or the time ran out; the run continues
            asking.terminal.note(str(refused), "yellow")
            return True
        if refused.status != _BAD_REQUEST:
            raise
        asking.terminal.note(str(refused), "yellow")
        return False
    return True


def send_answer(api: Api, run_id: str, reply: str) -> dict[str, Any]:
    """Send the reply to a clarification. A number selects an option; the app interprets any other text."""
    answer = {"choice": int(reply)} if reply.isdecimal() and len(reply) < 6 else {"text": reply}
    return api.call("POST", f"/runs/{segment(run_id)}/answer", json=answer)


def _leave_waiting(terminal: Terminal, run_id: str, event: Event) -> None:
    if terminal.as_json:
        terminal.json({"run_id": run_id, "status": "waiting", "clarification": event.data})
    else:
        for line in _options(event):
            terminal.say(line)
    terminal.note(
        f"The run is waiting for a reply. Answer with: {program_name()} runs answer {run_id} NUMBER", "yellow"
    )


def _options(event: Event) -> list[str]:
    lines = [str(event.data.get("question") or "Which one?")]
    for choice in event.data.get("options") or ():
        details = ", ".join(
            filter(None, (choice.get("filename"), *choice.get("details", ()), choice.get("date")))
        )
        name = choice.get("title") or choice.get("filename")
        lines.append(f"  {choice['number']}. {name}{f' ({details})' if details else ''}")
    return lines


def _show(asking: Asking, ended: Event) -> int:
    answer: dict[str, Any] = dict(ended.data["answer"])
    run_id, thread_id = str(ended.data.get("run_id", "")), str(ended.data.get("thread_id", ""))
    if answer.get("figures"):
        answer = _with_signed_figures(asking.api, run_id, answer)
    if asking.terminal.as_json:
        asking.terminal.json({**answer, "run_id": run_id, "thread_id": thread_id})
    else:
        print_answer(asking.api, asking.terminal, answer)
        asking.terminal.note(f"Run {run_id}. Continue: --thread {thread_id}")
    return NO_ANSWER if answer.get("abstained") else DONE


def _with_signed_figures(api: Api, run_id: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return the answer with signed picture URLs, which a browser can open. The stream doesn't contain
    them.
    """
    try:
        stored = api.call("GET", f"/runs/{segment(run_id)}").get("answer")
    except CommandError:
        return answer  # the text is complete without the pictures, which can be requested later
    return {**answer, **{name: stored[name] for name in ("text", "figures")}} if stored else answer


def _cancel(asking: Asking, run_id: str) -> int:
    message = "Interrupted before the run began."
    if run_id:
        try:
            asking.api.call("POST", f"/runs/{segment(run_id)}/cancel")
            message = f"Run {run_id} is cancelled."
        except CommandError as failed:
            message = f"Run {run_id} could not be cancelled: {failed}"
    asking.terminal.note(message, "yellow")
    if asking.terminal.as_json:
        asking.terminal.json({"run_id": run_id, "status": "cancelled" if run_id else "not begun"})
    return INTERRUPTED


def _question(text: str) -> str:
    import sys

    return sys.stdin.read().strip() if text == "-" else text
