"""Prompt templates. Each package keeps its own in `prompts/`."""

import re
from collections.abc import Mapping
from functools import cache
from html import escape
from pathlib import Path

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


def render(template: str, values: Mapping[str, str]) -> str:
    """Replace each `{{name}}` once. Inserted values are never interpreted as templates.

    Raises:
        KeyError: the template has a name without a value.
    """
    return _PLACEHOLDER.sub(lambda match: values[match[1]], template)


def element(name: str, text: str) -> str:
    """Return `<name>text</name>` with the text escaped, so that it can't close the
    element or open another.
    """
    return f"<{name}>{escape(text, quote=False)}</{name}>"


_SHARED = Path(__file__).parents[1]


@cache
def load(package: str, name: str) -> str:
    """Return the text of `shared/<package>/prompts/<name>.md`, stripped."""
    return (_SHARED / package / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()
