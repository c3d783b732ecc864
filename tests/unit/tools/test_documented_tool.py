"""Tests the example tool of docs/extend.md with the test shown there."""

import json
import re
from typing import cast

import pytest

from scripts.docs_tables import render_tools
from shared.access.models import UserContext
from shared.tools.base import Tool
from shared.tools.registry import TOOLS, bound_tool
from tests.architecture.source_tree import ROOT
from tests.documented import documented_module, marked_blocks
from tests.world import World

BLOCKS = marked_blocks("docs/extend.md")


async def test_the_tool_on_the_page_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    documented_module("shared.tools.count_pages", BLOCKS["tool"], monkeypatch)
    tests = documented_module("documented_tool_test", BLOCKS["tool test"], monkeypatch)
    await tests.test_only_readable_pages_are_counted()
    assert len([line for line in BLOCKS["tool test"].splitlines() if line]) <= 10


async def test_a_line_in_the_registry_makes_the_tool_known(monkeypatch: pytest.MonkeyPatch) -> None:
    module = documented_module("shared.tools.count_pages", BLOCKS["tool"], monkeypatch)
    monkeypatch.setitem(cast("dict[str, type[Tool]]", TOOLS), "rag_count_pages", module.CountPages)
    assert "### `rag_count_pages`\n\n`pages` of `document_count` documents." in render_tools()
    world = World(engine=True)
    await world.add("a", readers=("anna",), page_count=3)
    for user_id, pages in (("anna", 3), ("ben", 0)):
        tool = bound_tool("rag_count_pages", world.services, UserContext(user_id=user_id))
        assert (await tool.execute(**json.loads(tool.example)))["pages"] == pages


def test_a_tool_touches_five_files_at_most() -> None:
    page = (ROOT / "docs/extend.md").read_text(encoding="utf-8")
    steps = re.findall(r"^\*\*\d\..*", page.split("## A tool\n")[1].split("\n## ")[0], re.MULTILINE)
    assert len(steps) == 5
    files = {name for step in steps for name in re.findall(r"`([a-z_/0-9]+\.py)`|\((settings\.md)\)", step)}
    assert len(files) <= 5
