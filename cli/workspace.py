"""`workspace`: the files that agents wrote for the user, kept for a day."""

import argparse
import sys

from cli.api import Api, segment
from cli.commands import Tree
from cli.errors import DONE
from cli.terminal import Terminal, moment


def register(tree: Tree) -> None:
    """The commands of this file."""
    tree.leaf("workspace list", list_files, "list files that agents wrote for you")
    showing = tree.leaf("workspace show", show_file, "write a file to standard output")
    deleting = tree.leaf("workspace delete", delete_file, "delete a file")
    for parser in (showing, deleting):
        parser.add_argument("file", metavar="FILE", help="its name")


def list_files(api: Api, terminal: Terminal, given: argparse.Namespace) -> int:
    """Print the files."""
    del given
    files = api.call("GET", "/workspace")["files"]
    if terminal.as_json:
        terminal.json(files)
        return DONE
    terminal.table(
        ("Name", "Bytes", "Deleted at"),
        ((one["name"], f"{one['size_bytes']:,}", moment(one["expires_at"])) for one in files),
        nothing="There are no files.",
    )
    return DONE


def show_file(api: Api, terminal: Terminal, given: argparse.Namespace) -> int:
    """Print a file as it is."""
    del terminal
    for part in api.download(f"/workspace/{segment(given.file)}"):
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()
    return DONE


def delete_file(api: Api, terminal: Terminal, given: argparse.Namespace) -> int:
    """Delete one. It would go within a day by itself, so nothing is asked."""
    api.call("DELETE", f"/workspace/{segment(given.file)}")
    if terminal.as_json:
        terminal.json({"name": given.file, "status": "deleted"})
    else:
        terminal.say(f"{given.file} is deleted.")
    return DONE
