"""Prompts: what a model reads, and the limits of one call. Templates are in each package's `prompts/`."""

import re
from collections.abc import Mapping
from functools import cache
from html import escape
from pathlib import Path

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


def render(template: str, values: Mapping[str, str]) -> str:
    """Replace each `{{name}}` once; what is put in is never read as a template again.

    Raises:
        KeyError: the template names a value that is not given.
    """
    return _PLACEHOLDER.sub(lambda match: values[match[1]], template)


def element(name: str, text: str) -> str:
    """`<name>text</name>`, the text escaped: nothing in it can close the element or open another."""
    return f"<{name}>{escape(text, quote=False)}</{name}>"


_SHARED = Path(__file__).parents[1]


@cache
def load(package: str, name: str) -> str:
    """The text of `shared/<package>/prompts/<name>.md`, without the white space at its ends."""
    return (_SHARED / package / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()
