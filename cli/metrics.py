"""`metrics`: quality and sub-agent metrics, for administrators. `status`: health of the app."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import typer

from cli.commands import Call, app, option
from cli.errors import DONE, NOT_ALL_WELL

_UNAVAILABLE = 503


@app.add("metrics")
def show_metrics(
    call: Call,
    what: Annotated[Literal["quality", "subagents"], typer.Argument()],
    *,
    hours: Annotated[
        int, option("--hours", "N", "Length of the period that ends now, in hours (1-168)")
    ] = 24,
) -> None:
    """Show measures of answer quality or of sub-agents (administrators)."""
    report = call.api.call("GET", f"/metrics/{what}", params={"hours": hours})
    if call.terminal.as_json:
        call.terminal.json(report)
        return
    measures = report.pop("measures", {})
    for name, value in _lines(report, ""):
        call.terminal.say(f"{name + ':':<28} {value}")
    if measures:
        call.terminal.table(
            ("Measure", "Value", "Of", "Aim", "Met"),
            (
                [name, *(one[column] for column in ("value", "of", "aim", "met"))]
                for name, one in measures.items()
            ),
            nothing="",
        )


@app.add("status")
def show_status(call: Call) -> int:
    """Check that the app, search and storage respond."""
    answered = call.api.send("GET", "/health/ready", also=_UNAVAILABLE)
    health = {"ready": answered.status_code != _UNAVAILABLE, **answered.json()}
    if call.terminal.as_json:
        call.terminal.json({"url": call.api.url, **health})
    else:
        call.terminal.say(f"{call.api.url} is {'ready' if health['ready'] else 'not ready'}.")
        for name, value in _lines(health, ""):
            call.terminal.say(f"{name + ':':<20} {value}")
    return DONE if health["ready"] else NOT_ALL_WELL


def _lines(node: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yield every number in a nested report with its dotted path, such as `latency.p95`."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _lines(value, f"{name}.{key}" if name else key)
    elif isinstance(node, list) and any(isinstance(one, dict) for one in node):
        for at, value in enumerate(node):
            yield from _lines(value, f"{name}[{value.get('profile') or value.get('name') or at}]")
    else:
        text = ", ".join(map(str, node)) if isinstance(node, list) else node
        yield name, "-" if text is None else str(text)
