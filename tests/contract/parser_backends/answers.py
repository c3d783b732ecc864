"""The results of the two services for the same two-page report, in their published formats."""

from typing import Any

TEXT = (
    "Pump report\nThe pump moves water.\nPart Bar\nA 6\nFigure 1: Flow\nInlet\nSafety\nStop it first. page 2"
)


def span(text: str) -> list[dict[str, int]]:
    return [{"offset": TEXT.index(text), "length": len(text)}]


def region(page: int, polygon: tuple[float, ...] = (1, 1, 2, 1, 2, 2, 1, 2)) -> list[dict[str, Any]]:
    return [{"pageNumber": page, "polygon": list(polygon)}]


def paragraph(text: str, page: int, role: str | None = None) -> dict[str, Any]:
    entry = {"content": text, "spans": span(text), "boundingRegions": region(page)}
    return {**entry, "role": role} if role else entry


def cell(row: int, column: int, text: str, **more: Any) -> dict[str, Any]:
    return {"rowIndex": row, "columnIndex": column, "content": text, "spans": span(text), **more}


LAYOUT: dict[str, Any] = {
    "apiVersion": "2024-11-30",
    "modelId": "prebuilt-layout",
    "stringIndexType": "textElements",
    "content": TEXT,
    "pages": [
        {
            "pageNumber": 1,
            "width": 8.27,
            "height": 11.69,
            "unit": "inch",
            "spans": [],
            "words": [{"content": "Pump"}],
        },
        {"pageNumber": 2, "width": 8.27, "height": 11.69, "unit": "inch", "spans": []},
    ],
    "paragraphs": [
        paragraph("Pump report", 1, "title"),
        paragraph("The pump moves water.", 1),
        paragraph("Part", 1),
        paragraph("Bar", 1),
        paragraph("A", 1),
        paragraph("6", 1),
        paragraph("Figure 1: Flow", 1),
        paragraph("Inlet", 1),
        paragraph("Safety", 2, "sectionHeading"),
        paragraph("Stop it first.", 2),
        paragraph("page 2", 2, "pageFooter"),
    ],
    "tables": [
        {
            "rowCount": 2,
            "columnCount": 2,
            "cells": [
                cell(0, 0, "Part", kind="columnHeader", elements=["/paragraphs/2"]),
                cell(0, 1, "Bar", kind="columnHeader"),
                {**cell(1, 0, "A"), "spans": [{"offset": TEXT.index("\nA 6") + 1, "length": 1}]},
                cell(1, 1, "6"),
            ],
            "spans": [{"offset": TEXT.index("Part"), "length": 12}],
            "boundingRegions": region(1),
        }
    ],
    "figures": [
        {
            "id": "1.1",
            "boundingRegions": region(1, (1, 1, 7, 1, 7, 8, 1, 8)),
            "spans": span("Inlet"),
            "elements": ["/paragraphs/7"],
            "caption": {"content": "Figure 1: Flow", "spans": span("Figure 1: Flow")},
        }
    ],
    "sections": [
        {
            "spans": [],
            "elements": ["/paragraphs/0", "/paragraphs/1", "/tables/0", "/figures/0", "/sections/1"],
        },
        {"spans": [], "elements": ["/paragraphs/8", "/paragraphs/9"]},
    ],
}
# The offsets are unambiguous, because "A", "6" and "Bar" don't occur in the text before their cells.
LAYOUT["paragraphs"][4]["spans"] = [{"offset": TEXT.index("\nA 6") + 1, "length": 1}]


def read_result(*texts: str, first_page: int = 1) -> dict[str, Any]:
    """Return a result of the read model for pages with these texts."""
    pages = range(first_page, first_page + len(texts))
    return {
        "apiVersion": "2024-11-30",
        "modelId": "prebuilt-read",
        "content": "\n".join(texts),
        "pages": [
            {"pageNumber": page, "lines": [{"content": text}]}
            for page, text in zip(pages, texts, strict=True)
        ],
        "paragraphs": [
            {"content": text, "spans": [], "boundingRegions": [{"pageNumber": page, "polygon": []}]}
            for page, text in zip(pages, texts, strict=True)
        ],
    }


def item(ref: str, label: str, text: str = "", page: int = 1, **more: Any) -> dict[str, Any]:
    box = {"l": 72.0, "t": 770.0, "r": 520.0, "b": 265.0, "coord_origin": "BOTTOMLEFT"}
    prov = [{"page_no": page, "bbox": box, "charspan": [0, len(text)]}]
    return {
        "self_ref": ref,
        "label": label,
        "text": text,
        "orig": text,
        "prov": prov,
        "content_layer": "body",
        **more,
    }


def refs(*references: str) -> list[dict[str, str]]:
    return [{"$ref": reference} for reference in references]


def docling_cell(row: int, column: int, text: str) -> dict[str, Any]:
    return {
        "text": text,
        "start_row_offset_idx": row,
        "end_row_offset_idx": row + 1,
        "start_col_offset_idx": column,
        "end_col_offset_idx": column + 1,
        "column_header": row == 0,
    }


DOCLING: dict[str, Any] = {
    "schema_name": "DoclingDocument",
    "version": "1.8.0",
    "name": "document",
    "furniture": {"self_ref": "#/furniture", "children": [], "label": "unspecified"},
    "body": {
        "self_ref": "#/body",
        "label": "unspecified",
        "children": refs(
            "#/texts/0", "#/texts/1", "#/tables/0", "#/pictures/0", "#/texts/4", "#/groups/0", "#/texts/6"
        ),
    },
    "texts": [
        item("#/texts/0", "title", "Pump report"),
        item("#/texts/1", "text", "The pump  moves\nwater."),
        item("#/texts/2", "caption", "Figure 1: Flow"),
        item("#/texts/3", "text", "Inlet"),
        item("#/texts/4", "section_header", "Safety", page=2, level=1),
        item("#/texts/5", "list_item", "Stop it first.", page=2, marker="-", enumerated=False),
        item("#/texts/6", "page_footer", "page 2", page=2, content_layer="furniture"),
    ],
    "tables": [
        item(
            "#/tables/0",
            "table",
            data={
                "num_rows": 2,
                "num_cols": 2,
                "table_cells": [
                    docling_cell(0, 0, "Part"),
                    docling_cell(0, 1, "Bar"),
                    docling_cell(1, 0, "A"),
                    docling_cell(1, 1, "6"),
                ],
            },
        )
    ],
    "pictures": [
        item("#/pictures/0", "picture", captions=refs("#/texts/2"), children=refs("#/texts/2", "#/texts/3"))
    ],
    "groups": [{"self_ref": "#/groups/0", "label": "list", "children": refs("#/texts/5")}],
    "pages": {
        "1": {"page_no": 1, "size": {"width": 595.0, "height": 842.0}},
        "2": {"page_no": 2, "size": {"width": 595.0, "height": 842.0}},
    },
}
