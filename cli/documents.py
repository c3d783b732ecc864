"""`documents`: what the user may see, and what its owner may change. `audit`: whether everything agrees."""

import argparse
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import httpx
from rich.text import Text

from cli.api import Api
from cli.commands import Tree, program_name
from cli.errors import DONE, FAILED, NOT_ALL_WELL, CommandError
from cli.terminal import Terminal, clean, moment

_STYLES = {"ready": "green", "failed": "red"}
_ID = re.compile(r"[0-9a-f]{24}")
_FILTERS = ("project", "type", "department", "language", "author", "filename", "tags")
_PARAMETERS = {"project": "project_id", "type": "document_type"}


def register(tree: Tree) -> None:
    """The commands of this file."""
    listing = tree.leaf("documents list", list_documents, "list documents, running and failed ones first")
    for name in _FILTERS:
        listing.add_argument(f"--{name}", metavar="VALUE", help=f"only those of this {name}")
    listing.add_argument("--limit", type=int, default=100, metavar="N", help="maximum number")
    showing = tree.leaf("documents show", show_document, "show one document")
    reading = tree.leaf("documents read", read_document, "print its text as Markdown")
    reading.add_argument("--page", type=int, metavar="N", help="start at this page")
    reading.add_argument("--parts", type=int, default=100, metavar="N", help="maximum number of parts")
    downloading = tree.leaf("documents download", download_document, "download the file")
    downloading.add_argument(
        "--out", metavar="FILE", help="target file (default: its own name; - is standard output)"
    )
    editing = tree.leaf("documents edit", edit_document, "correct its metadata, also for later versions")
    for name in ("title", "type", "author", "department", "language"):
        editing.add_argument(f"--{name}", metavar="TEXT", help="new value; empty text clears it")
    editing.add_argument("--tag", action="append", metavar="TAG", help="a tag; repeat for all tags")
    access = tree.leaf("documents access", change_access, "show or set who can read it")
    access.add_argument("--acl", action="append", metavar="NAME", help="a reader; may be repeated")
    access.add_argument("--private", action="store_true", help="only its owner")
    access.add_argument("--project", metavar="ID", help="move it to a project")
    again = tree.leaf("documents reingest", reingest_document, "ingest the file again")
    for parser in (showing, reading, downloading, editing, access, again):
        parser.add_argument("document", metavar="DOC", help="its id, or its file name if only one has it")
    importing = tree.leaf("documents import", import_page, "make a document of a web page")
    importing.add_argument("address", metavar="URL", help="its address")  # `url` is the app's
    importing.add_argument("--project", metavar="ID", help="project that it belongs to")
    importing.add_argument("--acl", action="append", metavar="NAME", help="a reader; may be repeated")
    deleting = tree.leaf(
        "documents delete", delete_documents, "delete documents and everything made from them"
    )
    deleting.add_argument("documents", nargs="+", metavar="DOC", help="id, or file name")
    deleting.add_argument("--yes", action="store_true", help="do not ask")
    tree.leaf("audit", audit, "check that files, states and indexes agree (administrators)")


def resolve(api: Api, named: str) -> str:
    """The id of a document that is named by its id or its file name.

    Raises:
        CommandError: nothing, or more than one, has this name.
    """
    if _ID.fullmatch(named):
        return named
    if not named.strip():
        raise CommandError("A document needs a name or an id.")
    listed = api.call("GET", "/documents", params={"limit": 100})["documents"]
    found = {one["doc_id"]: one for one in listed if one["filename"] == named}
    more = api.call("GET", "/documents", params={"filename": named, "limit": 100})["documents"]
    found |= {one["doc_id"]: one for one in more if one["filename"] == named}
    if len(found) == 1:
        return str(next(iter(found)))
    if not found:
        raise CommandError(
            f"There is no document {named[:100]!r}.", f"`{program_name()} documents` lists them."
        )
    raise CommandError(
        f"{len(found)} documents are called {named[:100]!r}: say which by its id.",
        *(
            f"{one['doc_id']}  {one.get('title') or ''} {one.get('project_id') or ''}"
            for one in found.values()
        ),
    )


def list_documents(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Print the documents."""
    wanted = {_PARAMETERS.get(name, name): getattr(given, name) for name in _FILTERS if getattr(given, name)}
    terminal.rows(
        api.items("/documents", "documents", given.limit, wanted),
        ("Document", "Type", "Pages", "Status", "Id"),
        _cells,
        nothing="There are no such documents that you may see.",
    )


def show_document(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Print all that is known of one."""
    document = api.call("GET", f"/documents/{resolve(api, given.document)}")
    _show(terminal, document)


def read_document(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Print the text, part by part; with --json a list of the parts as the API shows them."""
    address = f"/documents/{resolve(api, given.document)}/readable"
    parameters: dict[str, Any] = {} if given.page is None else {"page": given.page}
    parts = []
    for _ in range(given.parts):
        wanted = "application/json" if terminal.as_json else "text/markdown"
        answered = api.send("GET", address, params=parameters, headers={"Accept": wanted})
        if terminal.as_json:
            parts.append(answered.json())
            cursor = parts[-1].get("cursor")
        else:
            terminal.markdown(answered.text)
            following = answered.links.get("next", {}).get("url", "")
            cursor = httpx.URL(following).params.get("cursor") if following else None
        if not cursor:
            break
        parameters = {"cursor": cursor}
    if terminal.as_json:
        terminal.json(parts)


def download_document(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Write the file; one that is there already is not overwritten unless it was named."""
    doc_id = resolve(api, given.document)
    parts = api.download(f"/documents/{doc_id}/content")
    if given.out == "-":
        for part in parts:
            sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()
        return
    filename = api.call("GET", f"/documents/{doc_id}")["filename"]
    path = Path(given.out or Path(clean(str(filename))).name)
    if path.exists() and not given.out:
        raise CommandError(f"{path} already exists.", "Choose another file with --out.")
    size_bytes = _write(path, parts)
    written = {"doc_id": doc_id, "path": str(path), "size_bytes": size_bytes}
    terminal.result(written, f"{path}: {size_bytes:,} bytes")


def edit_document(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Correct metadata."""
    names = {"title": "title", "type": "document_type", "author": "author", "department": "department"}
    names["language"] = "language"
    changes: dict[str, Any] = {
        field: getattr(given, name) or None
        for name, field in names.items()
        if getattr(given, name) is not None
    }
    if given.tag is not None:
        changes["tags"] = [tag for tag in given.tag if tag]
    if not changes:
        raise CommandError("Nothing to change.", "Give --title, --type, --author, --department, …")
    _show(terminal, api.call("PATCH", f"/documents/{resolve(api, given.document)}", json=changes))


def change_access(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Set who may read a document, or print it."""
    path = f"/documents/{resolve(api, given.document)}"
    if given.private and given.acl:
        raise CommandError("--private and --acl contradict each other.", "Give one of them.")
    if not given.acl and not given.private and given.project is None:
        document = api.call("GET", path)
    else:
        kept = given.acl or ([] if given.private else api.call("GET", path)["acl"])
        change = {"acl": kept, **({"project_id": given.project} if given.project else {})}
        document = api.call("PUT", f"{path}/access", json=change)
    if terminal.as_json:
        terminal.json({name: document.get(name) for name in ("doc_id", "owner_id", "acl", "project_id")})
    elif document.get("acl") is None:
        raise CommandError("Only its owner and administrators can see who may read it.")
    else:
        owner = document["owner_id"] or "no owner"
        others = [reader for reader in document["acl"] if reader != owner]
        terminal.say(f"{document['filename']}: {owner}, {', '.join(others) or 'nobody else'}")


def reingest_document(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Ingest it again; this continues after the command has ended."""
    _show(terminal, api.call("POST", f"/documents/{resolve(api, given.document)}/reingest"))


def import_page(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Have the app fetch a page; its ingestion continues after the command has ended."""
    wanted = {"url": given.address, "project_id": given.project, "acl": given.acl}
    body = {name: value for name, value in wanted.items() if value}
    _show(terminal, api.call("POST", "/documents/import", json=body))


def delete_documents(api: Api, terminal: Terminal, given: argparse.Namespace) -> int:
    """Delete documents; one that cannot be deleted does not keep the others. 0 only if all are."""
    doc_ids = [resolve(api, name) for name in given.documents]
    terminal.confirm(f"Delete {', '.join(given.documents)} and everything made of it?", is_sure=given.yes)
    outcomes = []
    for name, doc_id in zip(given.documents, doc_ids, strict=True):
        try:
            api.call("DELETE", f"/documents/{doc_id}")
            outcomes.append({"document": name, "doc_id": doc_id, "status": "deleting", "reason": ""})
        except CommandError as refused:
            outcomes.append({"document": name, "doc_id": doc_id, "status": "kept", "reason": str(refused)})
    if terminal.as_json:
        terminal.json(outcomes)
    else:
        for one in outcomes:
            is_gone = one["status"] == "deleting"
            terminal.say(
                f"{one['document']}: {'deleted' if is_gone else one['reason']}", "" if is_gone else "red"
            )
    gone = sum(one["status"] == "deleting" for one in outcomes)
    return DONE if gone == len(outcomes) else (NOT_ALL_WELL if gone else FAILED)


def audit(api: Api, terminal: Terminal, given: argparse.Namespace) -> int:
    """Print what does not agree. 0 only if everything does."""
    report = api.call("GET", "/maintenance/audit")
    if terminal.as_json:
        terminal.json(report)
        return DONE if report["agrees"] else NOT_ALL_WELL
    for difference in report["differences"]:
        terminal.say(f"{difference['kind']}  {difference['place']}: {difference['detail']}")
    unnamed = report["difference_count"] - len(report["differences"])
    if unnamed:
        terminal.say(f"… and {unnamed} more")
    counts = ", ".join(f"{count} {name}" for name, count in report["counts"].items())
    verdict = "Everything agrees" if report["agrees"] else f"{report['difference_count']} differences"
    terminal.say(f"{verdict}: {counts}.")
    if report["share"] < 1:
        terminal.say(f"Looked at {report['share']:.1%} of all documents; the next run checks another part.")
    return DONE if report["agrees"] else NOT_ALL_WELL


def _cells(document: Mapping[str, Any]) -> list[Any]:
    status = str(document["status"])
    reason = f": {document['status_reason']}" if document.get("status_reason") else ""
    cells = [document.get(name) for name in ("filename", "document_type", "page_count")]
    return [*cells, Text(clean(status + reason), style=_STYLES.get(status, "yellow")), document["doc_id"]]


def _show(terminal: Terminal, document: dict[str, Any]) -> None:
    if terminal.as_json:
        terminal.json(document)
        return
    for name, value in document.items():
        if name == "history":
            for phase in value:
                spent = "" if phase["seconds"] is None else f", {phase['seconds']} s"
                terminal.say(f"  {moment(phase['at'])}  {phase['status']}{spent}", "dim")
        elif value not in (None, "", [], 0):
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            terminal.say(f"{name + ':':<18} {moment(shown) if name == 'upload_date' else shown}")


def _write(path: Path, parts: Iterable[bytes]) -> int:
    """Aside and moved into place: what breaks off leaves no half file."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    size_bytes = 0
    try:
        with draft.open("wb") as file:
            for part in parts:
                size_bytes += file.write(part)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return size_bytes
