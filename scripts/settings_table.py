"""The app's table in docs/settings.md, made from the fields of Settings: `python -m scripts.settings_table`.

With --write it replaces what stands between the two marks in the page.
"""

import sys
from pathlib import Path

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from shared.platform.settings import setting_fields

PAGE = Path(__file__).resolve().parents[1] / "docs" / "settings.md"
BEGIN, END = "<!-- begin: made by `make docs` -->", "<!-- end -->"


def render_table() -> str:
    """One row per setting: name, what it is for, its default and an example."""
    lines = ["| name | what it is for | default, example |", "|---|---|---|"]
    for variable, field in setting_fields().items():
        values = "; ".join(filter(None, (_default(field), _example(field))))
        lines.append(f"| `{variable}` | {field.description} | {values} |")
    return "\n".join(lines)


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
    return f"{before}{BEGIN}\n{render_table()}\n{END}{after}"


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(render_page(), encoding="utf-8")
    else:
        print(render_table())
