"""`search`: passages and figures for a query. `summary`, `summaries`: summaries of several documents."""

import argparse
import json
import time
import uuid
from typing import Any

from rich.live import Live
from rich.text import Text

from cli.answers import print_citations
from cli.api import Api, segment
from cli.commands import Tree
from cli.documents import resolve
from cli.errors import DONE, INTERRUPTED, NO_ANSWER, CommandError
from cli.terminal import Terminal, clean, moment

_LOOK_EVERY_S = 1.0
_PREVIEW = 600  # characters of a passage


def register(tree: Tree) -> None:
    """The commands of this file."""
    searching = tree.leaf("search", search, "show passages and figures without an answer")
    searching.add_argument("query")
    searching.add_argument("--top", type=int, default=10, metavar="N", help="how many (1-50)")
    searching.add_argument(
        "--filter", action="append", default=[], metavar="NAME=VALUE", help="a filter; may be repeated"
    )
    searching.add_argument(
        "--tag", action="append", metavar="TAG", help="only documents with this tag; may be repeated"
    )
    searching.add_argument("--language", metavar="CODE", help="only documents in this language, such as de")
    searching.add_argument("--since", metavar="DATE", help="only documents uploaded on that day or later")
    searching.add_argument("--until", metavar="DATE", help="only documents uploaded on that day or earlier")
    summing = tree.leaf("summary", summarise, "summarise 1-20 documents, with sources")
    listing = tree.leaf("summaries list", list_summaries, "list your summaries, newest first")
    listing.add_argument("--limit", type=int, default=20, metavar="N", help="maximum number")
    showing = tree.leaf("summaries show", show_summary, "show one")
    deleting = tree.leaf("summaries delete", delete_summary, "delete one and everything made from it")
    deleting.add_argument("--yes", action="store_true", help="do not ask")
    for parser in (showing, deleting):
        parser.add_argument("summary", metavar="SUMMARY", help="its id; `last` is the newest one")
    summing.add_argument("documents", nargs="+", metavar="DOC", help="id, or file name")
    summing.add_argument("--focus", metavar="TEXT", default="", help="a question to focus on")
    summing.add_argument("--language", metavar="CODE", help="such as de (default: the documents' language)")


def search(api: Api, terminal: Terminal, given: argparse.Namespace) -> int:
    """Print what is found; 3 when that is nothing."""
    filters = _filters(given.filter) | _document_filters(given)
    body = {"query": given.query, "top_k": given.top, "filters": filters}
    found = api.call("POST", "/search", json=body)
    if terminal.as_json:
        terminal.json(found["results"])
    else:
        for number, hit in enumerate(found["results"], start=1):
            page = f", page {hit['page_number']}" if hit.get("page_number") else ""
            terminal.say(f"{number}. {hit['filename']}{page}  ({hit['score']:.2f})", "bold")
            text = hit.get("content") or hit.get("image_caption") or ""
            terminal.say(f"    {' '.join(text.split())[:_PREVIEW]}")
            if hit.get("image_url"):
                terminal.say(f"    {hit['image_url']}", "dim")
        if not found["results"]:
            terminal.say("Nothing found that you can read.")
    return DONE if found["results"] else NO_ANSWER


def summarise(api: Api, terminal: Terminal, given: argparse.Namespace) -> int:
    """Order a summary, wait for it, print it. Ctrl-C ends it.

    Raises:
        CommandError: it was refused, failed, or was cancelled.
    """
    order: dict[str, Any] = {"doc_ids": [resolve(api, name) for name in given.documents]}
    order |= {"focus": given.focus} if given.focus else {}
    order |= {"language": given.language} if given.language else {}
    headers = {"Idempotency-Key": uuid.uuid4().hex}
    view = api.call("POST", "/summaries", json=order, headers=headers)
    path = f"/summaries/{segment(view['summary_id'])}"
    try:
        view = _when_ended(api, terminal, path, view)
    except KeyboardInterrupt:
        api.call("POST", f"{path}/cancel")
        terminal.note("The summary is cancelled.", "yellow")
        return INTERRUPTED
    if view["status"] != "completed":
        message = view.get("error") or f"The summary is {view['status']}."
        raise CommandError(message, code=view.get("error_type") or "")
    if terminal.as_json:
        terminal.json(view)
        return DONE
    _print(api, terminal, view["result"])
    return DONE


def summary_id_of(api: Api, named: str) -> str:
    """The id of a summary, or of the newest one for `last`.

    Raises:
        CommandError: there is no summary yet.
    """
    if named != "last":
        return named
    summaries = api.call("GET", "/summaries", params={"limit": 1})["summaries"]
    if not summaries:
        raise CommandError("You have no summaries yet.", "Create one first.")
    return str(summaries[0]["summary_id"])


def list_summaries(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Print summaries."""
    terminal.rows(
        api.items("/summaries", "summaries", given.limit),
        ("Focus", "Documents", "Status", "Begun", "Id"),
        lambda one: (
            one["focus"], one["document_count"], one["status"], moment(one["created_at"]), one["summary_id"]
        ),
        nothing="There are no summaries.",
    )  # fmt: skip


def show_summary(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Print one, or how far it is."""
    view = api.call("GET", f"/summaries/{segment(summary_id_of(api, given.summary))}")
    if view["result"] and not terminal.as_json:
        _print(api, terminal, view["result"])
        return
    words = view.get("error") or f"The summary is {view['status']} ({view['progress']:.0%})."
    terminal.result(view, words)


def delete_summary(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Delete one."""
    terminal.confirm(f"Delete the summary {given.summary}?", is_sure=given.yes)
    summary_id = summary_id_of(api, given.summary)
    api.call("DELETE", f"/summaries/{segment(summary_id)}")
    terminal.result({"summary_id": summary_id, "status": "deleted"}, f"{summary_id} is deleted.")


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
    terminal.markdown(result["summary"])
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


def _document_filters(given: argparse.Namespace) -> dict[str, Any]:
    end = f"{given.until}T23:59:59Z" if given.until else None
    filters = {
        "tags": given.tag,
        "language": given.language,
        "upload_date": {"start": given.since, "end": end} if given.since or end else None,
    }
    return {name: value for name, value in filters.items() if value}


def _filters(given: list[str]) -> dict[str, Any]:
    """`page_number=3` is a number, `tags=["a","b"]` a list, anything else is text."""
    filters: dict[str, Any] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise CommandError(f"{one[:60]!r} is not a filter.", "Say NAME=VALUE, such as department=Safety.")
        try:
            filters[name] = json.loads(value)
        except ValueError:
            filters[name] = value
    return filters
