"""Commands for administrators: `users` erases a person's data, and `trail` shows the audit trail."""

from typing import Annotated, Any

import typer

from cli.api import segment
from cli.commands import Call, LimitOption, YesOption, option, users
from cli.errors import DONE, NOT_ALL_WELL
from cli.terminal import Terminal, moment

UserArgument = Annotated[
    str, typer.Argument(metavar="USER", help="User id, which is the object id in Entra ID")
]


@users.add("erase")
def erase_user(
    call: Call,
    user: UserArgument,
    *,
    documents: Annotated[
        bool, typer.Option("--documents", help="Also delete documents that only this person can read")
    ] = False,
    yes: YesOption = False,
) -> None:
    """Erase a person's data (administrators)."""
    also = " and their own documents" if documents else ""
    call.terminal.confirm(f"Erase everything stored about {user}{also}?", is_sure=yes)
    wish = "delete" if documents else "keep"
    erasure = call.api.call("DELETE", f"/users/{segment(user)}", params={"documents": wish})
    call.terminal.result(erasure, f"The erasure of {user} has started.")
    call.terminal.note(f"Show its progress with: users erasure {user}")


@users.add("erasure")
def show_erasure(call: Call, user: UserArgument) -> int:
    """Show the progress of an erasure (administrators)."""
    erasure = call.api.call("GET", f"/users/{segment(user)}/erasure")
    if call.terminal.as_json:
        call.terminal.json(erasure)
    else:
        _print_erasure(call.terminal, erasure)
    return NOT_ALL_WELL if erasure["status"] == "failed" else DONE


@users.add("activity")
def show_trail(
    call: Call,
    *,
    since: Annotated[
        str | None, option("--since", "TIME", "Start of the period, such as 2026-11-01T00:00:00Z")
    ] = None,
    until: Annotated[str | None, option("--until", "TIME", "End of the period")] = None,
    user: Annotated[str | None, option("--user", "USER", "Show only entries of this user id")] = None,
    document: Annotated[
        str | None, option("--document", "ID", "Show only entries about the document with this id")
    ] = None,
    action: Annotated[
        str | None, option("--action", "ACTION", "Show only entries with this action, such as download")
    ] = None,
    limit: LimitOption = 1000,
) -> None:
    """Show which users read, changed or deleted which documents (administrators)."""
    criteria = {"since": since, "until": until, "action": action}
    criteria |= {"user_id": user, "doc_id": document}
    chosen = {name: value for name, value in criteria.items() if value}
    call.terminal.rows(
        call.api.items("/audit", "entries", limit, chosen),
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


def _print_erasure(terminal: Terminal, erasure: dict[str, Any]) -> None:
    terminal.say(
        f"{erasure['user_id']}: {erasure['status']}, requested {moment(erasure['asked_at'])}.", "bold"
    )
    if erasure["reason"]:
        terminal.say(erasure["reason"], "red")
    if erasure["next_pass_at"]:
        terminal.say(f"Passes so far: {erasure['passes']}; next pass at {moment(erasure['next_pass_at'])}.")
    erased = {kind: count for kind, count in erasure["erased"].items() if count}
    if erasure["status"] == "completed" and not erased:
        terminal.say("Nothing was stored about this person. Is the id right?", "yellow")
    for kind, count in erased.items():
        terminal.say(f"  {count:>6}  {kind.replace('_', ' ')} erased")
    for item in erasure["kept"]:
        if item["count"] != 0:
            count = "" if item["count"] is None else item["count"]
            terminal.say(f"  {count:>6}  {item['what']} kept: {item['why']}")
