"""The tool that docs/extend.md shows works, and its test passes."""

import pytest

from tests.documented import documented_module, marked_blocks

BLOCKS = marked_blocks("docs/extend.md")


async def test_the_tool_on_the_page_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    documented_module("shared.tools.count_pages", BLOCKS["tool"], monkeypatch)
    tests = documented_module("documented_tool_test", BLOCKS["tool test"], monkeypatch)
    await tests.test_only_readable_pages_are_counted()
