"""Tests the example parser of docs/extend.md with the test shown there."""

import re

import pytest

from shared.ingestion import registry
from tests.architecture.source_tree import ROOT
from tests.documented import documented_module, marked_blocks
from tests.unit.ingestion.conftest import Parse

BLOCKS = marked_blocks("docs/extend.md")
LINE = re.compile(r"^    (Format\(.*\)),$", re.MULTILINE)


def test_the_parser_on_the_page_is_right(parse: Parse, monkeypatch: pytest.MonkeyPatch) -> None:
    documented_module("shared.ingestion.parsers.ini", BLOCKS["parser"], monkeypatch)
    [line] = LINE.findall((ROOT / "docs/extend.md").read_text(encoding="utf-8"))
    for suffix in (file_format := eval(line, vars(registry))).suffixes:
        monkeypatch.setitem(registry.FORMATS, suffix, file_format)
    tests = documented_module("documented_parser_test", BLOCKS["parser test"], monkeypatch)
    tests.test_sections_are_headings_and_values_are_paragraphs(parse)
