"""Tests for converting responses of parser services to layouts: spans, sections and malformed trees."""

from typing import Any

import pytest
from pydantic import ValidationError

from shared.ingestion import docling as docling_service
from shared.ingestion import document_intelligence
from shared.ingestion.docling import DoclingDocument
from shared.ingestion.document_intelligence import AnalyzeResult, page_texts
from shared.ingestion.models import Layout
from shared.ingestion.parser_services import Cell, filled_rows


def intelligence(**parts: Any) -> Layout:
    answer = {"pages": [{"pageNumber": 1, "width": 10, "height": 20}], **parts}
    return document_intelligence.layout_of(AnalyzeResult.model_validate(answer), "it")


def docling(**parts: Any) -> Layout:
    answer = {"pages": {"1": {"size": {"width": 10, "height": 20}}}, **parts}
    return docling_service.layout_of(DoclingDocument.model_validate(answer), "it")


def paragraph(text: str, offset: int, role: str | None = None) -> dict[str, Any]:
    return {"content": text, "role": role, "spans": [{"offset": offset, "length": len(text)}]}


def refs(*references: str) -> list[dict[str, str]]:
    return [{"$ref": reference} for reference in references]


def test_a_cell_that_spans_others_stands_in_each_of_their_places() -> None:
    cells = [Cell(0, 1, 0, 2, "Both"), Cell(1, 2, 0, 1, "a"), Cell(1, 9, 1, 9, "b"), Cell(-3, 0, 5, 6, "x")]
    assert filled_rows(2, 2, cells) == (("Both", "Both"), ("a", "b"))


@pytest.mark.parametrize("size", [(100_000, 100_000), (-1, 2)])
def test_a_table_of_impossible_size_is_refused(size: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="invalid or too large"):
        filled_rows(*size, [])


def test_the_spans_say_the_order_not_the_lists() -> None:
    table = {"rowCount": 1, "columnCount": 1, "cells": [], "spans": [{"offset": 5, "length": 2}]}
    layout = intelligence(paragraphs=[paragraph("last", 9), paragraph("first", 0)], tables=[table])
    assert [piece.text or piece.kind for piece in layout.pieces] == ["first", "table", "last"]


def test_headings_lie_as_deep_as_their_sections_and_circles_end() -> None:
    roles = [paragraph(f"h{depth}", depth * 3, "sectionHeading") for depth in range(4)]
    sections = [
        {"elements": ["/sections/1"]},
        {"elements": ["/paragraphs/0", "/sections/2", "/nonsense", "/paragraphs/x"]},
        {"elements": ["/paragraphs/1", "/sections/3", "/sections/0", "/sections/99"]},
        {"elements": ["/paragraphs/2", "/sections/3"]},
    ]
    layout = intelligence(paragraphs=roles, sections=sections)
    assert [piece.level for piece in layout.pieces] == [2, 3, 4, 2]  # the last heading belongs to no section


def test_selection_marks_become_signs() -> None:
    layout = intelligence(paragraphs=[paragraph(":selected: yes :unselected: no", 0)])
    assert layout.pieces[0].text == "☒ yes ☐ no"


def test_pages_without_paragraphs_are_read_by_their_lines() -> None:
    result = AnalyzeResult.model_validate(
        {"pages": [{"pageNumber": 4, "lines": [{"content": "One"}, {"content": "two"}]}, {"pageNumber": 5}]}
    )
    assert page_texts(result) == {4: "One\ntwo", 5: ""}


def test_a_tree_with_circles_and_holes_ends() -> None:
    body = {"label": "unspecified", "children": refs("#/groups/0", "#/texts/9", "#/texts/x", "#/what/0")}
    groups = [{"label": "list", "children": refs("#/groups/0", "#/texts/0", "#/texts/0")}]
    texts = [
        {"label": "list_item", "text": "one", "marker": "2.", "children": refs("#/groups/0", "#/texts/1")}
    ]
    texts.append({"label": "checkbox_selected", "text": "two"})
    assert [piece.text for piece in docling(body=body, groups=groups, texts=texts).pieces] == [
        "2. one",
        "☒ two",
    ]


def test_a_tree_of_any_depth_is_walked() -> None:
    depth = 5000
    groups = [{"label": "g", "children": refs(f"#/groups/{number + 1}")} for number in range(depth)]
    groups.append({"label": "g", "children": refs("#/texts/0")})
    layout = docling(
        body={"children": refs("#/groups/0")}, groups=groups, texts=[{"label": "text", "text": "deep"}]
    )
    assert [piece.text for piece in layout.pieces] == ["deep"]


def test_texts_below_a_table_are_its_cells_but_for_its_caption() -> None:
    tables = [{"label": "table", "captions": refs("#/texts/0"), "children": refs("#/texts/0", "#/texts/1")}]
    texts = [{"label": "caption", "text": "Table 1"}, {"label": "text", "text": "in a cell"}]
    layout = docling(body={"children": refs("#/tables/0")}, tables=tables, texts=texts)
    assert [piece.text for piece in layout.pieces if piece.kind != "table"] == ["Table 1"]


def test_a_refused_answer_quotes_nothing_of_the_document() -> None:
    with pytest.raises(ValidationError) as refused:
        AnalyzeResult.model_validate_json('{"pages": [{"pageNumber": "words of a document"}]}')
    assert "words of a document" not in str(refused.value)
