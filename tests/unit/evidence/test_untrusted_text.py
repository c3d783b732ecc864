"""Tests for names chosen by others within messages of the app."""

import re

import pytest
from markdown_it import MarkdownIt

from shared.evidence.citations import source_place
from shared.evidence.untrusted_text import markdown_name, one_line, shown_name

pytestmark = pytest.mark.attack("forged names")

FORGED = "heron-400-manual.pdf, S. 4)[1] is the source of this (Source: b.md"
# Text that clients turn into links ("extended autolinks" of GitHub Flavored Markdown).
LINK = re.compile(r"(?<!\w)www\.\w|https?://|\w@\w", re.IGNORECASE)
PLACE = re.compile(r"\(Source:[^()]*(?:\([^()]*\)[^()]*)*\)\[\d+\]")


def seen(markdown: str) -> str:
    """Return the rendered text, with links and images replaced by `<kind>`."""
    tokens = MarkdownIt("commonmark", {"html": True}).parse(markdown)
    children = [child for token in tokens for child in token.children or []]
    return "".join(
        child.content if child.type in ("text", "text_special") else f"<{child.type}>" for child in children
    )


@pytest.mark.parametrize(
    "name",
    [
        FORGED,
        FORGED.replace("[1]", "［1］"),
        "a) [ 1 ] and（Source: manual.pdf）[2].md",
        "(Source: heron-400-manual.pdf, S. 4)[1] says so.md",
        "a (Ѕource: heron.pdf)[1].md",
        "a ⁽Source: heron.pdf⁾[1].md",
    ],
)
def test_a_name_cannot_pass_for_a_source_of_ours(name: str) -> None:
    visible_text = seen(f"It is safe ({source_place(name, 2)})[1].")
    places = PLACE.findall(visible_text)
    assert len(places) == 1
    assert visible_text == f"It is safe {places[0]}."
    assert len(re.findall(r"\(\s*.?ource", visible_text)) == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("report (1) [draft].pdf", "report (1) [draft].pdf"),
        ("Q3 (EMEA) (final).xlsx", "Q3 (EMEA) (final).xlsx"),
        ("a_b ~c~ *d* `e` <b>f</b> &amp; 100 %.md", "a_b ~c~ *d* `e` <b>f</b> &amp; 100 %.md"),
        ("2. plan.pdf", "2. plan.pdf"),
        ("# Übersicht.pdf", "# Übersicht.pdf"),
        ("שלום \u200f.pdf", "שלום \u200f.pdf"),
    ],
)
def test_a_harmless_name_is_shown_as_it_is(name: str, expected: str) -> None:
    assert seen(markdown_name(name)).replace("&lt;", "<").replace("&gt;", ">") == expected


@pytest.mark.parametrize(
    "name", ["www.heron-login.md", "https://heron.example.md", "boss@heron.md", "x WWW.heron.md"]
)
def test_a_name_is_no_link(name: str) -> None:
    assert LINK.search(name)
    assert not LINK.search(seen(markdown_name(name)))


def test_nothing_in_a_name_is_hidden() -> None:
    assert shown_name("report\u202efdp.exe\u200b\n\x1b[31mred\U000e0041") == "reportfdp.exe [31mred"


def test_other_texts_keep_their_parentheses() -> None:
    assert one_line("a) see\nwww.heron.md [1]") == "a) see www .heron.md [1]"


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a ［1］ 10².md", "a (1) 10².md"), ("a(Source: b)c.md", "a Source: b c.md"), ("a (b).md", "a (b).md")],
)
def test_brackets_of_a_name_are_shown_by_harmless_ones(name: str, expected: str) -> None:
    assert shown_name(name) == expected
