"""Conversion of callers' filters to OData. Unknown fields are rejected, and all values are escaped in one
function.
"""

import re

from shared.platform.errors import InvalidQueryError
from shared.platform.odata import all_of, quote, search_in
from shared.platform.search import DateRange, Filters, FilterValue

BLOCK_FIELDS = frozenset(
    {"doc_id", "project_id", "filename", "document_type", "department", "page_number", "block_type"}
)
DOCUMENT_FIELDS = frozenset(
    {
        "doc_id",
        "project_id",
        "filename",
        "file_type",
        "document_type",
        "department",
        "author",
        "language",
        "tags",
        "upload_date",
        "document_date",
        "page_count",
    }
)
SEARCH_FIELDS = BLOCK_FIELDS | DOCUMENT_FIELDS
"""Filter fields of a block search. Fields that blocks lack are matched against their documents."""
_COLLECTIONS = frozenset({"tags"})
_DATES = frozenset({"upload_date", "document_date"})
_INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,7})?)?(Z|[+-]\d{2}:\d{2}))?\Z")


def render_filters(filters: Filters, allowed: frozenset[str]) -> str | None:
    """Convert the filters to OData conditions joined with `and`, or return None if there are no filters.

    Scalars mean equality and lists any-of. A DateRange includes both ends; a bare date means the whole day
    in UTC.

    Raises:
        InvalidQueryError: a field is not in `allowed`, or a value has the wrong type.
    """
    return all_of(*(_condition(field, value, allowed) for field, value in sorted(filters.items())))


def _condition(field: str, value: FilterValue | DateRange, allowed: frozenset[str]) -> str:
    if field not in allowed:
        raise InvalidQueryError(
            f"There is no filter field {field!r}.", f"Allowed fields: {', '.join(sorted(allowed))}."
        )
    if isinstance(value, DateRange):
        return _date_range(field, value)
    if field in _DATES:
        raise InvalidQueryError(f"{field} needs a date range.", 'Example: {"start": "2024-01-01"}.')
    if isinstance(value, tuple):
        return _any_of(field, value)
    if field in _COLLECTIONS:
        return f"{field}/any(item: item eq {_literal(value)})"
    return f"{field} eq {_literal(value)}"


def _any_of(field: str, values: tuple[str, ...] | tuple[int, ...]) -> str:
    if not values:
        raise InvalidQueryError(f"The list for {field} is empty.", "Omit the field or give it a value.")
    texts = [value for value in values if isinstance(value, str)]
    variable = "item" if field in _COLLECTIONS else field
    if len(texts) == len(values):
        condition = search_in(variable, texts)
    else:
        condition = "(" + " or ".join(f"{variable} eq {_literal(value)}" for value in values) + ")"
    return f"{field}/any(item: {condition})" if field in _COLLECTIONS else condition


def _date_range(field: str, value: DateRange) -> str:
    if field not in _DATES:
        raise InvalidQueryError(f"{field} is not a date field.", f"Date fields: {', '.join(sorted(_DATES))}.")
    condition = all_of(
        value.start and f"{field} ge {_instant(value.start, '00:00:00')}",
        value.end and f"{field} le {_instant(value.end, '23:59:59.9999999')}",
    )
    if condition is None:
        raise InvalidQueryError(f"The date range for {field} is empty.", "Give start, end, or both.")
    return condition


def _instant(text: str, time_of_day: str) -> str:
    # Dates are inserted into the filter without quotes, so only text of exactly this form may pass.
    if not _INSTANT.match(text):
        raise InvalidQueryError(f"{text[:40]!r} is not a date.", "Write 2024-01-31 or 2024-01-31T12:00:00Z.")
    return text if "T" in text else f"{text}T{time_of_day}Z"


def _literal(value: str | float | bool) -> str:
    return quote(value) if isinstance(value, str) else repr(value).lower()
