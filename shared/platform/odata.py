"""OData text. The only module that inserts values into filters."""

from collections.abc import Iterable
from datetime import UTC, datetime

_DELIMITERS = "|;,~^\x1f"


def quote(value: str) -> str:
    """Return a string literal: wrapped in single quotes, which are doubled inside. No other escaping is
    needed.
    """
    return "'" + value.replace("'", "''") + "'"


def instant(moment: datetime) -> str:
    """Return a table literal of an instant."""
    return f"datetime'{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}'"


def search_in(variable: str, values: Iterable[str]) -> str:
    """Return the condition that `variable` equals one of `values`, whole and case-sensitively.

    `search.in` splits its list at a delimiter, so the delimiter must occur in no value; a value could
    otherwise inject another. If every candidate occurs, equality tests joined by `or` are used instead.

    Raises:
        ValueError: no values. Services interpret an empty list differently.
    """
    distinct = list(dict.fromkeys(values))
    if not distinct:
        raise ValueError("search_in needs at least one value")
    joined = "".join(distinct)
    # An empty string looks like a missing entry, and the service trims surrounding blanks.
    exact = all(value and value == value.strip() for value in distinct)
    free = next((mark for mark in _DELIMITERS if mark not in joined), None) if exact else None
    if free is None:
        return "(" + " or ".join(f"{variable} eq {quote(value)}" for value in distinct) + ")"
    return f"search.in({variable}, {quote(free.join(distinct))}, {quote(free)})"


def all_of(*conditions: str | None) -> str | None:
    """Join conditions with `and`, each in parentheses; None if there are none."""
    terms = [condition for condition in conditions if condition]
    if len(terms) <= 1:
        return terms[0] if terms else None
    return " and ".join(f"({condition})" for condition in terms)
