"""Generated parts of docs/: `make docs` writes them, and a test fails if one is outdated.

Each part is between two marks in its page.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

import shared.runs.event_log
import shared.runs.events  # noqa: F401  # they define errors, too
from shared.platform.errors import GroundworkError
from shared.platform.settings import SettingsGroup, settings_of
from shared.tools.base import Tool
from shared.tools.registry import TOOLS, all_setting_groups

DOCS = Path(__file__).resolve().parents[1] / "docs"
BEGIN, END = "<!-- begin: made by `make docs` -->", "<!-- end -->"


def render_settings() -> str:
    """Return a heading for each group, and a line for each setting: name, default, example, purpose."""
    lines = []
    for group in all_setting_groups().values():
        if fields := settings_of(group):
            lines += ["", f"### {_title(group)}", "", *(_line(name, field) for name, field in fields.items())]
    return "\n".join(lines[1:])


def render_errors() -> str:
    """Return a table of all error codes by status, with the docstrings of their classes."""
    errors: dict[tuple[int, str], type[GroundworkError]] = {}
    for error in _subclasses(GroundworkError):
        errors.setdefault((error.status, error.code), error)  # a subclass may share the code of its base
    lines = ["| code | status | retry | what it means |", "|---|---|---|---|"]
    for (status, code), error in sorted(errors.items()):
        meaning = (error.__doc__ or "").split("\n")[0]
        lines.append(f"| `{code}` | {status} | {'yes' if error.retryable else 'no'} | {meaning} |")
    return "\n".join(lines)


def render_tools() -> str:
    """Return a section for each tool: what it returns, and its parameters."""
    return "\n\n".join(_tool(tool) for tool in TOOLS.values())


def _tool(tool: type[Tool]) -> str:
    schema = tool.parameters.plain_schema()
    required = schema.get("required", ())
    optional = "Optional. " if tool.is_optional else ""
    lines = [f"### `{tool.name}`", "", f"{optional}{tool.documentation}", ""]
    for name, parameter in schema["properties"].items():
        values = ", ".join(f"`{value}`" for value in parameter.get("enum", ()))
        default = f"default `{json.dumps(parameter['default'])}`" if "default" in parameter else "optional"
        facts = f"{values or parameter['type']}; {'required' if name in required else default}"
        text = f": {parameter['description']}" if "description" in parameter else ""
        if name == "filters":
            text = ": [fields and values](#filters)"
        lines.append(f"- `{name}` ({facts}){text}")
    return "\n".join(lines)


PAGES: dict[str, Callable[[], str]] = {
    "settings.md": render_settings,
    "events-and-errors.md": render_errors,
    "extend.md": render_tools,
}


def current_page(name: str) -> str:
    """Return a page as it is."""
    return (DOCS / name).read_text(encoding="utf-8")


def render_page(name: str) -> str:
    """Return a page as it should be."""
    before, _, rest = current_page(name).partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{PAGES[name]()}\n{END}{after}"


def _subclasses(kind: type[GroundworkError]) -> Iterator[type[GroundworkError]]:
    """Yield the app's own subclasses of an error, each before its own subclasses."""
    for narrower in kind.__subclasses__():
        if narrower.__module__.startswith("shared."):
            yield narrower
            yield from _subclasses(narrower)


def _title(group: type[SettingsGroup]) -> str:
    """Return the first sentence of its docstring."""
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
