"""`metrics`: how answers and sub-agents do, for administrators. `status`: whether the app is well."""

import argparse
from collections.abc import Iterator
from typing import Any

from cli.api import Api
from cli.commands import Tree
from cli.errors import DONE, NOT_ALL_WELL
from cli.terminal import Terminal

_UNAVAILABLE = 503


def register(tree: Tree) -> None:
    """The commands of this file."""
    measuring = tree.leaf(
        "metrics", show_metrics, "show the quality of answers or sub-agents (administrators)"
    )
    measuring.add_argument("what", choices=("quality", "subagents"))
    measuring.add_argument("--hours", type=int, default=24, metavar="N", help="the last N hours (1-168)")
    tree.leaf("status", show_status, "check that the app, search and storage respond")


def show_metrics(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Print measures."""
    found = api.call("GET", f"/metrics/{given.what}", params={"hours": given.hours})
    if terminal.as_json:
        terminal.json(found)
        return
    measures = found.pop("measures", {})
    for name, value in _lines(found, ""):
        terminal.say(f"{name + ':':<28} {value}")
    if measures:
        terminal.table(
            ("Measure", "Value", "Of", "Aim", "Met"),
            (
                [name, *(one[column] for column in ("value", "of", "aim", "met"))]
                for name, one in measures.items()
            ),
            nothing="",
        )


def show_status(api: Api, terminal: Terminal, given: argparse.Namespace) -> int:
    """Print whether it is ready. 0 only if it is."""
    answered = api.send("GET", "/health/ready", also=_UNAVAILABLE)
    health = {"ready": answered.status_code != _UNAVAILABLE, **answered.json()}
    if terminal.as_json:
        terminal.json({"url": api.url, **health})
    else:
        terminal.say(f"{api.url} is {'ready' if health['ready'] else 'not ready'}.")
        for name, value in _lines(health, ""):
            terminal.say(f"{name + ':':<20} {value}")
    return DONE if health["ready"] else NOT_ALL_WELL


def _lines(found: Any, name: str) -> Iterator[tuple[str, str]]:
    """Every number of a report with its path."""
    if isinstance(found, dict):
        for key, value in found.items():
            yield from _lines(value, f"{name}.{key}" if name else key)
    elif isinstance(found, list) and any(isinstance(one, dict) for one in found):
        for at, value in enumerate(found):
            yield from _lines(value, f"{name}[{value.get('profile') or value.get('name') or at}]")
    else:
        shown = ", ".join(map(str, found)) if isinstance(found, list) else found
        yield name, "-" if shown is None else str(shown)
