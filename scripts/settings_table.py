"""The settings in docs/settings.md, made from the fields of Settings: `python -m scripts.settings_table`.

With --write it replaces what stands between the two marks in the page.
"""

import sys
from pathlib import Path

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from shared.platform.settings import SettingsGroup, setting_groups

PAGE = Path(__file__).resolve().parents[1] / "docs" / "settings.md"
BEGIN, END = "<!-- begin: made by `make docs` -->", "<!-- end -->"


def render_settings() -> str:
    """A heading for each group; a line for each setting: name, default and example, what it is for."""
    lines = []
    for group in setting_groups().values():
        lines += ["", f"### {_title(group)}", ""]
        lines += [_line(str(field.alias), field) for field in group.model_fields.values()]
    return "\n".join(lines[1:])


def _title(group: type[SettingsGroup]) -> str:
    """The first sentence of its docstring."""
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


def current_page() -> str:
    """The page as it is."""
    return PAGE.read_text(encoding="utf-8")


def render_page() -> str:
    """The page as it should be."""
    before, _, rest = current_page().partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{render_settings()}\n{END}{after}"


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(render_page(), encoding="utf-8")
    else:
        print(render_settings())
