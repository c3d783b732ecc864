"""Generates the tables in docs/. `make docs` writes them, and a test fails if one is outdated.

Each table stands between two marks in its page, the first of which names it. Descriptions that are not in the
code are in `scripts/catalogue`.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

import shared.runs.event_log  # noqa: F401  # it defines an error, too
from scripts.catalogue.headers import REQUEST_HEADERS, RESPONSE_HEADERS, Header
from scripts.catalogue.limits import LIMITS
from scripts.catalogue.log_events import LOG_EVENTS
from scripts.catalogue.run_events import COMMON_FIELDS, EVENTS, STATES, SentEvent
from scripts.catalogue.stores import STORES
from shared.answering.policy import RULES, RuleKind
from shared.platform.errors import GroundworkError
from shared.platform.settings_groups.base import SettingsGroup, settings_of
from shared.runs.events import RunEvent
from shared.tools.base import Tool
from shared.tools.registry import TOOLS, all_setting_groups

DOCS = Path(__file__).resolve().parents[1] / "docs"
_BLOCK = re.compile(r"(<!-- begin ([a-z-]+): made by `make docs` -->\n).*?(<!-- end -->)", re.DOTALL)


def render_settings() -> str:
    """Return the settings as Markdown: a heading for each group, and a line for each setting with default,
    example and purpose.
    """
    lines = []
    for group in all_setting_groups().values():
        if fields := settings_of(group):
            lines += ["", f"### {_title(group)}", "", *(_line(name, field) for name, field in fields.items())]
    return "\n".join(lines[1:])


def render_errors() -> str:
    """Return a Markdown list of all error codes, sorted by status. The meaning is the first line of the
    class docstring.
    """
    errors: dict[tuple[int, str], type[GroundworkError]] = {}
    for error in _subclasses(GroundworkError):
        # A code is described by the first class that has it, because a subclass may inherit the code of its
        # base class.
        errors.setdefault((error.status, error.code), error)
    lines = []
    for (status, code), error in sorted(errors.items()):
        meaning = (error.__doc__ or "").split("\n")[0]
        lines.append(f"- {status} `{code}`{' (retry)' if error.retryable else ''}: {meaning}")
    return "\n".join(lines)


def render_tools() -> str:
    """Return a Markdown section for each tool, with its results, parameters and their defaults."""
    return "\n\n".join(_tool(tool) for tool in TOOLS.values())


def _tool(tool: type[Tool]) -> str:
    schema = tool.parameters.plain_schema()
    optional = "Optional. " if tool.is_optional else ""
    parameters = ", ".join(_parameter(name, facts, schema) for name, facts in schema["properties"].items())
    return f"### `{tool.name}`\n\n{optional}{tool.documentation}\n\nParameters: {parameters}."


def _parameter(name: str, facts: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Return a parameter with its default, such as `top_k=10`, and the values of an enumeration."""
    # The schema doesn't contain the value of a default_factory. Only object parameters have one, so `{}` is
    # correct.
    default = "" if name in schema.get("required", ()) else f"={json.dumps(facts.get('default', {}))}"
    values = ", ".join(f"`{value}`" for value in facts.get("enum", ()))
    return f"`{name}{default}`{f' ({values})' if values else ''}"


def render_log_events() -> str:
    """Return a Markdown list of the log events for each level, the most severe first."""
    lines = []
    for level in ("error", "warning", "info"):
        events = sorted((name, event.text) for name, event in LOG_EVENTS.items() if event.level == level)
        lines += ["", f"### Level `{level}`", "", *(f"- `{name}`: {text}" for name, text in events)]
    return "\n".join(lines[1:])


def render_run_events() -> str:
    """Return a Markdown table of the events of a run."""
    lines = ["| event | when | data besides `step` |", "|---|---|---|"]
    for model, event in EVENTS.items():
        lines.append(f"| `{model.name.lower()}` | {event.when} | {_fields(model, event)} |")
    return "\n".join(lines)


def render_states() -> str:
    """Return a Markdown table of the states that a run's `status` events report."""
    lines = ["| `state` of a `status` | when | data |", "|---|---|---|"]
    for model, event in STATES.items():
        states = ", ".join(f"`{state}`" for state in get_args(model.model_fields["state"].annotation))
        lines.append(f"| {states} | {event.when} | {_fields(model, event)} |")
    return "\n".join(lines)


def _fields(model: type[RunEvent], event: SentEvent) -> str:
    names = [name for name in model.model_fields if name not in COMMON_FIELDS]
    return ", ".join(f"`{name}`{f' ({event.notes[name]})' if name in event.notes else ''}" for name in names)


def render_headers(headers: Mapping[str, Header]) -> str:
    """Return a Markdown list with a line for each header."""
    return "\n".join(
        f"- `{name}`{f' ({header.applies_to})' if header.applies_to else ''}: {header.text}"
        for name, header in headers.items()
    )


def render_stores() -> str:
    """Return a heading and a Markdown list for each kind of store."""
    lines = []
    for kind, stores in STORES.items():
        lines += ["", f"## {kind}", ""]
        lines += [
            f"- `{store.name}` ({store.erased}): {store.content}. {store.how[0].upper()}{store.how[1:]}."
            for store in stores
        ]
    return "\n".join(lines[1:])


def render_limits() -> str:
    """Return a Markdown table of the API's limits."""
    rows = (f"| {limit.subject} | {limit.value} | {limit.refusal} |" for limit in LIMITS)
    return "\n".join(["| subject | limit | response |", "|---|---|---|", *rows])


def render_policy(kind: RuleKind) -> str:
    """Return a Markdown list of the delegation rules of one kind, with their conditions."""
    return "\n".join(f"- `{rule.code}`: {rule.when}" for rule in RULES if rule.kind == kind)


BLOCKS: Mapping[str, Callable[[], str]] = {
    "settings": render_settings,
    "errors": render_errors,
    "tools": render_tools,
    "log-events": render_log_events,
    "run-events": render_run_events,
    "states": render_states,
    "request-headers": lambda: render_headers(REQUEST_HEADERS),
    "response-headers": lambda: render_headers(RESPONSE_HEADERS),
    "stores": render_stores,
    "limits": render_limits,
    "policy-gates": lambda: render_policy("gate"),
    "policy-negative": lambda: render_policy("negative"),
    "policy-positive": lambda: render_policy("positive"),
    "policy-notes": lambda: render_policy("note"),
}
PAGES = (
    "api.md",
    "events-and-errors.md",
    "extend.md",
    "internals/delegation.md",
    "internals/headers.md",
    "internals/stores.md",
    "logs-and-traces.md",
    "settings.md",
)


def current_page(name: str) -> str:
    """Return the current text of a page in docs/."""
    return (DOCS / name).read_text(encoding="utf-8")


def render_page(name: str) -> str:
    """Return the text of a page with all its generated blocks up to date."""
    return _BLOCK.sub(lambda block: f"{block[1]}{BLOCKS[block[2]]()}\n{block[3]}", current_page(name))


def blocks_of(name: str) -> list[str]:
    """Return the names of the generated blocks in a page."""
    return [block[2] for block in _BLOCK.finditer(current_page(name))]


def _subclasses(kind: type[GroundworkError]) -> Iterator[type[GroundworkError]]:
    """Yield the app's subclasses of an error class, each followed by its own subclasses."""
    for narrower in kind.__subclasses__():
        if narrower.__module__.startswith("shared."):
            yield narrower
            yield from _subclasses(narrower)


def _title(group: type[SettingsGroup]) -> str:
    """Return the title of a settings group: the first sentence of its docstring."""
    return (group.__doc__ or "").split(".")[0]


def _line(variable: str, field: FieldInfo) -> str:
    values = ", ".join(filter(None, (_default(field), _example(field))))
    return f"- `{variable}`{f' ({values})' if values else ''}: {field.description}"


def _default(field: FieldInfo) -> str:
    if field.default is PydanticUndefined:
        return "**required**"
    if field.default is None or field.default == "":
        return ""
    return f"`{str(field.default).lower() if isinstance(field.default, bool) else field.default}`"


def _example(field: FieldInfo) -> str:
    return f"e.g. `{field.examples[0]}`" if field.examples else ""


if __name__ == "__main__":
    for page in PAGES:
        (DOCS / page).write_text(render_page(page), encoding="utf-8")
