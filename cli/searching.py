"""`search`: passages and figures for a query. `summary`, `summaries`: summaries of several documents."""

import json
import time
import uuid
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.live import Live
from rich.text import Text

from cli.answers import print_citations, with_page_labels
from cli.api import Api, segment
from cli.commands import (
    Call,
    DocumentsArgument,
    LimitOption,
    SummaryArgument,
    YesOption,
    app,
    option,
    summaries,
)
from cli.documents import resolve
from cli.errors import DONE, INTERRUPTED, NO_ANSWER, CommandError
from cli.terminal import Terminal, clean, moment

_LOOK_EVERY_S = 1.0
_PREVIEW = 600  # maximum number of characters printed per passage


@app.add("search")
def search(
    call: Call,
    query: Annotated[str, typer.Argument(metavar="QUERY")],
    *,
    top: Annotated[int, option("--top", "N", "Maximum number of results (1-50)")] = 10,
    filters: Annotated[
        list[str] | None,
        option("--filter", "NAME=VALUE", "Filter on a field, such as department=Safety. Repeat for several."),
    ] = None,
    tag: Annotated[
        list[str] | None, option("--tag", "TAG", "Search only documents with this tag. Repeat for several.")
    ] = None,
    language: Annotated[
        str | None, option("--language", "CODE", "Search only documents in this language, such as de")
    ] = None,
    since: Annotated[
        str | None, option("--since", "DATE", "Search only documents uploaded on this day or later")
    ] = None,
    until: Annotated[
        str | None, option("--until", "DATE", "Search only documents uploaded on this day or earlier")
    ] = None,
) -> int:
    """Search for passages and figures, without generating an answer."""
    end = f"{until}T23:59:59Z" if until else None
    narrowed = {
        "tags": tag,
        "language": language,
        "upload_date": {"start": since, "end": end} if since or end else None,
    }
    criteria = _filters(filters or ()) | {name: value for name, value in narrowed.items() if value}
    body = {"query": query, "top_k": top, "filters": criteria}
    results = call.api.call("POST", "/search", json=body)
    if call.terminal.as_json:
        call.terminal.json(results["results"])
    else:
        for number, hit in enumerate(results["results"], start=1):
            page = f", page {hit['page_number']}" if hit.get("page_number") else ""
            call.terminal.say(f"{number}. {hit['filename']}{page}  ({hit['score']:.2f})", "bold")
            text = hit.get("content") or hit.get("image_caption") or ""
            call.terminal.say(f"    {' '.join(text.split())[:_PREVIEW]}")
            if hit.get("image_url"):
                call.terminal.say(f"    {hit['image_url']}", "dim")
        if not results["results"]:
            call.terminal.say("Nothing found that you can read.")
    return DONE if results["results"] else NO_ANSWER


@app.add("summary")
def summarise(
    call: Call,
    documents: DocumentsArgument,
    *,
    focus: Annotated[str, option("--focus", "TEXT", "Question on which the summary focuses")] = "",
    language: Annotated[
        str | None,
        option("--language", "CODE", "Language of the summary, such as de (default: that of the documents)"),
    ] = None,
) -> int:
    """Summarise 1-20 documents, with sources."""
    order: dict[str, Any] = {"doc_ids": [resolve(call.api, name) for name in documents]}
    order |= {"focus": focus} if focus else {}
    order |= {"language": language} if language else {}
    headers = {"Idempotency-Key": uuid.uuid4().hex}
    view = call.api.call("POST", "/summaries", json=order, headers=headers)
    path = f"/summaries/{segment(view['summary_id'])}"
    try:
        view = _when_ended(call.api, call.terminal, path, view)
    except KeyboardInterrupt:
        call.api.call("POST", f"{path}/cancel")
        call.terminal.note("The summary is cancelled.", "yellow")
        return INTERRUPTED
    if view["status"] != "completed":
        message = view.get("error") or f"The summary is {view['status']}."
        raise CommandError(message, code=view.get("error_type") or "")
    if call.terminal.as_json:
        call.terminal.json(view)
        return DONE
    _print(call.api, call.terminal, view["result"])
    return DONE


def summary_id_of(api: Api, name: str) -> str:
    """Return the summary id, resolving `last` to the newest summary.

    Raises:
        CommandError: there is no summary yet.
    """
    if name != "last":
        return name
    summaries = api.call("GET", "/summaries", params={"limit": 1})["summaries"]
    if not summaries:
        raise CommandError("You have no summaries yet.", "Create a summary first.")
    return str(summaries[0]["summary_id"])


@summaries.add("list")
def list_summaries(call: Call, *, limit: LimitOption = 20) -> None:
    """List your summaries, newest first."""
    call.terminal.rows(
        call.api.items("/summaries", "summaries", limit),
        ("Focus", "Documents", "Status", "Begun", "Id"),
        lambda one: (
            one["focus"], one["document_count"], one["status"], moment(one["created_at"]), one["summary_id"]
        ),
        nothing="There are no summaries.",
    )  # fmt: skip


@summaries.add("show")
def show_summary(call: Call, summary: SummaryArgument) -> None:
    """Show a summary."""
    view = call.api.call("GET", f"/summaries/{segment(summary_id_of(call.api, summary))}")
    if view["result"] and not call.terminal.as_json:
        _print(call.api, call.terminal, view["result"])
        return
    words = view.get("error") or f"The summary is {view['status']} ({view['progress']:.0%})."
    call.terminal.result(view, words)


@summaries.add("delete")
def delete_summary(call: Call, summary: SummaryArgument, *, yes: YesOption = False) -> None:
    """Delete a summary and everything derived from it."""
    call.terminal.confirm(f"Delete the summary {summary}?", is_sure=yes)
    summary_id = summary_id_of(call.api, summary)
    call.api.call("DELETE", f"/summaries/{segment(summary_id)}")
    call.terminal.result({"summary_id": summary_id, "status": "deleted"}, f"{summary_id} is deleted.")


def _when_ended(api: Api, terminal: Terminal, path: str, view: dict[str, Any]) -> dict[str, Any]:
    with Live(Text("…"), console=terminal.progress, transient=True, auto_refresh=False) as live:
        while view["status"] == "running":
            done = ", ".join(
                f"{one.get('filename') or one['doc_id']} {one['status']}" for one in view["children"]
            )
            if terminal.progress.is_terminal:
                live.update(Text(clean(f"{view['progress']:.0%}  {done}")), refresh=True)
            time.sleep(_LOOK_EVERY_S)
            view = api.call("GET", path)
    return view


def _print(api: Api, terminal: Terminal, result: dict[str, Any]) -> None:
    terminal.markdown(with_page_labels(result["summary"]))
    for name, lines in (
        ("Key findings", [f"{one['text']} [{one['citation']['n']}]" for one in result["key_findings"]]),
        (
            "Figures",
            [f"{one['name']}: {one['value']} {one['unit'] or ''}".rstrip() for one in result["metrics"]],
        ),
    ):
        if lines:
            terminal.say(name, "bold")
        for line in lines:
            terminal.say(f"  - {line}")
    if result["tags"]:
        terminal.say(f"Tags: {', '.join(result['tags'])}")
    print_citations(api, terminal, result["citations"])
    for warning in result["warnings"]:
        terminal.say(warning, "yellow")


def _filters(expressions: Sequence[str]) -> dict[str, Any]:
    """Parse filters: `page_number=3` is a number, `tags=["a","b"]` a list, anything else text."""
    filters: dict[str, Any] = {}
    for one in expressions:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise CommandError(
                f"{one[:60]!r} is not a valid filter.", "Write NAME=VALUE, such as department=Safety."
            )
        try:
            filters[name] = json.loads(value)
        except ValueError:
            filters[name] = value
    return filters
