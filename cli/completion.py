"""`completion`: shell completion for bash, zsh and fish."""

import os
from typing import Annotated, Literal

import typer
from typer.completion import get_completion_inspect_parameters, shell_complete

from cli.commands import Call, app

_VARIABLE = "_GROUNDWORK_COMPLETE"  # the completion script sets this variable


@app.add("completion")
def print_script(call: Call, shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument()]) -> None:
    """Print a script that completes commands in a shell."""
    complete(f"source_{shell}")


def complete(instruction: str) -> int:
    """Print a shell's completion script (`source_bash`) or the completions of a command line
    (`complete_bash`), and return the exit code.
    """
    get_completion_inspect_parameters()  # this call registers the supported shells
    return shell_complete(typer.main.get_command(app), {}, "groundwork", _VARIABLE, instruction)


def shell_instruction() -> str:
    """Return the instruction of a completion script, or "" if this process wasn't started for completion."""
    return os.environ.get(_VARIABLE, "")
