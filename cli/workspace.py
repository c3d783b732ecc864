"""`workspace`: the files that agents wrote for the user, kept for a day."""

import argparse
import sys

from cli.api import Api, segment
from cli.commands import Tree
from cli.terminal import Terminal, moment


def register(tree: Tree) -> None:
    """The commands of this file."""
    tree.leaf("workspace list", list_files, "list files that agents wrote for you")
    showing = tree.leaf("workspace show", show_file, "write a file to standard output")
    deleting = tree.leaf("workspace delete", delete_file, "delete a file")
    for parser in (showing, deleting):
        parser.add_argument("file", metavar="FILE", help="its name")


def list_files(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Print the files."""
    del given
    terminal.rows(
        api.call("GET", "/workspace")["files"],
        ("Name", "Bytes", "Deleted at"),
        lambda one: (one["name"], f"{one['size_bytes']:,}", moment(one["expires_at"])),
        nothing="There are no files.",
    )


def show_file(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Print a file as it is."""
    del terminal
    for part in api.download(f"/workspace/{segment(given.file)}"):
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()


def delete_file(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Delete one. It would go within a day by itself, so nothing is asked."""
    api.call("DELETE", f"/workspace/{segment(given.file)}")
    terminal.result({"name": given.file, "status": "deleted"}, f"{given.file} is deleted.")
