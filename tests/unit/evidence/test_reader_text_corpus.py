"""Tests that hostile text, parsed by markdown-it, yields only links, images and tags added by the app."""

import pytest

from shared.evidence.reader_text import ReaderText, readable
from tests.unit.evidence.reader_text_corpus import HOST, hostile_texts, in_pieces, live_parts

pytestmark = pytest.mark.attack("forged names")

_QUICK = pytest.param(1_500, 7, id="sample")  # takes 2 s
_FULL = pytest.param(
    60_000, 11, id="full", marks=[pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(900)]
)
CORPUS = pytest.mark.parametrize(("count", "seed"), [_QUICK, _FULL])
MOMENT = "/api/documents/d1/readable?t=83#cited"
PICTURE = "/api/documents/d1/figures/a.png"
OWN = (f"(Source: talk.vtt, [01:23]({MOMENT}))[1]", f"\n\n![A valve]({PICTURE})\n\n")

LINK = f"[Sign in](https://{HOST}/login)"


@CORPUS
def test_no_hostile_text_leaves_a_link_a_picture_or_html(count: int, seed: int) -> None:
    for text, source in hostile_texts(count, seed):
        whole = readable(text)
        assert in_pieces(text, source) == whole, text
        assert live_parts(whole) == [], text


@CORPUS
def test_our_own_links_and_pictures_are_the_only_ones(count: int, seed: int) -> None:
    texts = hostile_texts(count, seed + 1)
    for (before, source), (after, _) in zip(texts, texts, strict=False):
        reader = ReaderText()
        output = reader.feed(before) + reader.note(source.choice(OWN)) + reader.feed(after) + reader.finish()
        assert live_parts(output, frozenset((MOMENT, PICTURE))) == [], (before, after)


@pytest.mark.parametrize(
    "text",
    [
        f"~~~ ![p](https://{HOST}/i.png) | b\n|---|---|\n| <script>alert(1)</script> {LINK} | y |\n",
        f"~~~ {LINK} | b\n|---|---|\n",
        f"``` {LINK} | b\n-|-\n",
        f"   ```\ncode\n```\n{LINK}\n",
        f" ~~~\ncode\n~~~\n{LINK}\n",
        f"- ```\n\n  code\n\ntext\n ```\n```\n{LINK}\n```\n{LINK}\n",
        f"- a\n  ```\n  code\nb\n  ```\n  code\n```\n{LINK}\n",
        f"> ```\n> code\n\n   ```\n```\n{LINK}\n",
    ],
    ids=[
        "table head, tildes",
        "link in table head",
        "table head, backticks",
        "indented backticks",
        "indented tildes",
        "list that ends in code",
        "list that ends before its fence",
        "quotation",
    ],
)
def test_a_fence_that_readers_see_otherwise_hides_no_link(text: str) -> None:
    assert live_parts(readable(text)) == []


def test_a_line_break_behind_the_number_of_a_list_begins_no_html() -> None:
    assert live_parts(readable("1. <br/>\n   a")) == []
    assert readable("| 1<br>2 | a<br>b |") == "| 1<br>2 | a<br>b |"


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("```python\na[1](x)\n```\n", "```python\na[1](x)\n```\n"),
        ("~~~ c++ linenos=1\na[1](x)\n~~~\n", "~~~c++\na[1](x)\n~~~\n"),
        ("1. Run:\n   ```sh\n   ls\n   ```\n\n```\na[1](x)\n```\n",) * 2,
        ("- ```\n  ls\n  ```\n```\na[1](x)\n```\n",) * 2,
    ],
    ids=["language", "attributes", "in a list", "first in a list"],
)
def test_code_stays_code(markdown: str, expected: str) -> None:
    assert readable(markdown) == expected
