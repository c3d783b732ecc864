"""Tests for headings of tagged PDFs, which depend on the structure tree alone."""

from pathlib import Path

from shared.ingestion.parsers.pdf import parse_pdf

TAGGED = (
    ("H1", "Pump manual"),
    ("P", "The pump moves water."),
    ("H2", "Safety"),
    ("P", "Wear gloves."),
    ("H3", "Gloves of leather"),
)


def tagged_pdf(path: Path, parts: tuple[tuple[str, str], ...], bold: str) -> Path:
    """Write a tagged one-page PDF in a single font size. Only the part `bold` is bold; the file has no xref
    table.
    """
    content = "\n".join(
        f"/{kind} <</MCID {number}>> BDC BT /{'F2' if text == bold else 'F1'} 10 Tf "
        f"72 {700 - 40 * number} Td ({text}) Tj ET EMC"
        for number, (kind, text) in enumerate(parts)
    )
    kids = [f"{10 + number} 0 R" for number in range(len(parts))]
    objects = {
        1: "<</Type/Catalog/Pages 2 0 R/MarkInfo<</Marked true>>/StructTreeRoot 7 0 R>>",
        2: "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        3: "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/StructParents 0"
        "/Resources<</Font<</F1 5 0 R/F2 6 0 R>>>>>>",
        4: f"<</Length {len(content)}>>stream\n{content}\nendstream",
        5: "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        6: "<</Type/Font/Subtype/Type1/BaseFont/Helvetica-Bold>>",
        7: f"<</Type/StructTreeRoot/K[8 0 R]/ParentTree<</Nums[0[{' '.join(kids)}]]>>>>",
        8: f"<</Type/StructElem/S/Document/P 7 0 R/K[{' '.join(kids)}]>>",
    }
    for number, (kind, _) in enumerate(parts):
        objects[10 + number] = f"<</Type/StructElem/S/{kind}/P 8 0 R/Pg 3 0 R/K {number}>>"
    body = "\n".join(f"{number} 0 obj\n{value}\nendobj" for number, value in objects.items())
    path.write_text(f"%PDF-1.7\n{body}\ntrailer<</Root 1 0 R>>\n%%EOF", encoding="latin-1")
    return path


def test_tags_make_headings_with_their_levels_and_bold_lines_none(tmp_path: Path) -> None:
    document = parse_pdf(tagged_pdf(tmp_path / "a.pdf", TAGGED, bold="Wear gloves."))
    assert [(e.kind, e.level, e.text) for e in document.elements] == [
        ("heading", 1, "Pump manual"),
        ("paragraph", None, "The pump moves water."),
        ("heading", 2, "Safety"),
        ("paragraph", None, "Wear gloves."),
        ("heading", 3, "Gloves of leather"),
    ]


def test_where_few_headings_are_tagged_the_look_still_counts(tmp_path: Path) -> None:
    parts = (*TAGGED[:2], ("P", "Daily care"), TAGGED[3])
    document = parse_pdf(tagged_pdf(tmp_path / "a.pdf", parts, bold="Daily care"))
    assert [e.text for e in document.elements if e.kind == "heading"] == ["Pump manual", "Daily care"]
