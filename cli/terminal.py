"""Output for people and programs: results on standard output, everything else on standard error.

With `--json`, standard output is pure JSON. Control characters in other people's text, such as titles, are
replaced, so that they can't control the terminal.
"""

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from cli.errors import CommandError

# C0 and C1 controls except tab and newline, invisible characters, other line breaks, and bidirectional marks,
# which can change the apparent meaning of a line.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
Prompt = Callable[[str], str]


@dataclass(frozen=True)
class Terminal:
    """The input and output streams of a command.

    Attributes:
        output: results.
        progress: progress and errors.
        as_json: whether results are JSON.
        prompt: asks the user and returns the input; None if no user is present.
    """

    output: Console
    progress: Console
    as_json: bool = False
    prompt: Prompt | None = None

    @classmethod
    def standard(cls, *, as_json: bool) -> "Terminal":
        """Return a terminal for the process's own streams."""
        is_watched = sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
        progress = Console(stderr=True, highlight=False)
        output = Console(highlight=False)
        return cls(output, progress, as_json, _ask if is_watched and not as_json else None)

    def json(self, value: Any) -> None:
        """Print a result as JSON."""
        text = json.dumps(value, ensure_ascii=False, indent=2)
        _write(self.output, _CONTROL.sub(_escape, text))

    def result(self, value: Any, words: str) -> None:
        """Print a result: for programs `value` as JSON, for people the text `words`."""
        if self.as_json:
            self.json(value)
        else:
            self.say(words)

    def say(self, text: str, style: str = "") -> None:
        """Print one line of a result. Line breaks become spaces, so that a name can't add a line."""
        _write(self.output, _line(text), style)

    def note(self, text: str, style: str = "dim") -> None:
        """Print a line that isn't part of the result, on standard error."""
        _write(self.progress, _line(text), style)

    def markdown(self, text: str) -> None:
        """Print Markdown: rendered on a terminal, unchanged elsewhere, so that links are kept."""
        plain = clean(text)
        if self.output.is_terminal:
            self.output.print(Markdown(plain))
        else:
            _write(self.output, plain)

    def rows(
        self,
        records: Sequence[Mapping[str, Any]],
        names: Sequence[str],
        cells: Callable[[Mapping[str, Any]], Sequence[Any]],
        *,
        nothing: str,
    ) -> None:
        """Print a list: `records` as JSON for programs, or a table with one row of cells per record for
        people.
        """
        if self.as_json:
            self.json(records)
        else:
            self.table(names, map(cells, records), nothing=nothing)

    def table(self, names: Sequence[str], rows: Iterable[Sequence[Any]], *, nothing: str) -> None:
        """Print a table, or the text `nothing` if there are no rows."""
        cells = [[one if isinstance(one, Text) else Text(_cell(one)) for one in row] for row in rows]
        if not cells:
            self.say(nothing)
        elif self.output.is_terminal:
            table = Table(box=None, pad_edge=False, header_style="bold")
            for name in names:
                table.add_column(name, no_wrap=name == "Id", overflow="fold")  # ids are never truncated
            for row in cells:
                table.add_row(*row)
            self.output.print(table)
        else:
            # Programs get one line per row, and nothing is truncated.
            for line in [list(names), *([one.plain for one in row] for row in cells)]:
                _write(self.output, "\t".join(line))

    def confirm(self, question: str, *, is_sure: bool) -> None:
        """Ask for confirmation before a deletion, unless `is_sure`. Raise CommandError if the user declines.

        Raises:
            CommandError: the reply isn't yes, or no user is present.
        """
        if is_sure:
            return
        if self.prompt is None:
            raise CommandError(
                "This cannot be undone, and there is no terminal on which to confirm it.",
                "Add --yes to skip the confirmation.",
            )
        if self.prompt(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
            raise CommandError("Nothing was changed.")


def _write(console: Console, text: str, style: str = "") -> None:
    """Print text without wrapping, so that a pipe receives the original lines."""
    if console.is_terminal:
        console.print(Text(text, style=style), soft_wrap=True)
    else:
        console.file.write(f"{text}\n")
        console.file.flush()


def clean(text: str) -> str:
    """Replace characters that could control the terminal."""
    return _CONTROL.sub("�", text)


def moment(timestamp: Any) -> str:
    """Format an API timestamp in the local time zone, or return "" for none."""
    try:
        return datetime.fromisoformat(str(timestamp)).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return ""


def _cell(value: Any) -> str:
    return "" if value is None else clean(" ".join(str(value).split()))


def _line(text: str) -> str:
    return clean(text.replace("\r\n", " ").replace("\n", " "))


def _escape(mark: re.Match[str]) -> str:
    return json.dumps(mark[0])[1:-1]


def _ask(question: str) -> str:
    print(question, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise KeyboardInterrupt  # the input has ended (Ctrl-D)
    return line.strip()
