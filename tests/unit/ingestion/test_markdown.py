"""Tests for the Markdown parser, which follows the structure of the text."""

import tracemalloc

from tests.unit.ingestion.conftest import Parse

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


def test_structure_is_taken_as_it_is(parse: Parse) -> None:
    assert [(e.kind, e.level, e.text) for e in parse(TEXT, ".md").elements] == [
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


def test_title_and_author_come_from_the_front_matter(parse: Parse) -> None:
    document = parse(TEXT, ".md")
    assert (document.title, document.author, document.page_count) == ("Pump guide", "Ada", None)


def test_a_rule_at_the_top_is_no_front_matter(parse: Parse) -> None:
    assert [e.text for e in parse("---\n\nText below a rule.\n", ".md").elements] == ["Text below a rule."]


def test_a_second_paragraph_of_an_item_carries_no_mark(parse: Parse) -> None:
    assert [e.text for e in parse("- first\n\n  more of it\n", ".md").elements] == ["- first", "  more of it"]


def test_a_long_paragraph_is_parsed_in_parts_that_need_little_memory(parse: Parse) -> None:
    lines = [f"line *{number}* of a log" for number in range(20_000)]
    tracemalloc.start()
    (paragraph,) = parse("\n".join(lines), ".md").elements
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert paragraph.text == " ".join(lines).replace("*", "")
    assert peak_bytes < 20 * len(paragraph.text)


def test_links_may_be_defined_anywhere_in_the_text(parse: Parse) -> None:
    assert [e.text for e in parse("See [the log][log].\n\n[log]: http://example.org\n", ".md").elements] == [
        "See the log."
    ]
