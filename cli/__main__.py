"""`python -m cli`: upload, ask, documents, audit, login. Speaks HTTP to a running app, and nothing else."""

import argparse
import getpass
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from cli.api import Api, CommandError
from cli.ask import ask
from cli.documents import audit, list_documents
from cli.token_file import keep_token
from cli.uploading import UploadOptions, upload


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code: 0 done, 1 not all well, 2 an error, 3 no answer found."""
    given = _parser().parse_args(arguments)
    # JSON alone on standard output; progress and errors beside it.
    console = Console(stderr=given.json)
    try:
        if given.command == "login":
            return _login(given.token, console)
        with Api.from_environment() as api:
            return _run(api, given, console)
    except (CommandError, PermissionError) as failed:
        _print_error(failed)
        return 2
    except KeyboardInterrupt:
        return 130


def _run(api: Api, given: argparse.Namespace, console: Console) -> int:
    output = Console()
    if given.command == "ask":
        return ask(api, console, output, given.question, as_json=given.json)
    if given.command == "documents":
        return list_documents(api, output, as_json=given.json)
    if given.command == "audit":
        return audit(api, output, as_json=given.json)
    options = UploadOptions(given.project, tuple(given.acl) if given.acl else None, given.timeout)
    return upload(api, console, output, given.source, options, as_json=given.json)


def _login(token: str | None, console: Console) -> int:
    # Asked for, a token does not stay in the shell's history.
    token = (token or getpass.getpass("Token: ")).strip()
    if not token or not token.isascii():
        raise CommandError("That is no token.", "A local stack prints tokens as it starts.")
    console.print(f"Kept in {keep_token(token)}, readable by you alone.")
    return 0


def _print_error(failed: Exception) -> None:
    console = Console(stderr=True)
    console.print(Text(str(failed), style="red"))
    for hint in getattr(failed, "hints", ()):
        console.print(Text(f"  {hint}"))


def _parser() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--json", action="store_true", help="print JSON")
    parser = argparse.ArgumentParser(
        prog="python -m cli",
        description="The app at GROUNDWORK_URL (default http://127.0.0.1:7071), from the command line.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    sending = commands.add_parser("upload", parents=[shared], help="send a file or a folder, and wait for it")
    sending.add_argument("source", type=Path, metavar="FOLDER")
    sending.add_argument("--project", help="project that the documents belong to")
    sending.add_argument("--acl", action="append", metavar="NAME", help="who may read them; may be repeated")
    sending.add_argument("--timeout", type=float, default=3600.0, metavar="SECONDS")
    asking = commands.add_parser("ask", parents=[shared], help="ask a question")
    asking.add_argument("question")
    commands.add_parser("documents", parents=[shared], help="list documents")
    commands.add_parser("audit", parents=[shared], help="check that everything agrees (administrators)")
    login = commands.add_parser("login", parents=[shared], help="keep a token")
    login.add_argument("--token", help="asked for when it is left out")
    return parser


if __name__ == "__main__":
    sys.exit(main())
