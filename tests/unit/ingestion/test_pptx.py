"""Tests for the PowerPoint parser with generated presentations."""

from typing import Any

from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from tests.unit.ingestion.conftest import Parse

TITLE_AND_BODY, TITLE_ONLY = 1, 5


def titled_slide(presentation: Any, title: str, layout: int = TITLE_ONLY) -> Any:
    slide = presentation.slides.add_slide(presentation.slide_layouts[layout])
    slide.shapes.title.text = title
    return slide


def text_box(shapes: Any, left: float, top: float, text: str) -> None:
    shapes.add_textbox(Inches(left), Inches(top), Inches(2), Inches(0.5)).text_frame.text = text


def test_a_slide_is_a_page_its_title_a_heading_and_its_body_a_list(parse: Parse) -> None:
    presentation = Presentation()
    titled_slide(presentation, "Agenda")
    slide = titled_slide(presentation, "Steps", TITLE_AND_BODY)
    frame = slide.placeholders[1].text_frame
    frame.text = "Open"
    detail = frame.add_paragraph()
    detail.text, detail.level = "slowly", 1
    document = parse(presentation, ".pptx")
    assert [(e.kind, e.page_number, e.text) for e in document.elements] == [
        ("heading", 1, "Agenda"),
        ("heading", 2, "Steps"),
        ("list_item", 2, "- Open"),
        ("list_item", 2, "  - slowly"),
    ]
    assert document.page_count == 2


def test_shapes_come_from_top_to_bottom_and_left_to_right_groups_together(parse: Parse) -> None:
    presentation = Presentation()
    shapes = titled_slide(presentation, "Title").shapes
    text_box(shapes, 5, 2, "right")
    text_box(shapes, 1, 2.1, "left")
    group = shapes.add_group_shape()
    text_box(group.shapes, 1, 5, "lower in group")
    text_box(group.shapes, 1, 4, "upper in group")
    texts = [element.text for element in parse(presentation, ".pptx").elements]
    assert texts == ["Title", "left", "right", "upper in group", "lower in group"]


def test_tables_charts_and_notes_are_read(parse: Parse) -> None:
    presentation = Presentation()
    slide = titled_slide(presentation, "Figures")
    table = slide.shapes.add_table(2, 2, Inches(1), Inches(2), Inches(4), Inches(1)).table
    table.cell(0, 0).merge(table.cell(0, 1))
    table.cell(0, 0).text, table.cell(1, 0).text, table.cell(1, 1).text = "Both", "a", "b"
    chart_values = CategoryChartData()
    chart_values.categories = ["North", "South"]
    chart_values.add_series("2024", (1.5, 0.1 + 0.2))
    slide.shapes.add_chart(
        XL_CHART_TYPE.COLUMN_CLUSTERED, Inches(1), Inches(4), Inches(4), Inches(2), chart_values
    )
    slide.notes_slide.notes_text_frame.text = "Say hello."
    texts = [element.text for element in parse(presentation, ".pptx").elements]
    assert texts == [
        "Figures",
        "| Both | Both |\n| --- | --- |\n| a | b |",
        "|  | 2024 |\n| --- | --- |\n| North | 1.5 |\n| South | 0.3 |",
        "Notes: Say hello.",
    ]


def test_a_hidden_slide_is_left_out_and_named(parse: Parse) -> None:
    presentation = Presentation()
    titled_slide(presentation, "Shown")
    titled_slide(presentation, "Hidden")._element.set("show", "0")
    document = parse(presentation, ".pptx")
    assert [element.text for element in document.elements] == ["Shown"]
    assert document.warnings == ("Slide 2 is hidden and was left out.",)


def test_a_damaged_shape_costs_its_slide_only(parse: Parse) -> None:
    presentation = Presentation()
    shapes = titled_slide(presentation, "Damaged").shapes
    frame = shapes.add_table(1, 1, 0, 0, 100, 100)
    frame._element.graphic.graphicData.remove(frame._element.graphic.graphicData.tbl)
    titled_slide(presentation, "Whole")
    document = parse(presentation, ".pptx")
    assert [element.text for element in document.elements] == ["Whole"]
    assert document.warnings == ("Slide 1 could not be read and was left out.",)
