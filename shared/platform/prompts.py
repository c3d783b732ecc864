"""Rendering of prompt templates. Each package keeps its templates in `prompts/`."""

import re
from collections.abc import Mapping
from functools import cache
from html import escape
from pathlib import Path

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


def render(template: str, values: Mapping[str, str]) -> str:
    """Replace each placeholder `{{name}}` by its value. Placeholders inside values are not replaced.

    Raises:
        KeyError: the template contains a placeholder without a value.
    """
    return _PLACEHOLDER.sub(lambda match: values[match[1]], template)


def element(name: str, text: str) -> str:
    """Return `<name>text</name>`. The text is escaped, so that it cannot close the element or open another
    one.
    """
    return f"<{name}>{escape(text, quote=False)}</{name}>"


_SHARED = Path(__file__).parents[1]


@cache
def load(package: str, name: str) -> str:
    """Return the template in `shared/<package>/prompts/<name>.md`, stripped of surrounding white space."""
    return (_SHARED / package / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()
