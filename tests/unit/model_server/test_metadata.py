"""Tests for metadata derived from labels and counts."""

from html import escape

import pytest

from local.model_server.embedding.service import EmbeddingService
from local.model_server.metadata import extract_metadata
from tests.unit.model_server.conftest import request

TEXT = """# Maintenance Manual X200

Author: Jane Miller
Department: Engineering
Date: 12 March 2024

The X200 is a hydraulic press for workshops. It must be operated by trained staff only. The maximum
pressure of the press is 250 bar. Before each shift the oil level is checked. The filter is replaced
every 500 hours of operation. The safety valve opens at 270 bar. Spare parts are ordered from the
service department. Never open the safety valve while the press is running. The hydraulic press
weighs 480 kg without oil."""


def test_a_manual_is_described_from_its_first_page(embedder: EmbeddingService) -> None:
    message = f"<filename>x200.pdf</filename><document>{escape(TEXT)}</document>"
    metadata = extract_metadata(request(message), embedder)
    expected = {
        "title": "Maintenance Manual X200",
        "author": "Jane Miller",
        "document_type": "manual",
        "department": "Engineering",
        "date": "2024-03-12",
        "language": "en",
    }
    assert {name: metadata[name] for name in expected} == expected
    tags, brief, standard = metadata["tags"], metadata["summary_brief"], metadata["summary_standard"]
    assert isinstance(tags, list)
    assert isinstance(brief, str)
    assert isinstance(standard, str)
    assert {"press", "hydraulic"} <= set(map(str, tags))
    assert brief.count(".") in {2, 3}
    assert 5 <= standard.count(".") <= 8
    assert all(sentence.strip() in " ".join(TEXT.split()) for sentence in standard.split(". "))


def test_an_empty_document_is_named_after_its_file(embedder: EmbeddingService) -> None:
    message = "<filename>travel_policy-2023.docx</filename><document></document>"
    metadata = extract_metadata(request(message), embedder)
    assert (metadata["title"], metadata["document_type"], metadata["date"]) == (
        "travel policy 2023",
        "policy",
        "2023",
    )


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("Issued 2024-02-30 and 2024-02-28", "2024-02-28"),
        ("Stand: 3.5.2022", "2022-05-03"),
        ("Edition of 18 March 2024", "2024-03-18"),
        ("Stand: 30. September 2024", "2024-09-30"),
        ("It holds 2000 litres.", None),
    ],
)
def test_printed_dates_become_iso_dates(embedder: EmbeddingService, text: str, date: str | None) -> None:
    assert extract_metadata(request(f"<document>{text}</document>"), embedder)["date"] == date


@pytest.mark.parametrize(
    "heading", ["UNITED STATES SECURITIES AND EXCHANGE COMMISSION", "Invoice", "We use cookies"]
)
def test_a_letterhead_is_no_title(heading: str, embedder: EmbeddingService) -> None:
    message = f"<filename>3M_2018_10K.pdf</filename><document># {heading}\n\nNet sales rose.</document>"
    assert extract_metadata(request(message), embedder)["title"] == "3M 2018 10K"


def test_an_english_table_is_not_french(embedder: EmbeddingService) -> None:
    table = (
        "| Region | Product | Plus |\n| --- | --- | --- |\n| Les Ulis | Pump | 5 |\n| La Paz | Valve | 4 |"
    )
    message = f"<filename>sales.csv</filename><document>{table}</document>"
    assert extract_metadata(request(message), embedder)["language"] == "und"
