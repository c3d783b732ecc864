"""`documents`: what the user may see. `audit`: whether everything agrees, for administrators."""

import json
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli.api import Api

_STYLES = {"ready": "green", "failed": "red"}


def list_documents(api: Api, console: Console, *, as_json: bool) -> int:
    """Print the documents, those in work first."""
    found = api.call("GET", "/documents")
    if as_json:
        console.print_json(json.dumps(found["documents"]))
        return 0
    table = Table("Document", "Title", "Type", "Pages", "Status", "Id")
    for document in found["documents"]:
        table.add_row(*_cells(document))
    console.print(table if found["documents"] else "There are no documents that you may see.")
    return 0


def _cells(document: dict[str, Any]) -> list[Text]:
    status = str(document["status"])
    told = f"{status}: {document['status_reason']}" if document.get("status_reason") else status
    cells = [document.get(name) for name in ("filename", "title", "document_type", "page_count")]
    texts = [Text("" if cell is None else str(cell)) for cell in cells]
    return [*texts, Text(told, style=_STYLES.get(status, "yellow")), Text(document["doc_id"], style="dim")]


def audit(api: Api, console: Console, *, as_json: bool) -> int:
    """Print what does not agree. 0 only if everything does."""
    report = api.call("GET", "/maintenance/audit")
    if as_json:
        console.print_json(json.dumps(report))
        return 0 if report["agrees"] else 1
    counts = ", ".join(f"{count} {name}" for name, count in report["counts"].items())
    for difference in report["differences"]:
        console.print(Text(f"{difference['kind']}  {difference['place']}: {difference['detail']}"))
    unnamed = report["difference_count"] - len(report["differences"])
    if unnamed:
        console.print(f"… and {unnamed} more")
    verdict = "Everything agrees" if report["agrees"] else f"{report['difference_count']} differences"
    console.print(f"{verdict}: {counts}.")
    return 0 if report["agrees"] else 1
