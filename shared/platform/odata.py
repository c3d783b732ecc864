"""OData text. The one place where a value becomes part of a filter."""

from collections.abc import Iterable
from datetime import UTC, datetime

_DELIMITERS = "|;,~^\x1f"


def quote(value: str) -> str:
    """A string literal: single quotes doubled, wrapped in single quotes. Nothing else needs escaping."""
    return "'" + value.replace("'", "''") + "'"


def instant(moment: datetime) -> str:
    """A literal of an instant, as tables take it."""
    return f"datetime'{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}'"


def search_in(variable: str, values: Iterable[str]) -> str:
    """`variable` equals one of `values`, compared whole and case-sensitively.

    `search.in` splits its list at a delimiter, so one is chosen that occurs in no value: a value could
    otherwise smuggle in another. When every candidate occurs, equality tests joined by `or` say the same.

    Raises:
        ValueError: no values; an empty list would be read differently by different services.
    """
    wanted = list(dict.fromkeys(values))
    if not wanted:
        raise ValueError("search_in needs at least one value")
    joined = "".join(wanted)
    # An empty string looks like a missing list entry, and edge blanks are trimmed by the service.
    exact = all(value and value == value.strip() for value in wanted)
    free = next((mark for mark in _DELIMITERS if mark not in joined), None) if exact else None
    if free is None:
        return "(" + " or ".join(f"{variable} eq {quote(value)}" for value in wanted) + ")"
    return f"search.in({variable}, {quote(free.join(wanted))}, {quote(free)})"


def all_of(*conditions: str | None) -> str | None:
    """The given conditions ANDed, each in its own parentheses; None when there is none."""
    given = [condition for condition in conditions if condition]
    if len(given) <= 1:
        return given[0] if given else None
    return " and ".join(f"({condition})" for condition in given)
