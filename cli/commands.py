"""The command tree. Modules add functions to a group; a function's docstring is the command's help."""

import sys
import tomllib
from collections.abc import Callable, Sequence
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from cli.api import Api
from cli.errors import DONE
from cli.terminal import Terminal

Function = TypeVar("Function", bound=Callable[..., int | None])


class Surroundings:
    """The environment of an invocation: the shared options, the terminal and a client of the app.

    Args:
        connect: returns a client for the signed-in user; called when a command first needs it.

    Attributes:
        as_json: whether `--json` was given.
        url: value of `--url`.
    """

    as_json = False
    url: str | None = None

    def __init__(self, connect: "Callable[[Surroundings], Api]") -> None:
        self._connect = connect

    @cached_property
    def terminal(self) -> Terminal:
        return Terminal.standard(as_json=self.as_json)

    @cached_property
    def api(self) -> Api:
        return self._connect(self)

    def close(self) -> None:
        """Close the connection to the app, if there is one."""
        if "api" in self.__dict__:
            self.api.close()


class Call(typer.Context):
    """An invocation of a command. The connection to the app is opened on first use."""

    @property
    def surroundings(self) -> Surroundings:
        surroundings: Surroundings = self.obj
        return surroundings

    @property
    def terminal(self) -> Terminal:
        return self.surroundings.terminal

    @property
    def api(self) -> Api:
        return self.surroundings.api


class _Command(TyperCommand):
    context_class = Call

    def get_params(self, ctx: Any) -> list[Any]:
        # The options `--json` and `--url` are accepted before and after the command's name.
        return [*super().get_params(ctx), *_shared_options(ctx.find_root())]


class _Group(TyperGroup):
    context_class = Call

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(self.commands)


class _ListingGroup(_Group):
    """A command group that runs its `list` command if no subcommand is given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_bare = not args or (args[0].startswith("-") and args[0] not in ("-h", "--help"))
        if is_bare and not ctx.resilient_parsing:  # shell completion lists the subcommands instead
            args = ["list", *args]
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        return [*super().get_params(ctx), *_shared_options(ctx.find_root())]


class Commands(typer.Typer):
    """A group of commands whose functions take a `Call`."""

    def __init__(self, cls: type[TyperGroup] = _Group, **options: Any) -> None:
        super().__init__(
            cls=cls,
            rich_markup_mode=None,
            add_completion=False,
            context_settings={"help_option_names": ["-h", "--help"]},
            **options,
        )

    def add(self, name: str) -> Callable[[Function], Function]:
        """Register a function as a command. Its result is the exit code; None means 0."""
        return self.command(name, cls=_Command)


def program_name() -> str:
    """Return the name of the program: `groundwork` if installed, otherwise the module call."""
    return "groundwork" if Path(sys.argv[0]).stem == "groundwork" else "python -m cli"


app = Commands(
    help="Ask questions and manage documents from the command line.",
    epilog="Exit codes: 0 done, 1 not all succeeded, 2 an error, 3 no answer in the documents, "
    "4 a clarifying question. See docs/command-line.md.",
)


def _group(name: str, summary: str, cls: type[TyperGroup] = _ListingGroup) -> Commands:
    group = Commands(cls, help=summary)
    app.add_typer(group, name=name)
    return group


documents = _group("documents", "List, show, change and delete documents.")
threads = _group("threads", "List, show, rename and delete threads.")
runs = _group("runs", "List, show, follow, answer, cancel and rate runs (one per question).")
summaries = _group("summaries", "List, show and delete summaries.")
memory = _group("memory", "List and forget what is remembered of your questions.")
workspace = _group("workspace", "List, show and delete files that agents wrote for you.", _Group)
users = _group("users", "Erase people, show who did what (administrators).", _Group)


def _set_json(ctx: typer.Context, value: bool) -> None:
    if value:
        ctx.obj.as_json = True


def _set_url(ctx: typer.Context, value: str | None) -> None:
    if value is not None:
        ctx.obj.url = value


def _print_version(value: bool) -> None:
    if value:
        print(f"groundwork {_version()}")
        raise typer.Exit


_JSON = typer.Option(
    "--json", help="Print the result as JSON and nothing else", expose_value=False, callback=_set_json
)
_URL = typer.Option(
    "--url",
    help="URL of the app (default: GROUNDWORK_URL, or a local stack)",
    expose_value=False,
    callback=_set_url,
)
_VERSION = typer.Option(
    "--version", help="Print the version and exit", is_eager=True, callback=_print_version
)


@app.callback()
def _options_of_all_commands(
    as_json: Annotated[bool, _JSON] = False,
    url: Annotated[str | None, _URL] = None,
    version: Annotated[bool, _VERSION] = False,
) -> None: ...


def _shared_options(root: Any) -> list[Any]:
    return [option for option in root.command.params if not option.expose_value]


def perform(arguments: Sequence[str], surroundings: Surroundings) -> int:
    """Run one command and return its exit code.

    Raises:
        CommandError: the command failed.
        typer.TyperException: the command or its options do not exist.
        typer.Exit: help or the version was printed.
    """
    command = typer.main.get_command(app)
    with command.make_context(program_name(), list(arguments), obj=surroundings) as context:
        code: int | None = command.invoke(context)
        return code or DONE


def leaves() -> dict[str, Any]:
    """Return the commands by their full names, such as `documents list`."""
    root: Any = typer.main.get_command(app)
    commands: dict[str, Any] = {}
    for name, command in root.commands.items():
        members = getattr(command, "commands", None) or {"": command}
        commands |= {f"{name} {word}".strip(): member for word, member in members.items()}
    return commands


def _version() -> str:
    try:
        return metadata.version("groundwork")
    except metadata.PackageNotFoundError:  # the package isn't installed, but run from a checkout
        text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
        return str(tomllib.loads(text)["project"]["version"])


# Declarations of parameters that several commands share.
DocumentArgument = Annotated[
    str, typer.Argument(metavar="DOC", help="Document id, or file name if only one document has it")
]
DocumentsArgument = Annotated[list[str], typer.Argument(metavar="DOC", help="Document ids or file names")]
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="Run id, or `last` for the newest run")]
ThreadArgument = Annotated[
    str, typer.Argument(metavar="THREAD", help="Thread id, or `last` for the newest thread")
]
SummaryArgument = Annotated[
    str, typer.Argument(metavar="SUMMARY", help="Summary id, or `last` for the newest summary")
]
LimitOption = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, help="Maximum number of items to list")
]
YesOption = Annotated[bool, typer.Option("--yes", help="Delete without asking for confirmation")]
ReadersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--acl",
        metavar="NAME",
        help="User or group that may read the file, such as `anna` or `group:sales`. Repeat for several.",
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Don't display the progress")]


def option(name: str, metavar: str, help: str) -> Any:  # noqa: A002  # as Typer calls it
    """Declare a command option that takes a value, called `metavar` in the help."""
    return typer.Option(name, metavar=metavar, help=help)
