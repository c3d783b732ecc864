"""`share`: share an answer, list its shares, revoke a share."""

from typing import Annotated, Any
from urllib.parse import urljoin

from cli.api import segment
from cli.commands import Call, RunArgument, app, option
from cli.errors import CommandError
from cli.runs import run_id_of
from cli.terminal import moment

_REASONS = {
    "changed": "a document behind it has changed, or you can no longer read it",
    "conversation_file": "it used a file that is only for its conversation",
    "counts": "it may state numbers of documents that it doesn't list",
    "database": "it used a database",
    "tool": "it used a tool that doesn't report its documents",
    "unknown": "there is no complete record of the documents behind it",
    "workspace": "it used a workspace file",
}


@app.add("share")
def share(
    call: Call,
    run: RunArgument,
    *,
    audience: Annotated[
        list[str] | None,
        option("--with", "NAME", "User or group that may open the share. Repeat for several."),
    ] = None,
    days: Annotated[int, option("--days", "N", "Days until the share expires (1-90)")] = 30,
    revoke: Annotated[str | None, option("--revoke", "SHARE", "Id of a share to revoke")] = None,
) -> None:
    """Share a run's answer, or show its shares."""
    if audience and revoke:
        raise CommandError("--with and --revoke exclude each other.", "Use only one of them.")
    path = f"/runs/{segment(run_id_of(call.api, run))}/shares"
    if revoke:
        call.api.call("DELETE", f"{path}/{segment(revoke)}")
        call.terminal.result({"share_id": revoke}, "The share has ended.")
        return
    if audience:
        created = call.api.call("POST", path, json={"audience": audience, "days": days})
        url = urljoin(call.api.url, created["url"])
        call.terminal.result(created, f"{url} until {moment(created['expires_at'])}")
        return
    _show(call, call.api.call("GET", path))


def _show(call: Call, listed: dict[str, Any]) -> None:
    if call.terminal.as_json:
        call.terminal.json(listed)
        return
    for obstacle in listed["obstacles"]:
        call.terminal.say(f"It can't be shared: {_REASONS.get(obstacle, obstacle)}.")
    if listed["documents"]:
        call.terminal.say("Readers must be able to read:", "bold")
    for document in listed["documents"]:
        call.terminal.say(f"  {document['filename'] or document['doc_id']}")
    for one in listed["shares"]:
        people = ", ".join(one["audience"])
        call.terminal.say(f"{one['share_id']}  {people}, until {moment(one['expires_at'])}")
    if not listed["shares"]:
        call.terminal.note("There is no active share.")
