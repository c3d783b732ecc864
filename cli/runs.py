"""`runs`: list them, look at one, follow it, answer what it asks, cancel it, rate its answer."""

import argparse
import json
from typing import Any

from cli.answers import print_answer
from cli.api import Api, segment
from cli.ask import Asking, follow, send_answer
from cli.commands import Tree
from cli.errors import CommandError
from cli.following import ENDS, RunStream
from cli.progress import ProgressDisplay, described
from cli.terminal import Terminal, moment
from cli.threads import thread_id_of

_STARS = range(1, 6)


def register(tree: Tree) -> None:
    """The commands of this file."""
    listing = tree.leaf("runs list", list_runs, "list your runs, newest first")
    listing.add_argument("--limit", type=int, default=20, metavar="N", help="maximum number")
    showing = tree.leaf("runs show", show_run, "show its status and answer")
    events = tree.leaf("runs events", show_events, "follow its events")
    events.add_argument("--after", type=int, default=0, metavar="N", help="only events after this one")
    answering = tree.leaf("runs answer", answer_run, "reply to its clarifying question and follow it")
    cancelling = tree.leaf("runs cancel", cancel_run, "end it")
    rating = tree.leaf("runs rate", rate_run, "rate its answer; the last rating counts")
    for parser in (showing, events, answering, cancelling, rating):
        parser.add_argument("run", metavar="RUN", help="its id; `last` is the newest one")
    answering.add_argument("choice", metavar="CHOICE", help="the number of an option, or your own words")
    answering.add_argument("--quiet", action="store_true", help="hide the progress")
    rating.add_argument("rating", nargs="?", metavar="RATING", help="1-5, up or down")
    rating.add_argument("--comment", metavar="TEXT", help="a comment")
    rating.add_argument("--reason", action="append", metavar="WORD", help="why; may be repeated")
    rating.add_argument("--remove", action="store_true", help="remove your rating")


def run_id_of(api: Api, named: str) -> str:
    """The id of a run, or of the newest one for `last`.

    Raises:
        CommandError: nothing has been asked yet.
    """
    if named != "last":
        return named
    path = f"/threads/{segment(thread_id_of(api, named))}/messages"
    messages = api.call("GET", path, params={"limit": 1})["messages"]
    if not messages:
        raise CommandError("Nothing was asked in your newest thread.", "Name a run by its id.")
    return str(messages[-1]["run_id"])


def list_runs(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Print runs."""
    terminal.rows(
        api.items("/runs", "runs", given.limit),
        ("Question", "Status", "Asked", "Id"),
        lambda one: (one["question"], one["status"], moment(one["created_at"]), one["run_id"]),
        nothing="There are no runs.",
    )


def show_run(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Print one run."""
    view = api.call("GET", f"/runs/{segment(run_id_of(api, given.run))}")
    if terminal.as_json:
        terminal.json(view)
        return
    terminal.say(str(view["question"]), "bold")
    terminal.note(f"{view['status']}, asked {moment(view['created_at'])}, thread {view['thread_id']}")
    for item in view.get("todo") or ():
        terminal.note(f"  {item['position']}. {item['description']}: {item['status']}")
    for agent in view.get("sub_agents") or ():
        terminal.note(f"  {agent.get('badge') or agent['profile']}: {agent['status']}")
    if view.get("clarification"):
        terminal.say(str(view["clarification"]["question"]))
        for option in view["clarification"]["options"]:
            terminal.say(f"  {option['number']}. {option['filename'] or option['title']}")
    if view.get("answer"):
        print_answer(api, terminal, view["answer"])
    elif view.get("error"):
        terminal.say(str(view["error"]), "red")


def show_events(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Print events as they come; with --json one object a line. Ctrl-C ends the display, not the run."""
    stream = RunStream(api, run_id=run_id_of(api, given.run), last=given.after, on_trouble=terminal.note)
    for event in stream:
        if terminal.as_json:
            line = {"id": event.number, "event": event.name, "data": event.data}
            print(json.dumps(line, ensure_ascii=False), flush=True)
            continue
        for line_of_words in described(event) or [_in_short(event.name, event.data)]:
            terminal.say(f"{event.number:>4}  {line_of_words}")
        if event.name in ENDS:
            break


def answer_run(api: Api, terminal: Terminal, given: argparse.Namespace) -> int:
    """Answer a question back, and show what becomes of the run."""
    before = api.call("GET", f"/runs/{segment(run_id_of(api, given.run))}")
    send_answer(api, str(before["run_id"]), given.choice)
    display = ProgressDisplay(terminal, is_quiet=given.quiet)
    answered = str((before.get("clarification") or {}).get("expires_at", ""))
    stream = RunStream(api, run_id=run_id_of(api, given.run), on_trouble=display.trouble)
    return follow(Asking(api, terminal, display, answered), stream)


def cancel_run(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """End a run and its sub-agents."""
    view = api.call("POST", f"/runs/{segment(run_id_of(api, given.run))}/cancel")
    terminal.result(view, f"{view['run_id']} is {view['status']}.")


def rate_run(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Rate an answer, or take the rating back."""
    path = f"/runs/{segment(run_id_of(api, given.run))}/feedback"
    if given.remove:
        api.call("DELETE", path)
        terminal.result({"run_id": given.run, "feedback": None}, "Taken back.")
        return
    feedback = _feedback(given)
    stored = api.call("PUT", path, json=feedback)
    terminal.result(stored or {"run_id": given.run, **feedback}, "Thank you, your rating is stored.")


def _feedback(given: argparse.Namespace) -> dict[str, Any]:
    feedback: dict[str, Any] = {}
    if given.rating in ("up", "down"):
        feedback["thumb"] = given.rating
    elif given.rating is not None:
        if not (given.rating.isdecimal() and int(given.rating) in _STARS):
            raise CommandError(f"{given.rating[:40]!r} is not a rating.", "Say 1-5, up or down.")
        feedback["rating"] = int(given.rating)
    if given.comment is not None:
        feedback["comment"] = given.comment
    if given.reason:
        feedback["reasons"] = given.reason
    if not feedback:
        raise CommandError("How good was it?", "Say 1-5, up or down, or --comment.")
    return feedback


def _in_short(name: str, given: dict[str, Any]) -> str:
    for field in ("text", "message", "question", "quote", "state", "kind"):
        if given.get(field):
            return f"{name}: {str(given[field])[:200]}"
    return name
