"""`workspace`: files that agents wrote for the user. They are kept for a day."""

import sys
from typing import Annotated

import typer

from cli.api import segment
from cli.commands import Call, workspace
from cli.terminal import moment


@workspace.add("list")
def list_files(call: Call) -> None:
    """List files that agents wrote for you."""
    call.terminal.rows(
        call.api.call("GET", "/workspace")["files"],
        ("Name", "Bytes", "Deleted at"),
        lambda one: (one["name"], f"{one['size_bytes']:,}", moment(one["expires_at"])),
        nothing="There are no files.",
    )


@workspace.add("show")
def show_file(
    call: Call, file: Annotated[str, typer.Argument(metavar="FILE", help="Name of the file in the workspace")]
) -> None:
    """Write a file from your workspace to standard output."""
    for part in call.api.download(f"/workspace/{segment(file)}"):
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()


@workspace.add("delete")
def delete_file(
    call: Call, file: Annotated[str, typer.Argument(metavar="FILE", help="Name of the file in the workspace")]
) -> None:
    """Delete a file from your workspace."""
    call.api.call("DELETE", f"/workspace/{segment(file)}")
    call.terminal.result({"name": file, "status": "deleted"}, f"{file} is deleted.")
