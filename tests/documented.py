"""Code blocks of docs/ as importable modules. A block is marked by `<!-- run: NAME -->`."""

import re
import sys
from types import ModuleType

import pytest

from tests.architecture.source_tree import ROOT

_BLOCK = re.compile(r"^<!-- run: ([a-z. ]+) -->\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)


def marked_blocks(*pages: str) -> dict[str, str]:
    """Return the code of every marked block of these pages, by name."""
    texts = ((ROOT / page).read_text(encoding="utf-8") for page in pages)
    return {name: code for text in texts for name, code in _BLOCK.findall(text)}


def documented_module(name: str, code: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return a code block as a module, which can be imported under this name until the test ends."""
    module = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(code, f"docs: {name}", "exec"), vars(module))
    return module
