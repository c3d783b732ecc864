"""`python -m cli`: the command line, an HTTP client of a running app.

Every failure is printed as a message without a traceback; GROUNDWORK_DEBUG=1 adds the traceback.
"""

import io
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import closing
from typing import cast

import typer

from cli import (
    ask,
    check,
    documents,
    identity,
    libraries,
    metrics,
    runs,
    searching,
    sharing,
    threads,
    uploading,
    users,
    workspace,
)
from cli.commands import Surroundings, perform
from cli.completion import complete, shell_instruction
from cli.errors import FAILED, INTERRUPTED, CommandError
from cli.terminal import Terminal

# The modules are imported because each one registers its commands.
_MODULES = (
    ask,
    check,
    documents,
    identity,
    libraries,
    metrics,
    runs,
    searching,
    sharing,
    threads,
    uploading,
    users,
    workspace,
)
_PIPE_CLOSED = 141  # exit code if the reader closed the pipe: 128 + SIGPIPE, as in shells


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code (cli/errors.py, docs/command-line.md)."""
    _accept_all_letters()
    if instruction := shell_instruction():
        return complete(instruction)
    surroundings = Surroundings(identity.connect)
    try:
        with closing(surroundings):
            return perform(sys.argv[1:] if arguments is None else arguments, surroundings)
    except typer.Exit as ended:  # raised after printing the help or the version
        return ended.exit_code
    except (Exception, KeyboardInterrupt) as failed:  # noqa: BLE001  # the last place to make it a message
        return _report(surroundings.terminal, failed)


def _report(terminal: Terminal, failed: BaseException) -> int:
    """Print an exception as a message and return its exit code."""
    if isinstance(failed, KeyboardInterrupt):
        terminal.note("Interrupted.", "yellow")
        return INTERRUPTED
    if isinstance(failed, BrokenPipeError):
        # The reader closed the pipe. Python would report the error again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED
    if isinstance(failed, typer.TyperException):
        cast(typer.BadParameter, failed).show()  # prints the usage too, as for all parsing errors
        return FAILED
    return _print_error(terminal, failed if isinstance(failed, CommandError) else _in_words(failed))


def _accept_all_letters() -> None:
    """Make the output streams replace characters that the terminal can't encode with
    `?` instead of failing.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _in_words(failed: BaseException) -> CommandError:
    if os.environ.get("GROUNDWORK_DEBUG") == "1":
        traceback.print_exc()
    if isinstance(failed, OSError):
        where = f": {failed.filename}" if failed.filename else ""
        return CommandError(f"{failed.strerror or failed}{where}")
    message = f"Something unexpected happened ({type(failed).__name__})."
    hints = ("Does GROUNDWORK_URL name an app of this version?", "GROUNDWORK_DEBUG=1 shows where it was.")
    return CommandError(message, *hints)


def _print_error(terminal: Terminal, failed: CommandError) -> int:
    """Print an error on standard error. With --json, also print it as the result, so that programs don't have
    to parse text.
    """
    terminal.note(str(failed), "red")
    for hint in failed.hints:
        terminal.note(f"  {hint}", "")
    if terminal.as_json:
        error = {"detail": str(failed), "hints": failed.hints, "status": failed.status, "code": failed.code}
        terminal.json({"error": error})
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
