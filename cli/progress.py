"""What a run tells while it works: its plan, its tools, its sub-agents, and the draft of its answer."""

from dataclasses import dataclass, field
from typing import Any

from rich.live import Live
from rich.text import Text

from cli.api import Event
from cli.terminal import Terminal, clean

_PREVIEW_LINES = 20
_MARKS = {"pending": "○", "in_progress": "◐", "done": "●", "failed": "✗"}
_MAX_SHOWN = 100


@dataclass
class Draft:
    """The answer while it is written, by step: a step that starts over loses its own text only."""

    steps: dict[int, str] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Add a token, or drop what a step had written before it started again or was given up."""
        step = int(event.data.get("step", 0))
        if event.name == "token":
            self.steps[step] = self.steps.get(step, "") + str(event.data["text"])
        elif event.name == "status" and event.data.get("state") in ("restarted", "discarded"):
            self.steps.pop(step, None)

    @property
    def text(self) -> str:
        return "".join(self.steps[step] for step in sorted(self.steps))


class ProgressDisplay:
    """Shows events on standard error. A context manager.

    On a terminal the draft is shown as it is written, and taken away when the answer is there: what was
    written may be withdrawn.

    Args:
        is_quiet: show warnings only.
    """

    def __init__(self, terminal: Terminal, *, is_quiet: bool = False) -> None:
        self._terminal = terminal
        self._is_quiet = is_quiet
        self._draft = Draft()
        self._todo: dict[int, str] = {}
        self._live: Live | None = None

    def __enter__(self) -> "ProgressDisplay":
        self._resume()
        return self

    def __exit__(self, *_: object) -> None:
        self.pause()

    def pause(self) -> None:
        """Take the draft away: the person is asked something, or the answer is there."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def take(self, event: Event) -> None:
        """Show what an event tells."""
        self._draft.take(event)
        self._resume()
        if self._live is not None:
            shown = "\n".join(self._draft.text.splitlines()[-_PREVIEW_LINES:])
            self._live.update(Text(clean(shown) or "…"))
        if event.data.get("state") == "warning":
            self._terminal.note(str(event.data.get("text", "")), "yellow")
        elif not self._is_quiet:
            for line in described(event):
                self._terminal.note(line)
            self._show_todo(event.data.get("todo") or ())

    def trouble(self, text: str) -> None:
        """Tell of the connection."""
        self._terminal.note(text, "yellow")

    def _resume(self) -> None:
        if self._live is None and self._terminal.progress.is_terminal and not self._is_quiet:
            console = self._terminal.progress
            self._live = Live(Text("…"), console=console, transient=True, refresh_per_second=8)
            self._live.start()

    def _show_todo(self, todo: Any) -> None:
        for item in todo:
            if self._todo.get(item["position"]) != item["status"]:
                self._todo[item["position"]] = item["status"]
                mark = _MARKS.get(item["status"], "·")
                self._terminal.note(f"{mark} {item['position']}. {item['description']}", "cyan")


def described(event: Event) -> list[str]:
    """An event in words; none for those that only show activity."""
    given = event.data
    indent = f"    [{given['profile']} {given['child'] + 1}] " if "child" in given else ""
    if event.name == "thought":
        return [f"{indent}{given.get('text', '')}"]
    if event.name == "tool_started":
        query = str((given.get("arguments") or {}).get("query", ""))[:_MAX_SHOWN]
        return [f"{indent}→ {given['tool']}{': ' if query else ''}{query}"]
    if event.name == "tool_result":
        return [f"{indent}  {_result(given)}"]
    if event.name == "status":
        return _status(given, indent)
    return []


def _result(given: dict[str, Any]) -> str:
    if not given.get("success", True):
        return f"{given['tool']} failed: {given.get('error') or given.get('error_type') or 'no reason given'}"
    count = given.get("result_count")
    if count is None:  # it counts nothing
        return "done"
    return f"{count} result{'' if count == 1 else 's'}"


def _status(given: dict[str, Any], indent: str) -> list[str]:
    state = given.get("state")
    if state == "accepted":
        return [f"Run {given.get('run_id', '')}"]
    if state == "delegation" and given.get("decision") == "delegate":
        reasons = " ".join(given.get("reasons") or ())
        return [f"A sub-agent helps ({given.get('selected_profile')}). {reasons}"]
    if state == "sub_agent" and given.get("phase") in ("started", "failed", "ended"):
        found = f"{given.get('passages', 0)} passages, {given.get('proved', 0)} findings proved"
        how = given.get("status") or given["phase"]
        return [f"{indent}{how}" if given["phase"] == "started" else f"{indent}{how}: {found}"]
    if state == "discarded":
        return ["What was written so far is withdrawn."]
    return []
