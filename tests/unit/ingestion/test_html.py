"""Tests for the HTML parser with generated pages."""

import pytest

from shared.documents.models import Element
from shared.ingestion.parsers.html import parse_html_text
from tests.unit.ingestion.conftest import Parse


def elements(html: str) -> list[tuple[str, str]]:
    return [(element.kind, element.text) for element in parse_html_text(html).elements]


def test_headings_paragraphs_and_code_come_in_order() -> None:
    page = "<h1>Pump <b>manual</b></h1><div>Loose text<p>The <a href='x'>pump</a>\n moves.<br>Water.</div>"
    assert parse_html_text(page + "<pre>if a:\n    b()\n</pre>").elements == (
        Element(kind="heading", text="Pump manual", level=1),
        Element(kind="paragraph", text="Loose text"),
        Element(kind="paragraph", text="The pump moves.\nWater."),
        Element(kind="code", text="if a:\n    b()"),
    )


def test_what_a_reader_does_not_see_is_left_out() -> None:
    page = """<nav>menu</nav><script>x()</script><style>p{}</style><!-- note --><p hidden>h</p>
    <p style="color:red; display: none">d</p><p aria-hidden="true">a</p><div role="navigation">n</div>
    <noscript>ns</noscript><template>t</template><button>b</button><p>seen</p>"""
    assert elements(page) == [("paragraph", "seen")]


def test_lists_nest_and_count() -> None:
    page = "<ul><li>one<ol start=3><li>deep<li>er</ol><li><p>two<p>more</ul><dl><dt>term<dd>meaning</dl>"
    assert elements(page) == [
        ("list_item", "- one"),
        ("list_item", "  3. deep"),
        ("list_item", "  4. er"),
        ("list_item", "- two"),
        ("list_item", "  more"),
        ("list_item", "- term"),
        ("list_item", "  - meaning"),
    ]


def test_spanning_cells_stand_in_every_place_they_cover() -> None:
    page = """<table><caption>Prices</caption><tr><th colspan=2>Pump</th><th>EUR</th></tr>
    <tr><td rowspan=2>big</td><td>P-1</td><td>1|2</td></tr><tr><td>P-2</td><td>3</td></tr></table>"""
    assert elements(page) == [
        ("paragraph", "Prices"),
        ("table", "| Pump | Pump | EUR |\n| --- | --- | --- |\n| big | P-1 | 1\\|2 |\n| big | P-2 | 3 |"),
    ]


def test_the_rows_of_a_header_become_one() -> None:
    page = """<table><tr><th rowspan=2>Region</th><th colspan=2>2024</th></tr><tr><th>Q1</th><th>Q2</th></tr>
    <tr><td>North</td><td>1</td><td>2</td></tr></table>"""
    assert elements(page) == [
        ("table", "| Region | 2024 Q1 | 2024 Q2 |\n| --- | --- | --- |\n| North | 1 | 2 |")
    ]


def test_tables_that_only_place_things_are_read_as_blocks() -> None:
    page = (
        "<table><tr><td><h2>Left</h2></td><td><table><tr><th>a<th>b<tr><td>1<td>2</table></td></tr></table>"
    )
    assert elements(page) == [("heading", "Left"), ("table", "| a | b |\n| --- | --- |\n| 1 | 2 |")]


def test_a_span_that_means_harm_is_cut() -> None:
    (table,) = elements("<table><tr><th>a<th>b<tr><td colspan=999999>x<td>y</table>")
    assert table[1].count("| x") == 100


def test_text_below_any_depth_is_kept() -> None:
    assert elements("<div>" * 3000 + "deep" + "</div>" * 3000) == [("paragraph", "deep")]


@pytest.mark.parametrize(
    "content",
    [
        "<meta charset='iso-8859-1'><p>Größe “€”".encode("cp1252"),
        "<meta http-equiv=content-type content='text/html; charset=koi8-r'><p>Größe “€”".encode(),
        "<p>Größe “€”".encode("utf-16"),
        "<meta charset=nonsense><p>Größe “€”".encode("cp1252"),
        "<meta charset=undefined><p>Größe “€”".encode("cp1252"),
    ],
)
def test_the_encoding_is_found_out(parse: Parse, content: bytes) -> None:
    assert [element.text for element in parse(content, ".html").elements] == ["Größe “€”"]


def test_a_declared_encoding_is_used_where_it_is_needed(parse: Parse) -> None:
    document = parse("<meta charset=koi8-r><title>Насос</title><p>вода".encode("koi8-r"), ".html")
    assert (document.title, document.elements[0].text) == ("Насос", "вода")


def test_title_and_author_come_from_the_head() -> None:
    document = parse_html_text("<head><title> Pump\nmanual</title><meta name=Author content=Ada></head><p>x")
    assert (document.title, document.author) == ("Pump manual", "Ada")


SURROUNDED = """
<div id="cookie-banner" role="dialog"><p>We use cookies. Accept all?</p></div>
<header class="site-header"><p>Harbour Group</p><nav><a href="/">Home</a></nav></header>
<div class="navbar"><ul><li>Support portal</li></ul></div>
<main><article><header><h1>Pump in winter</h1><p>By Ina Brandt</p></header>
<p>Before frost the tank is drained, the valve is closed and the filter is stored in a dry place.</p>
<aside><p>Note: frost warnings are issued from November on.</p></aside>
<footer><p>Ina Brandt writes about pumps.</p></footer></article></main>
<aside><p>Nine recipes with kale</p></aside>
<div class="footer"><p>Copyright 2026</p></div><footer><p>Imprint</p></footer>
"""


def test_a_saved_page_is_read_without_what_surrounds_its_text(parse: Parse) -> None:
    texts = [element.text for element in parse(SURROUNDED.encode(), ".html").elements]
    assert texts == [
        "Pump in winter",
        "By Ina Brandt",
        "Before frost the tank is drained, the valve is closed and the filter is stored in a dry place.",
        "Note: frost warnings are issued from November on.",
        "Ina Brandt writes about pumps.",
    ]


def test_a_part_that_holds_most_of_a_page_is_its_text_whatever_it_is_called(parse: Parse) -> None:
    page = "<p>Short.</p><div class='footer'><p>All of the text of this page stands in its footer.</p></div>"
    assert len(parse(page.encode(), ".html").elements) == 2
