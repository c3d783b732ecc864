"""Tests for answer text as rendered by chat clients."""

import random
import re
from itertools import pairwise

import pytest

from shared.evidence.reader_text import readable
from shared.evidence.untrusted_text import markdown_text
from shared.teams import markdown
from shared.teams.models import ShownTable
from shared.teams.outgoing import without_markdown

pytestmark = pytest.mark.attack("forged names")

_PICTURE = f"/api/documents/d1/figures/{'a' * 64}.png"
_ANSWER = f"""The valve opens at 6.5 bar (Source: pump\\_manual.pdf, S. 3)[1]. Wow!

![The valve, cut open]({_PICTURE}) (Source: pump.pdf, S. 4)

Seen at (Source: talk.vtt, [01:23](/api/documents/d2/readable?run=r&n=2&t=83#t-83))[2] [sic].

| Plant | Pressure |   |
|:---|---:|---|
| Hamburg | 6.5 bar (Source: a (1).pdf, S. 3)[1] | new |
| Bremen<br>Nord | | old | too many |
After it, and | a pipe.

```python
| x | y |
|---|---|
![kept](/api/documents/x/figures/y.png)
```
| no table
The end"""
_SHOWN = """The valve opens at 6.5 bar (Source: pump\\_manual.pdf, p. 3)[1]. Wow!

*The valve, cut open* (Source: pump.pdf, p. 4)

Seen at (Source: talk.vtt, 01:23)[2] [sic].

- **Hamburg** · Pressure: 6.5 bar (Source: a (1).pdf, p. 3)[1] · new

- **Bremen, Nord** · old

After it, and | a pipe.

```python
| x | y |
|---|---|
![kept](/api/documents/x/figures/y.png)
```
| no table
The end"""


def for_channel(text: str) -> tuple[str, tuple[ShownTable, ...]]:
    return markdown.for_channel(text, "p. {}")


def finished_lines(text: str) -> str:
    return markdown.finished_lines(text, "p. {}")


def test_pictures_links_and_tables_become_what_a_chat_client_shows() -> None:
    channel_text, tables = for_channel(_ANSWER)
    assert channel_text == _SHOWN
    assert tables == (
        ShownTable(
            header=("Plant", "Pressure", ""),
            rows=(("Hamburg", "6.5 bar[1]", "new"), ("Bremen Nord", "", "old")),
        ),
    )


def prefixes_of(text: str) -> list[str]:
    """Return the text shown after each character while a text grows."""
    return [finished_lines(text[:end]) for end in range(len(text) + 1)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(Source: a.pdf, S. 4)[1]", "(Source: a.pdf, p. 4)[1]"),
        ("(Source: a.pdf, S. 4, figure)[1]", "(Source: a.pdf, p. 4, figure)[1]"),
        ("(Source: a.xlsx, S. 4; b, S. 1, computed)[1]", "(Source: a.xlsx, p. 4; b, p. 1, computed)[1]"),
        ("(Source: a.pdf (Mara Ek), S. 4)[1]", "(Source: a.pdf (Mara Ek), p. 4)[1]"),
        ("(Source: a, S. 2.pdf, S. 4)[1]", "(Source: a, S. 2.pdf, p. 4)[1]"),
        ("See a.pdf, S. 4 (Source: a.md)[1]", "See a.pdf, S. 4 (Source: a.md)[1]"),
        ("```\n(Source: a.pdf, S. 4)\n```", "```\n(Source: a.pdf, S. 4)\n```"),
    ],
)
def test_pages_of_sources_are_labelled_in_the_readers_language(text: str, expected: str) -> None:
    assert for_channel(text)[0] == expected
    assert markdown.for_channel(text, "S. {}")[0] == text


def test_what_is_shown_of_a_growing_text_only_grows() -> None:
    prefixes = prefixes_of(f"{_ANSWER}\n\n")
    assert all(after.startswith(before) for before, after in pairwise(prefixes))
    assert prefixes[-1].strip("\n") == _SHOWN


def test_lines_are_shown_once_they_are_finished() -> None:
    assert finished_lines("The valve opens") == ""
    assert finished_lines("The valve opens at 6 bar [1].\nAnd") == "The valve opens at 6 bar [1].\n"


def test_a_row_of_a_table_is_shown_once_it_is_whole() -> None:
    assert finished_lines("| A | B |\n") == ""
    assert finished_lines("| A | B |\n|---|---|\n| x | ") == ""
    assert finished_lines("| A | B |\n|---|---|\n| x | 1 |\n| y") == "- **x** · B: 1\n\n"
    assert for_channel("| A | B |\n|---|---|\n| x | 1 |\n| y")[0] == "- **x** · B: 1\n\n- **y**"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Two:\n- a [1]\n- b [2]\n\nEnd", "Two:\n- a [1]\n\n- b [2]\n\nEnd"),
        ("1. a\n   more\n   - b\n2. c", "1. a\n   more\n\n   - b\n\n2. c"),
        ("- a\n\n- b\n\n- c", "- a\n\n- b\n\n- c"),
        ("*a*\n*b*\n---\n-5 degrees\n-6", "*a*\n*b*\n---\n-5 degrees\n-6"),
    ],
)
def test_items_of_lists_are_parted(text: str, expected: str) -> None:
    assert for_channel(text)[0] == expected
    assert finished_lines(f"{text}\n") == f"{expected}\n"


@pytest.mark.parametrize(
    "text",
    [
        "a [label](https://example.org/page) b",  # a web source
        "| one line only |",
        "| a | b |\n| c | d |",  # lacks the delimiter row of a table
        "| a | b |\n|---|",
        "`![x](y)` and [",
        "!",
        "\n\nend",
        "~~~\n| a |\n|---|\n| b |",
    ],
)
def test_what_is_no_table_and_no_link_of_ours_stays(text: str) -> None:
    assert for_channel(text)[0] == text.strip("\n")


def test_a_picture_without_a_caption_leaves_nothing() -> None:
    assert for_channel(f"a\n\n![]({_PICTURE})\n\nb")[0] == "a\n\n\n\nb"


def test_names_are_shown_as_they_are_and_link_nowhere() -> None:
    escaped_text = markdown_text("[x](http://evil.example) *a* <at>b</at>\n| www.evil.example _c_ d_e & `f`")
    assert escaped_text == (
        r"\[x\](http: //evil.example) \*a\* &lt;at&gt;b&lt;/at&gt; \| www .evil.example \_c\_ d_e & \`f\`"
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("# heading.pdf", r"\# heading.pdf"),
        ("1. Bericht.pdf", r"1\. Bericht.pdf"),
        ("2) Bericht.pdf", r"2\) Bericht.pdf"),
        ("> quote", "&gt; quote"),
        ("- item", r"\- item"),
        ("+ item", r"\+ item"),
        ("=====", r"\====="),
        ("2024.pdf", "2024.pdf"),
        ("-", r"\-"),
    ],
)
def test_names_begin_no_heading_list_or_quotation(name: str, expected: str) -> None:
    assert markdown_text(name) == expected
    assert without_markdown(expected) == name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- It runs.[1]", "• It runs.[1]"),
        ("Intro:\n\n* It runs\n  fast.[1]\n\nEnd.", "Intro:\n\n• It runs\n  fast.[1]\n\nEnd."),
        ("1. It runs.[1]", r"1\. It runs.[1]"),
        ("| a | b |\n|---|---|\n| x | y[1] |", "• **x** · b: y[1]"),
        ("- It runs.[1]\n- It stops.[2]", "- It runs.[1]\n\n- It stops.[2]"),
        ("- It runs.[1]\n\nAnd:\n\n- It stops.[2]", "• It runs.[1]\n\nAnd:\n\n• It stops.[2]"),
        ("- It runs.[1]\n\n  And stops.", "- It runs.[1]\n\n  And stops."),
        ("- It runs.", "- It runs."),
        ("```\n- x[1]\n```", "```\n- x[1]\n```"),
        ("```\n\nx\n\n- y[1]\n\nz\n```", "```\n\nx\n\n- y[1]\n\nz\n```"),
        (" - It stands.[1]", " • It stands.[1]"),
        ("Yes:\n  3) It stands.[1]", "Yes:\n  3\\) It stands.[1]"),
    ],
)
def test_the_source_of_a_lone_item_is_shown_as_a_chip(text: str, expected: str) -> None:
    """Check single items: the Playground shows no chip within a list that lacks blank lines."""
    assert for_channel(text)[0] == expected


_SIGNS = ("[", "]", "(", ")", "!", "|", "\n", "\n\n", "*", "_", "\\", "<", ">", "&", "-", ":", " ", "x")
_PIECES = (
    *_SIGNS,
    *("http://evil.example", "/api/documents/d/x", "<at>all</at>", "[1]", "(Source: a.pdf, S. 1)"),
    *("![x](http://evil.example/p.png)", "[x](/api/documents/d/x)", "|---|---|", "| a | b |\n|---|---|\n"),
)
_CODE = ("`", "```", "~~~")


@pytest.mark.parametrize("seed", range(40))
def test_what_a_model_writes_becomes_no_link_however_it_is_put_together(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(10):
        text = readable("".join(chance.choice(_PIECES) for _ in range(chance.randint(1, 60))))
        channel_text = for_channel(text)[0]
        assert "](" not in channel_text
        assert "://" not in channel_text
        assert not re.search(r"<[a-z/]", channel_text)


@pytest.mark.parametrize("seed", range(40))
def test_odd_texts_only_grow_either(seed: int) -> None:
    chance = random.Random(seed)
    text = "".join(chance.choice((*_PIECES, *_CODE)) for _ in range(80))
    assert all(after.startswith(before) for before, after in pairwise(prefixes_of(text)))
