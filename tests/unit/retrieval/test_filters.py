"""Tests for rendering or refusing the filters of callers."""

import pytest

from shared.platform.errors import InvalidQueryError
from shared.platform.search import DateRange, Filters
from shared.retrieval.filters import BLOCK_FIELDS, DOCUMENT_FIELDS, render_filters


@pytest.mark.parametrize(
    ("filters", "rendered"),
    [
        ({}, None),
        ({"doc_id": "d'1"}, "doc_id eq 'd''1'"),
        ({"page_count": 3}, "page_count eq 3"),
        ({"filename": ("a.pdf", "b.pdf")}, "search.in(filename, 'a.pdf|b.pdf', '|')"),
        ({"page_count": (1, 2)}, "(page_count eq 1 or page_count eq 2)"),
        ({"tags": "pump"}, "tags/any(item: item eq 'pump')"),
        ({"tags": ("a", "b")}, "tags/any(item: search.in(item, 'a|b', '|'))"),
        (
            {"upload_date": DateRange(start="2024-01-01", end="2024-12-31T23:59:59Z")},
            "(upload_date ge 2024-01-01T00:00:00Z) and (upload_date le 2024-12-31T23:59:59Z)",
        ),
        ({"upload_date": DateRange(end="2024-01-01")}, "upload_date le 2024-01-01T23:59:59.9999999Z"),
        ({"author": "x", "language": "en"}, "(author eq 'x') and (language eq 'en')"),
    ],
)
def test_filters_are_rendered(filters: Filters, rendered: str | None) -> None:
    assert render_filters(filters, DOCUMENT_FIELDS) == rendered


@pytest.mark.parametrize(
    "filters",
    [
        {"access_control_list": "*"},
        {"doc_id eq 'x' or doc_id": "y"},
        {"filename": ()},
        {"upload_date": "2024"},
        {"upload_date": DateRange()},
        {"upload_date": DateRange(start="2024-01-01 or true")},
        {"filename": DateRange(start="2024-01-01")},
    ],
)
def test_what_does_not_fit_is_refused(filters: Filters) -> None:
    with pytest.raises(InvalidQueryError):
        render_filters(filters, DOCUMENT_FIELDS)


def test_an_unknown_field_names_the_allowed_ones() -> None:
    with pytest.raises(InvalidQueryError) as refused:
        render_filters({"colour": "red"}, BLOCK_FIELDS)
    assert "document_type" in refused.value.hints[0]


def test_a_long_value_that_is_no_date_is_cut() -> None:
    with pytest.raises(InvalidQueryError, match=f"'{'9' * 40}' is not a date"):
        render_filters({"upload_date": DateRange(start="9" * 50)}, DOCUMENT_FIELDS)


def test_booleans_are_no_numbers() -> None:
    assert render_filters({"page_number": True}, BLOCK_FIELDS) == "page_number eq true"
