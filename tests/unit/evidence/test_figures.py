"""Tests for figures in an answer: selection, ranking and markup."""

from typing import Any

import pytest
from markdown_it import MarkdownIt

from shared.evidence.citations import CitationBook
from shared.evidence.figures import (
    MAX_FIGURES,
    FigurePlacer,
    alt_text,
    answer_figure,
    figure_markdown,
    figure_name,
    figure_path,
    name_of_path,
)
from shared.retrieval.models import Hit

KEY = f"{5:064x}.png"
TEXT = Hit(block_id="t", doc_id="d", filename="m.pdf", page_number=2, content="The pump runs at 15 bar.")


def picture(block_id: str, **changes: Any) -> Hit:
    values = {
        "block_id": block_id,
        "doc_id": "d",
        "filename": "m.pdf",
        "block_type": "image",
        "page_number": 2,
        "image_url": f"figures/d/{abs(hash(block_id)) % 10**9:064x}.png",
        "image_caption": "A pump curve",
        "score": 0.6,
    }
    return Hit.model_validate({**values, **changes})


def cited(*hits: Hit, quote: str = "The pump runs at 15 bar.") -> CitationBook:
    book = CitationBook((TEXT, *hits))
    assert book.prove("d", quote)
    return book


@pytest.mark.parametrize(
    "path",
    [
        None,
        "",
        "u",
        f"figures/d/../{KEY}",
        f"documents/d/{KEY}",
        f"figures/d/{KEY}?sig=x",
        f"figures//{KEY}",
        "figures/d/x.png",
    ],
)
def test_what_is_no_figure_of_ours_has_no_address(path: str | None) -> None:
    assert figure_path(path) is None
    assert answer_figure(picture("p", image_url=path)) is None


def test_an_address_and_its_blob_name_each_other() -> None:
    path = figure_path(f"figures/d/{KEY}")
    assert path == f"/api/documents/d/figures/{KEY}"
    assert name_of_path(path) == figure_name("d", KEY) == f"d/{KEY}"
    assert figure_name("../d", KEY) is None
    assert name_of_path(f"/api/documents/../figures/{KEY}") is None


def test_a_text_block_is_no_figure() -> None:
    assert answer_figure(picture("p", block_type="text")) is None


def test_a_figure_has_the_caption_of_its_block() -> None:
    for caption, expected in (("A pump curve", "A pump curve"), (None, "")):
        figure = answer_figure(picture("p", image_caption=caption))
        assert figure is not None
        assert figure.caption == expected


@pytest.mark.parametrize(
    ("caption", "text"),
    [
        ("A pump", "A pump"),
        ("", "Figure"),
        ("x" * 200, "x" * 200),
        ("ab " * 100, "ab " * 66 + "…"),
    ],
)
def test_a_long_caption_is_cut_behind_a_word(caption: str, text: str) -> None:
    assert alt_text(caption) == text


@pytest.mark.parametrize(
    "caption",
    [
        "A pump](https://evil) x",
        "A ![x](https://evil) [1]",
        '"><img src=https://evil>',
        "(Source: m.pdf, S. 9)[1]",
        "`code` **bold** \\](https://evil)",
        "Line\nbreak\n\n# heading",
        "&#93;(https://evil)",
        "x" * 5000,
        "",
    ],
)
def test_a_caption_stays_the_text_of_its_picture(caption: str) -> None:
    figure = answer_figure(picture("p", image_caption=caption))
    assert figure is not None
    markdown = figure_markdown(figure)
    (paragraph,) = [token for token in MarkdownIt("commonmark").parse(markdown) if token.type == "inline"]
    kinds = [child.type for child in paragraph.children or ()]
    assert kinds == ["image", "text"]
    assert (paragraph.children or [])[0].attrs["src"] == figure.path
    assert markdown.endswith(") (Source: m.pdf, S. 2)")
    assert "(Source:" not in alt_text(caption)
    assert len(alt_text(caption)) <= 205


def test_only_pictures_of_the_evidence_are_shown_and_each_once() -> None:
    pictures = tuple(picture(f"p{number}") for number in range(MAX_FIGURES + 3))
    placer = FigurePlacer((TEXT, *pictures))
    for block_id in ("", "t", "made up", "../p1", *(hit.block_id for hit in pictures), "p0"):
        placer.want(block_id)
    assert [figure.block_id for figure in placer.take()] == ["p0", "p1", "p2", "p3"]
    placer.want("p0")
    assert not placer.is_waiting


def test_no_picture_splits_a_table_or_the_first_line_of_code() -> None:
    placer = FigurePlacer(())
    free = []
    for text in ("The table:\n| a", " b", " |\nText", " and more\n  ```", "python", "\nx = 1"):
        placer.passed(text)
        free.append(placer.line_is_free)
    assert free == [False, False, True, False, False, True]


def test_pictures_are_kept_while_the_text_shows_them() -> None:
    placer = FigurePlacer((picture("p0"), picture("p1")))
    figures = []
    for block_id in ("p0", "p1"):
        placer.want(block_id)
        figures += placer.take()
    assert placer.placed == figures
    placer.want("p0")
    placer.keep(f"See {figure_markdown(figures[1])}")
    assert placer.placed == [figures[1]]
    placer.want("p0")
    assert placer.is_waiting
    placer.drop()
    assert not placer.is_waiting
