"""`runs`: list, show, follow, answer, cancel and rate runs."""

import json
from typing import Annotated, Any

import typer

from cli.answers import print_answer
from cli.api import Api, segment
from cli.ask import Asking, follow, send_answer
from cli.commands import Call, LimitOption, QuietOption, RunArgument, option, runs
from cli.errors import CommandError
from cli.following import ENDS, RunStream
from cli.progress import ProgressDisplay, describe_event
from cli.terminal import moment
from cli.threads import thread_id_of

_STARS = range(1, 6)


def run_id_of(api: Api, name: str) -> str:
    """Return the run id, resolving `last` to the newest run.

    Raises:
        CommandError: there is no run yet.
    """
    if name != "last":
        return name
    path = f"/threads/{segment(thread_id_of(api, name))}/messages"
    messages = api.call("GET", path, params={"limit": 1})["messages"]
    if not messages:
        raise CommandError("Your newest thread has no question.", "Specify the id of a run.")
    return str(messages[-1]["run_id"])


@runs.add("list")
def list_runs(call: Call, *, limit: LimitOption = 20) -> None:
    """List your runs, newest first."""
    call.terminal.rows(
        call.api.items("/runs", "runs", limit),
        ("Question", "Status", "Asked", "Id"),
        lambda one: (one["question"], one["status"], moment(one["created_at"]), one["run_id"]),
        nothing="There are no runs.",
    )


@runs.add("show")
def show_run(call: Call, run: RunArgument) -> None:
    """Show a run's status and answer."""
    view = call.api.call("GET", f"/runs/{segment(run_id_of(call.api, run))}")
    if call.terminal.as_json:
        call.terminal.json(view)
        return
    call.terminal.say(str(view["question"]), "bold")
    call.terminal.note(f"{view['status']}, asked {moment(view['created_at'])}, thread {view['thread_id']}")
    for item in view.get("todo") or ():
        call.terminal.note(f"  {item['position']}. {item['description']}: {item['status']}")
    for agent in view.get("sub_agents") or ():
        call.terminal.note(f"  {agent.get('badge') or agent['profile']}: {agent['status']}")
    if view.get("clarification"):
        call.terminal.say(str(view["clarification"]["question"]))
        for option in view["clarification"]["options"]:
            call.terminal.say(f"  {option['number']}. {option['filename'] or option['title']}")
    if view.get("answer"):
        print_answer(call.api, call.terminal, view["answer"])
    elif view.get("error"):
        call.terminal.say(str(view["error"]), "red")


@runs.add("events")
def show_events(
    call: Call,
    run: RunArgument,
    *,
    after: Annotated[int, option("--after", "N", "Number of an event; only later events are shown")] = 0,
) -> None:
    """Print the events of a run as they occur."""
    stream = RunStream(call.api, run_id=run_id_of(call.api, run), last=after, on_trouble=call.terminal.note)
    for event in stream:
        if call.terminal.as_json:
            line = {"id": event.number, "event": event.name, "data": event.data}
            print(json.dumps(line, ensure_ascii=False), flush=True)
            continue
        for line_of_words in describe_event(event) or [_in_short(event.name, event.data)]:
            call.terminal.say(f"{event.number:>4}  {line_of_words}")
        if event.name in ENDS:
            break


@runs.add("answer")
def answer_run(
    call: Call,
    run: RunArgument,
    choice: Annotated[
        str, typer.Argument(metavar="CHOICE", help="Number of an option, or an answer in your own words")
    ],
    *,
    quiet: QuietOption = False,
) -> int:
    """Reply to a run's clarification and follow the run."""
    before = call.api.call("GET", f"/runs/{segment(run_id_of(call.api, run))}")
    send_answer(call.api, str(before["run_id"]), choice)
    display = ProgressDisplay(call.terminal, is_quiet=quiet)
    answered = str((before.get("clarification") or {}).get("expires_at", ""))
    stream = RunStream(call.api, run_id=run_id_of(call.api, run), on_trouble=display.trouble)
    return follow(Asking(call.api, call.terminal, display, answered), stream)


@runs.add("cancel")
def cancel_run(call: Call, run: RunArgument) -> None:
    """Cancel a run."""
    view = call.api.call("POST", f"/runs/{segment(run_id_of(call.api, run))}/cancel")
    call.terminal.result(view, f"{view['run_id']} is {view['status']}.")


@runs.add("rate")
def rate_run(
    call: Call,
    run: RunArgument,
    *,
    rating: Annotated[str | None, typer.Argument(metavar="RATING", help="Rating: 1-5, up or down")] = None,
    comment: Annotated[str | None, option("--comment", "TEXT", "Comment on the answer")] = None,
    reason: Annotated[
        list[str] | None, option("--reason", "WORD", "Reason for the rating. Repeat for several.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove your rating")] = False,
) -> None:
    """Rate the answer of a run. A new rating replaces the old one."""
    path = f"/runs/{segment(run_id_of(call.api, run))}/feedback"
    if remove:
        call.api.call("DELETE", path)
        call.terminal.result({"run_id": run, "feedback": None}, "Taken back.")
        return
    feedback = _feedback(rating, comment, reason)
    stored = call.api.call("PUT", path, json=feedback)
    call.terminal.result(stored or {"run_id": run, **feedback}, "Thank you, your rating is stored.")


def _feedback(rating: str | None, comment: str | None, reasons: list[str] | None) -> dict[str, Any]:
    feedback: dict[str, Any] = {}
    if rating in ("up", "down"):
        feedback["thumb"] = rating
    elif rating is not None:
        if not (rating.isdecimal() and int(rating) in _STARS):
            raise CommandError(f"{rating[:40]!r} is not a rating.", "Specify 1-5, up or down.")
        feedback["rating"] = int(rating)
    if comment is not None:
        feedback["comment"] = comment
    if reasons:
        feedback["reasons"] = reasons
    if not feedback:
        raise CommandError("No rating was given.", "Specify 1-5, up or down, or --comment.")
    return feedback


def _in_short(name: str, data: dict[str, Any]) -> str:
    for field in ("text", "message", "question", "quote", "state", "kind"):
        if data.get(field):
            return f"{name}: {str(data[field])[:200]}"
    return name
