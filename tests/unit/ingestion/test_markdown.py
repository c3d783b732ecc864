"""Markdown by its own structure."""

from pathlib import Path

from shared.documents.models import Element
from shared.ingestion.parsers.markdown import parse_markdown

TEXT = """---
title: "Pump guide"
author: Ada
---
# Pump guide

The *pump* moves
water, see [the log](http://example.org/log).

## Steps

1. Open the valve.
2. Press **start**.
   - wait ten seconds

| Type | Pressure |
|------|---------:|
| P-100 | 16 bar |
| A\\|B | `25` bar |

```python
run(pump)

stop(pump)
```

<div>Shown <b>text</b></div><!-- hidden -->
"""


def parse(tmp_path: Path, text: str) -> tuple[Element, ...]:
    (tmp_path / "a.md").write_text(text, encoding="utf-8")
    return parse_markdown(tmp_path / "a.md").elements


def test_structure_is_taken_as_it_is(tmp_path: Path) -> None:
    assert [(e.kind, e.level, e.text) for e in parse(tmp_path, TEXT)] == [
        ("heading", 1, "Pump guide"),
        ("paragraph", None, "The pump moves water, see the log."),
        ("heading", 2, "Steps"),
        ("list_item", None, "1. Open the valve."),
        ("list_item", None, "2. Press start."),
        ("list_item", None, "  - wait ten seconds"),
        ("table", None, "| Type | Pressure |\n| --- | --- |\n| P-100 | 16 bar |\n| A\\|B | 25 bar |"),
        ("code", None, "run(pump)\n\nstop(pump)"),
        ("paragraph", None, "Shown text"),
    ]


def test_title_and_author_come_from_the_front_matter(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(TEXT, encoding="utf-8")
    document = parse_markdown(tmp_path / "a.md")
    assert (document.title, document.author, document.page_count) == ("Pump guide", "Ada", None)


def test_a_rule_at_the_top_is_no_front_matter(tmp_path: Path) -> None:
    assert [e.text for e in parse(tmp_path, "---\n\nText below a rule.\n")] == ["Text below a rule."]


def test_a_second_paragraph_of_an_item_carries_no_mark(tmp_path: Path) -> None:
    assert [e.text for e in parse(tmp_path, "- first\n\n  more of it\n")] == ["- first", "  more of it"]
