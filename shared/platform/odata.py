"""Construction of OData filters. Only this module inserts values into filters, so they are always quoted."""

from collections.abc import Iterable
from datetime import UTC, datetime

_DELIMITERS = "|;,~^\x1f"


def quote(value: str) -> str:
    """Return a value as an OData string literal in single quotes. Quotes inside it are doubled, which is the
    only escaping OData needs.
    """
    return "'" + value.replace("'", "''") + "'"


def instant(moment: datetime) -> str:
    """Return an instant as an OData datetime literal for table queries."""
    return f"datetime'{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}'"


def search_in(variable: str, values: Iterable[str]) -> str:
    """Return the filter that matches rows whose `variable` equals one of `values`, case-sensitively.

    The filter uses `search.in` with a delimiter that occurs in none of the values; otherwise a value could
    inject further values. If there is no such delimiter, the filter consists of comparisons joined by `or`.

    Raises:
        ValueError: `values` is empty. Services differ in how they interpret an empty list.
    """
    distinct = list(dict.fromkeys(values))
    if not distinct:
        raise ValueError("search_in needs at least one value")
    joined = "".join(distinct)
    # Use plain comparisons for empty values and outer blanks: search.in drops the former and trims the
    # latter.
    exact = all(value and value == value.strip() for value in distinct)
    free = next((mark for mark in _DELIMITERS if mark not in joined), None) if exact else None
    if free is None:
        return "(" + " or ".join(f"{variable} eq {quote(value)}" for value in distinct) + ")"
    return f"search.in({variable}, {quote(free.join(distinct))}, {quote(free)})"


def all_of(*conditions: str | None) -> str | None:
    """Join conditions with `and`, each in parentheses. Empty conditions are skipped; None means no
    condition.
    """
    terms = [condition for condition in conditions if condition]
    if len(terms) <= 1:
        return terms[0] if terms else None
    return " and ".join(f"({condition})" for condition in terms)
