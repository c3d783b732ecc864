"""For administrators: `libraries` shows the synchronised SharePoint libraries."""

import argparse
from typing import Any

from cli.api import Api
from cli.commands import Tree
from cli.errors import DONE, NOT_ALL_WELL
from cli.terminal import Terminal, moment


def register(tree: Tree) -> None:
    """Add the commands of this file."""
    tree.leaf("libraries", show_libraries, "show synchronised SharePoint libraries (administrators)")


def show_libraries(api: Api, terminal: Terminal, given: argparse.Namespace) -> int:
    """Print each library with its counts. Return 0 unless one failed or is hidden."""
    del given
    found = api.call("GET", "/sharepoint")
    libraries: list[dict[str, Any]] = found["libraries"]
    if terminal.as_json:
        terminal.json(found)
    else:
        terminal.rows(
            libraries,
            ("Library", "Status", "Last success", "Documents", "Hidden", "Skipped"),
            lambda one: (
                one["name"],
                one["error"] or one["status"],
                moment(one["succeeded_at"]) if one["succeeded_at"] else "",
                str(one["counts"]["files"]),
                str(one["counts"]["hidden"]),
                ", ".join(f"{count} {reason}" for reason, count in one["counts"]["skipped"].items()),
            ),
            nothing="No library is synchronised: SHAREPOINT_LIBRARIES is empty.",
        )
        for library in libraries:
            for example in library["counts"]["examples"]:
                terminal.note(f"{library['name']}: {example['name']}: {example['reason']}")
    failed = any(library["status"] in ("failed", "closed") for library in libraries)
    return NOT_ALL_WELL if failed else DONE
