"""Figures of the README are those of the page that each refers to: a new measurement shows in both."""

import re

import pytest

from tests.architecture.source_tree import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
TABLE = README.partition("\n## Measured\n")[2].partition("\n## ")[0]
ROW = re.compile(r"^\| (.+?) \| (.+?) \| `(.+?)` \| \[.+?\]\((.+?)\) \|$", re.MULTILINE)
ROWS: list[tuple[str, str, str, str]] = ROW.findall(TABLE)


def test_every_row_has_its_figures_a_command_and_a_page() -> None:
    assert len(ROWS) == TABLE.count("\n|") - 2  # its head and the rule below it
    assert len(ROWS) >= 6


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:30])
def test_figures_of_the_readme_stand_on_their_page(row: tuple[str, str, str, str]) -> None:
    _, figures, command, link = row
    page, _, heading = link.partition("#")
    there = (ROOT / page).read_text(encoding="utf-8")
    assert re.search(rf"^#+ {heading}$", there, re.MULTILINE | re.IGNORECASE)
    assert command in there
    numbers = re.findall(r"\.?\d+(?:\.\d+)?", figures.replace("p95", "").replace("p50", ""))
    assert numbers
    absent = [number for number in numbers if not re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", there)]
    assert absent == []
