"""The tree of commands: words, a help line, options, and the function that does it."""

import argparse
import difflib
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from cli.terminal import Terminal

Command = Callable[[Any, Terminal, argparse.Namespace], int | None]
"""Takes the app (None for commands without one), the terminal and the arguments; None is exit code 0."""

_DEFAULTS = {"documents": "list", "threads": "list", "memory": "list", "runs": "list", "summaries": "list"}
_GROUPS = {
    "documents": "list, show, change and delete documents",
    "threads": "list, show, rename and delete threads",
    "runs": "list, show, follow, answer, cancel and rate runs (one per question)",
    "summaries": "list, show and delete summaries",
    "memory": "list and forget what is remembered of your questions",
    "workspace": "list, show and delete files that agents wrote for you",
    "users": "erase people, show who did what (administrators)",
}


def program_name() -> str:
    """How the command line was called: `groundwork` if it is installed, else as a module."""
    return "groundwork" if Path(sys.argv[0]).stem == "groundwork" else "python -m cli"


def _version() -> str:
    try:
        return metadata.version("groundwork")
    except metadata.PackageNotFoundError:  # called in a checkout
        text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
        return str(tomllib.loads(text)["project"]["version"])


def _meant(typed: str, known: Iterable[str]) -> str:
    """A question that names what is closest; "" if nothing is close."""
    close = difflib.get_close_matches(typed, [str(one) for one in known], n=1)
    return f" Did you mean {close[0]}?" if close else ""


class _Parser(argparse.ArgumentParser):
    """Suggests what was probably meant."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            name = action.metavar or action.dest
            what = str(name).lower() if isinstance(name, str) else "choice"
            raise argparse.ArgumentError(
                None, f"There is no {what} {value!r}.{_meant(str(value), action.choices)}"
            )


class Tree:
    """All commands, as one parser."""

    def __init__(self) -> None:
        self._shared = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
        self._shared.add_argument("--json", action="store_true", help="print JSON only")
        self._shared.add_argument(
            "--url", help="the app's address (default GROUNDWORK_URL, or a local stack)"
        )
        self.parser = _Parser(
            prog=program_name(),
            description="Ask questions and manage documents from the command line.",
            epilog="Exit codes: 0 done, 1 not all succeeded, 2 an error, 3 no answer in the documents, "
            "4 a clarifying question. See docs/command-line.md.",
            parents=[self._shared],
            allow_abbrev=False,
        )
        self.parser.add_argument("--version", action="version", version=f"groundwork {_version()}")
        self._commands = self.parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
        self._groups: dict[str, Any] = {}
        self.leaves: dict[str, argparse.ArgumentParser] = {}

    def leaf(self, words: str, run: Command, summary: str) -> argparse.ArgumentParser:
        """Add a command of one word or two; returns its parser, for its options."""
        first, _, second = words.partition(" ")
        under = self._group(first) if second else self._commands
        parser: argparse.ArgumentParser = under.add_parser(
            second or first, help=summary, description=f"{summary[0].upper()}{summary[1:]}.",
            parents=[self._shared], allow_abbrev=False,
        )  # fmt: skip
        parser.set_defaults(perform=run, words=words)
        self.leaves[words] = parser
        return parser

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """What was typed. `documents` alone is `documents list`."""
        given, unknown = self.parser.parse_known_args(list(_completed(arguments)))
        if unknown:
            leaf = self.leaves[given.words]
            options = [name for action in leaf._actions for name in action.option_strings]
            leaf.error(f"{given.words} has no {unknown[0]!r}.{_meant(unknown[0], options)}")
        return given

    def _group(self, name: str) -> Any:
        if name not in self._groups:
            parser = self._commands.add_parser(
                name, help=_GROUPS[name], description=f"{_GROUPS[name]}.".capitalize(), allow_abbrev=False
            )
            self._groups[name] = parser.add_subparsers(required=True, metavar="COMMAND")
        return self._groups[name]


def _completed(arguments: Sequence[str]) -> Iterator[str]:
    """With the second word of a group that is named alone."""
    rest = list(arguments)
    for at, word in enumerate(rest):
        yield word
        if word in _DEFAULTS and _is_first(rest[:at]):
            following = rest[at + 1] if at + 1 < len(rest) else "--"
            if following.startswith("-") and following not in ("-h", "--help"):
                yield _DEFAULTS[word]


def _is_first(before: Sequence[str]) -> bool:
    """Whether only options of all commands stand before: the next word is the command."""
    is_value = False
    for word in before:
        if is_value:
            is_value = False
        elif word == "--url":
            is_value = True
        elif not word.startswith("-"):
            return False
    return not is_value
