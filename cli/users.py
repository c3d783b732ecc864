"""For administrators: `users` erases all that is kept of a person, and shows who did what."""

import argparse
from typing import Any

from cli.api import Api, segment
from cli.commands import Tree
from cli.errors import DONE, NOT_ALL_WELL
from cli.terminal import Terminal, moment


def register(tree: Tree) -> None:
    """The commands of this file."""
    erasing = tree.leaf("users erase", erase_user, "erase a person's data (administrators)")
    erasing.add_argument(
        "--documents", action="store_true", help="also their documents that nobody else can read"
    )
    erasing.add_argument("--yes", action="store_true", help="do not ask")
    looking = tree.leaf("users erasure", show_erasure, "show the progress of an erasure (administrators)")
    for parser in (erasing, looking):
        parser.add_argument("user", metavar="USER", help="the object id in Entra ID")
    trail = tree.leaf("users activity", show_trail, "who read, changed or deleted what (administrators)")
    trail.add_argument("--since", metavar="TIME", help="from this time, such as 2026-11-01T00:00:00Z")
    trail.add_argument("--until", metavar="TIME", help="until this time")
    trail.add_argument("--user", metavar="USER", help="only this person")
    trail.add_argument("--document", metavar="ID", help="only this document, by its id")
    trail.add_argument("--action", metavar="ACTION", help="only this action, such as download")
    trail.add_argument("--limit", type=int, default=1000, metavar="N", help="maximum number")


def erase_user(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Begin it. It takes a quarter of an hour, and nobody need wait for it."""
    also = " and their own documents" if given.documents else ""
    terminal.confirm(f"Erase everything stored about {given.user}{also}?", is_sure=given.yes)
    wish = "delete" if given.documents else "keep"
    begun = api.call("DELETE", f"/users/{segment(given.user)}", params={"documents": wish})
    terminal.result(begun, f"The erasure of {given.user} is at work.")
    terminal.note(f"See its progress: users erasure {given.user}")


def show_erasure(api: Api, terminal: Terminal, given: argparse.Namespace) -> int:
    """Print the report. 0 unless it failed."""
    found = api.call("GET", f"/users/{segment(given.user)}/erasure")
    if terminal.as_json:
        terminal.json(found)
    else:
        _tell(terminal, found)
    return NOT_ALL_WELL if found["status"] == "failed" else DONE


def show_trail(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Print entries of the audit trail, newest first."""
    wanted = {"since": given.since, "until": given.until, "action": given.action}
    wanted |= {"user_id": given.user, "doc_id": given.document}
    chosen = {name: value for name, value in wanted.items() if value}
    terminal.rows(
        api.items("/audit", "entries", given.limit, chosen),
        ("Time", "Who", "What", "From", "Documents", "Run"),
        lambda one: (
            moment(one["at"]),
            one["user_id"],
            f"{one['action']} {one['subject']}".strip(),
            one["origin"],
            ", ".join(one["doc_ids"]),
            one["run_id"],
        ),
        nothing="Nothing is on record for this time.",
    )


def _tell(terminal: Terminal, found: dict[str, Any]) -> None:
    terminal.say(f"{found['user_id']}: {found['status']}, asked {moment(found['asked_at'])}.", "bold")
    if found["reason"]:
        terminal.say(found["reason"], "red")
    if found["next_pass_at"]:
        terminal.say(f"Passes so far: {found['passes']}; the next one at {moment(found['next_pass_at'])}.")
    erased = {kind: count for kind, count in found["erased"].items() if count}
    if found["status"] == "completed" and not erased:
        terminal.say("Nothing was stored about this person. Is the id right?", "yellow")
    for kind, count in erased.items():
        terminal.say(f"  {count:>6}  {kind.replace('_', ' ')} erased")
    for kept in found["kept"]:
        if kept["count"] != 0:
            count = "" if kept["count"] is None else kept["count"]
            terminal.say(f"  {count:>6}  {kept['what']} kept: {kept['why']}")
