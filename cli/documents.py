"""`documents`: list, read, share and change documents. `audit`: check that all stores agree."""

import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from rich.text import Text

from cli.api import Api
from cli.commands import (
    Call,
    DocumentArgument,
    DocumentsArgument,
    LimitOption,
    ReadersOption,
    YesOption,
    app,
    documents,
    option,
    program_name,
)
from cli.errors import DONE, FAILED, NOT_ALL_WELL, CommandError
from cli.terminal import Terminal, clean, moment

_STYLES = {"ready": "green", "failed": "red"}
_ID = re.compile(r"[0-9a-f]{24}")


def resolve(api: Api, name: str) -> str:
    """Return the id of a document given by id or file name.

    Raises:
        CommandError: no document, or more than one, has this name.
    """
    if _ID.fullmatch(name):
        return name
    if not name.strip():
        raise CommandError("A document needs a name or an id.")
    listed = api.call("GET", "/documents", params={"limit": 100})["documents"]
    matches = {one["doc_id"]: one for one in listed if one["filename"] == name}
    more = api.call("GET", "/documents", params={"filename": name, "limit": 100})["documents"]
    matches |= {one["doc_id"]: one for one in more if one["filename"] == name}
    if len(matches) == 1:
        return str(next(iter(matches)))
    if not matches:
        raise CommandError(f"No document named {name[:100]!r}.", f"`{program_name()} documents` lists them.")
    raise CommandError(
        f"{len(matches)} documents have the name {name[:100]!r}; give an id instead.",
        *(
            f"{one['doc_id']}  {one.get('title') or ''} {one.get('project_id') or ''}"
            for one in matches.values()
        ),
    )


@documents.add("list")
def list_documents(
    call: Call,
    *,
    project: Annotated[
        str | None, option("--project", "VALUE", "List only documents of this project")
    ] = None,
    document_type: Annotated[
        str | None, option("--type", "VALUE", "List only documents of this type")
    ] = None,
    department: Annotated[
        str | None, option("--department", "VALUE", "List only documents of this department")
    ] = None,
    language: Annotated[
        str | None, option("--language", "VALUE", "List only documents in this language")
    ] = None,
    author: Annotated[str | None, option("--author", "VALUE", "List only documents of this author")] = None,
    filename: Annotated[
        str | None, option("--filename", "VALUE", "List only documents with this file name")
    ] = None,
    tags: Annotated[str | None, option("--tags", "VALUE", "List only documents with this tag")] = None,
    limit: LimitOption = 100,
) -> None:
    """List documents, running and failed ones first."""
    values = {
        "project_id": project,
        "document_type": document_type,
        "department": department,
        "language": language,
        "author": author,
        "filename": filename,
        "tags": tags,
    }
    filters = {name: value for name, value in values.items() if value}
    call.terminal.rows(
        call.api.items("/documents", "documents", limit, filters),
        ("Document", "Type", "Pages", "Status", "Id"),
        _cells,
        nothing="There are no such documents that you may see.",
    )


@documents.add("show")
def show_document(call: Call, document: DocumentArgument) -> None:
    """Show the metadata and status of a document."""
    _show(call.terminal, call.api.call("GET", f"/documents/{resolve(call.api, document)}"))


@documents.add("read")
def read_document(
    call: Call,
    document: DocumentArgument,
    *,
    page: Annotated[int | None, option("--page", "N", "Print only this page")] = None,
    parts: Annotated[int, option("--parts", "N", "Maximum number of parts of the text to print")] = 100,
) -> None:
    """Print the text of a document or a page as Markdown."""
    base = f"/documents/{resolve(call.api, document)}"
    address = f"{base}/readable" if page is None else f"{base}/pages/{page}"
    parameters: dict[str, Any] = {}
    accepted = {"Accept": "application/json" if call.terminal.as_json else "text/markdown"}
    chunks = []
    for _ in range(parts):
        answered = call.api.send("GET", address, params=parameters, headers=accepted)
        if call.terminal.as_json:
            chunks.append(answered.json())
            cursor = chunks[-1].get("cursor")
        else:
            call.terminal.markdown(answered.text)
            following = answered.links.get("next", {}).get("url", "")
            cursor = httpx.URL(following).params.get("cursor") if following else None
        if not cursor:
            break
        parameters = {"cursor": cursor}
    if call.terminal.as_json:
        call.terminal.json(chunks)


@documents.add("download")
def download_document(
    call: Call,
    document: DocumentArgument,
    *,
    out: Annotated[
        str | None,
        option("--out", "FILE", "File to write, by default the document's file name; `-` is standard output"),
    ] = None,
) -> None:
    """Download the original file of a document."""
    doc_id = resolve(call.api, document)
    parts = call.api.download(f"/documents/{doc_id}/content")
    if out == "-":
        for part in parts:
            sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()
        return
    filename = call.api.call("GET", f"/documents/{doc_id}")["filename"]
    path = Path(out or Path(clean(str(filename))).name)
    if path.exists() and not out:
        raise CommandError(f"{path} already exists.", "Choose another path with --out.")
    size_bytes = _write(path, parts)
    result = {"doc_id": doc_id, "path": str(path), "size_bytes": size_bytes}
    call.terminal.result(result, f"{path}: {size_bytes:,} bytes")


@documents.add("edit")
def edit_document(
    call: Call,
    document: DocumentArgument,
    *,
    title: Annotated[str | None, option("--title", "TEXT", "New value")] = None,
    document_type: Annotated[str | None, option("--type", "TEXT", "New value")] = None,
    author: Annotated[str | None, option("--author", "TEXT", "New value; an empty text clears it")] = None,
    department: Annotated[
        str | None, option("--department", "TEXT", "New value; an empty text clears it")
    ] = None,
    language: Annotated[
        str | None, option("--language", "TEXT", "New value; an empty text clears it")
    ] = None,
    tag: Annotated[
        list[str] | None, option("--tag", "TAG", "New tag. Repeat for each tag; all old tags are replaced.")
    ] = None,
) -> None:
    """Correct a document's metadata, also for later versions."""
    texts = {
        "title": title,
        "document_type": document_type,
        "author": author,
        "department": department,
        "language": language,
    }
    if title == "" or document_type == "":
        raise CommandError("A document needs a title and a type.", "Other fields can be cleared.")
    changes: dict[str, Any] = {name: text or None for name, text in texts.items() if text is not None}
    if tag is not None:
        changes["tags"] = [text for text in tag if text]
    if not changes:
        raise CommandError("No change was given.", "Specify --title, --type, --author, --department, …")
    _show(call.terminal, call.api.call("PATCH", f"/documents/{resolve(call.api, document)}", json=changes))


@documents.add("access")
def change_access(
    call: Call,
    document: DocumentArgument,
    *,
    acl: ReadersOption = None,
    private: Annotated[
        bool, typer.Option("--private", help="Make the document readable only by its owner")
    ] = False,
    project: Annotated[
        str | None, option("--project", "ID", "Project to which the document is moved")
    ] = None,
) -> None:
    """Show or set who can read a document."""
    path = f"/documents/{resolve(call.api, document)}"
    if private and acl:
        raise CommandError("--private and --acl exclude each other.", "Use only one of them.")
    if not acl and not private and project is None:
        access = call.api.call("GET", path)
    else:
        acl_kept = acl or ([] if private else call.api.call("GET", path)["acl"])
        change = {"acl": acl_kept, **({"project_id": project} if project else {})}
        access = call.api.call("PUT", f"{path}/access", json=change)
    if call.terminal.as_json:
        call.terminal.json({name: access.get(name) for name in ("doc_id", "owner_id", "acl", "project_id")})
    elif access.get("acl") is None:
        raise CommandError("Only the owner and administrators can see who may read this document.")
    else:
        owner = access["owner_id"] or "no owner"
        others = [reader for reader in access["acl"] if reader != owner]
        call.terminal.say(f"{access['filename']}: {owner}, {', '.join(others) or 'nobody else'}")


@documents.add("reingest")
def reingest_document(call: Call, document: DocumentArgument) -> None:
    """Ingest the file of a document again."""
    _show(call.terminal, call.api.call("POST", f"/documents/{resolve(call.api, document)}/reingest"))


@documents.add("import")
def import_page(
    call: Call,
    address: Annotated[str, typer.Argument(metavar="URL", help="URL of the page to import")],
    *,
    project: Annotated[str | None, option("--project", "ID", "Project to which the document belongs")] = None,
    acl: ReadersOption = None,
) -> None:
    """Import a web page as a document."""
    request = {"url": address, "project_id": project, "acl": acl}
    body = {name: value for name, value in request.items() if value}
    _show(call.terminal, call.api.call("POST", "/documents/import", json=body))


@documents.add("delete")
def delete_documents(call: Call, names: DocumentsArgument, *, yes: YesOption = False) -> int:
    """Delete documents and everything derived from them."""
    doc_ids = [resolve(call.api, name) for name in names]
    call.terminal.confirm(f"Delete {', '.join(names)} and everything derived from it?", is_sure=yes)
    outcomes = []
    for name, doc_id in zip(names, doc_ids, strict=True):
        try:
            call.api.call("DELETE", f"/documents/{doc_id}")
            outcomes.append({"document": name, "doc_id": doc_id, "status": "deleting", "reason": ""})
        except CommandError as refused:
            outcomes.append({"document": name, "doc_id": doc_id, "status": "kept", "reason": str(refused)})
    if call.terminal.as_json:
        call.terminal.json(outcomes)
    else:
        for one in outcomes:
            is_gone = one["status"] == "deleting"
            call.terminal.say(
                f"{one['document']}: {'deleted' if is_gone else one['reason']}", "" if is_gone else "red"
            )
    deleted_count = sum(one["status"] == "deleting" for one in outcomes)
    return DONE if deleted_count == len(outcomes) else (NOT_ALL_WELL if deleted_count else FAILED)


@app.add("audit")
def audit(call: Call) -> int:
    """Check that files, states and indexes agree (administrators)."""
    report = call.api.call("GET", "/maintenance/audit")
    if call.terminal.as_json:
        call.terminal.json(report)
        return DONE if report["agrees"] else NOT_ALL_WELL
    for difference in report["differences"]:
        call.terminal.say(f"{difference['kind']}  {difference['place']}: {difference['detail']}")
    unnamed = report["difference_count"] - len(report["differences"])
    if unnamed:
        call.terminal.say(f"… and {unnamed} more")
    counts = ", ".join(f"{count} {name}" for name, count in report["counts"].items())
    verdict = "Everything agrees" if report["agrees"] else f"{report['difference_count']} differences"
    call.terminal.say(f"{verdict}: {counts}.")
    if report["share"] < 1:
        call.terminal.say(
            f"Checked {report['share']:.1%} of all documents; the next run checks another part."
        )
    return DONE if report["agrees"] else NOT_ALL_WELL


def _cells(document: Mapping[str, Any]) -> list[Any]:
    status = str(document["status"])
    unreadable = document.get("unreadable_pages")
    warning = f"{unreadable} page{'s' if unreadable > 1 else ''} without readable text" if unreadable else ""
    text = document.get("status_reason") or warning
    reason = f": {text}" if text else ""
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
            text = ", ".join(map(str, value)) if isinstance(value, list) else value
            terminal.say(f"{name + ':':<18} {moment(text) if name == 'upload_date' else text}")


def _write(path: Path, parts: Iterable[bytes]) -> int:
    """Write to a temporary file and rename it at the end, so that a failure leaves no partial file."""
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
