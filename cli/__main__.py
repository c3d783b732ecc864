"""`python -m cli`: Groundwork from the command line. Speaks HTTP to a running app, and nothing else.

Every failure is a message, never a traceback; GROUNDWORK_DEBUG=1 shows where.
"""

import argparse
import io
import os
import sys
import traceback
from collections.abc import Sequence

from cli import (
    ask,
    check,
    documents,
    identity,
    libraries,
    metrics,
    runs,
    searching,
    threads,
    uploading,
    users,
    workspace,
)
from cli.api import Api
from cli.commands import Tree
from cli.completion import register as register_completion
from cli.errors import DONE, FAILED, INTERRUPTED, CommandError
from cli.terminal import Terminal

_WITHOUT_APP = ("login", "logout", "completion")
_PIPE_CLOSED = 141  # as shells count: 128 + SIGPIPE


def command_tree() -> Tree:
    """Every command, in the order in which help shows them."""
    tree = Tree()
    for module in (
        identity,
        ask,
        workspace,
        uploading,
        documents,
        threads,
        runs,
        searching,
        libraries,
        metrics,
        users,
        check,
    ):
        module.register(tree)
    register_completion(tree)
    return tree


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code (cli/errors.py, docs/command-line.md)."""
    _accept_all_letters()
    given = command_tree().parse(sys.argv[1:] if arguments is None else arguments)
    terminal = Terminal.standard(as_json=getattr(given, "json", False))
    try:
        return _run(terminal, given)
    except CommandError as failed:
        return _tell(terminal, failed)
    except KeyboardInterrupt:
        terminal.note("Interrupted.", "yellow")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the output has seen enough. Python would complain again as it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED
    except Exception as failed:  # noqa: BLE001  # the last place where it can become a message
        return _tell(terminal, _in_words(failed))


def _accept_all_letters() -> None:
    """A terminal of few letters shows the others as ?."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _in_words(failed: Exception) -> CommandError:
    if os.environ.get("GROUNDWORK_DEBUG") == "1":
        traceback.print_exc()
    if isinstance(failed, OSError):
        where = f": {failed.filename}" if failed.filename else ""
        return CommandError(f"{failed.strerror or failed}{where}")
    message = f"Something unexpected happened ({type(failed).__name__})."
    hints = ("Does GROUNDWORK_URL name an app of this version?", "GROUNDWORK_DEBUG=1 shows where it was.")
    return CommandError(message, *hints)


def _run(terminal: Terminal, given: argparse.Namespace) -> int:
    if given.words in _WITHOUT_APP:
        return given.perform(None, terminal, given) or DONE
    url = identity.wanted_url(given)
    with Api(url, identity.token_for(url), lambda seconds, why: _wait(terminal, seconds, why)) as api:
        return given.perform(api, terminal, given) or DONE


def _wait(terminal: Terminal, seconds: float, why: str) -> None:
    terminal.note(f"{why} Waiting {seconds:.0f} s.", "yellow")


def _tell(terminal: Terminal, failed: CommandError) -> int:
    """On standard error; with --json also as the result, so that programs need not parse text."""
    terminal.note(str(failed), "red")
    for hint in failed.hints:
        terminal.note(f"  {hint}", "")
    if terminal.as_json:
        error = {"detail": str(failed), "hints": failed.hints, "status": failed.status, "code": failed.code}
        terminal.json({"error": error})
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
