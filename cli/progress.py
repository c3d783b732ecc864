"""Displays the progress of a run: plan, tools, sub-agents, and a draft of the answer."""

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
    """The answer so far, stored by step. When a step restarts, only the text of that step is dropped."""

    steps: dict[int, str] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Append a token, or drop the text of a restarted or discarded step."""
        step = int(event.data.get("step", 0))
        if event.name == "token":
            self.steps[step] = self.steps.get(step, "") + str(event.data["text"])
        elif event.name == "status" and event.data.get("state") in ("restarted", "discarded"):
            self.steps.pop(step, None)

    @property
    def text(self) -> str:
        return "".join(self.steps[step] for step in sorted(self.steps))


class ProgressDisplay:
    """A display of a run's progress on standard error. It is a context manager.

    On a terminal, the draft is shown while it is written and removed when the answer is complete, because
    drafted text may be withdrawn.

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
        """Remove the draft before a clarification or the final answer."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def take(self, event: Event) -> None:
        """Display an event."""
        self._draft.take(event)
        self._resume()
        if self._live is not None:
            preview = "\n".join(self._draft.text.splitlines()[-_PREVIEW_LINES:])
            self._live.update(Text(clean(preview) or "…"))
        if event.data.get("state") == "warning":
            self._terminal.note(str(event.data.get("text", "")), "yellow")
        elif not self._is_quiet:
            for line in describe_event(event):
                self._terminal.note(line)
            self._show_todo(event.data.get("todo") or ())

    def trouble(self, text: str) -> None:
        """Display a connection problem."""
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


def describe_event(event: Event) -> list[str]:
    """Return the lines that describe an event, or an empty list for events that only show activity."""
    data = event.data
    indent = f"    [{data['profile']} {data['child'] + 1}] " if "child" in data else ""
    if event.name == "thought":
        return [f"{indent}{data.get('text', '')}"]
    if event.name == "tool_started":
        query = str((data.get("arguments") or {}).get("query", ""))[:_MAX_SHOWN]
        return [f"{indent}→ {data['tool']}{': ' if query else ''}{query}"]
    if event.name == "tool_result":
        return [f"{indent}  {_result(data)}"]
    if event.name == "status":
        return _status(data, indent)
    return []


def _result(data: dict[str, Any]) -> str:
    if not data.get("success", True):
        return f"{data['tool']} failed: {data.get('error') or data.get('error_type') or 'no reason given'}"
    count = data.get("result_count")
    if count is None:  # this tool reports no number of results
        return "done"
    return f"{count} result{'' if count == 1 else 's'}"


def _status(data: dict[str, Any], indent: str) -> list[str]:
    state = data.get("state")
    if state == "accepted":
        return [f"Run {data.get('run_id', '')}"]
    if state == "sub_agent" and data.get("phase") == "started":
        return [f"{indent}A sub-agent helps."]
    if state == "sub_agent" and data.get("phase") in ("failed", "ended"):
        findings = f"{data.get('passages', 0)} passages, {data.get('proved', 0)} findings proved"
        return [f"{indent}{data.get('status') or data['phase']}: {findings}"]
    if state == "discarded":
        return ["What was written so far is withdrawn."]
    return []
