"""Tests that values in an OData filter are always escaped."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.platform.odata import all_of, quote, search_in


@given(st.text())
def test_a_quoted_value_has_no_lone_quote(value: str) -> None:
    inner = quote(value)[1:-1]
    assert "'" not in inner.replace("''", "")


@given(st.lists(st.text(min_size=1), min_size=1, max_size=6))
def test_the_delimiter_occurs_in_no_value(values: list[str]) -> None:
    rendered = search_in("acl", values)
    if rendered.startswith("search.in("):
        delimiter = rendered[-3]
        assert not any(delimiter in value for value in values)
    else:
        assert rendered.count("acl eq ") == len(set(values))


def test_the_first_delimiter_that_no_value_has_separates_them() -> None:
    assert search_in("acl", ["a", "b", "a"]) == "search.in(acl, 'a|b', '|')"
    assert search_in("acl", ["a|b", "c"]) == "search.in(acl, 'a|b;c', ';')"


def test_values_with_every_delimiter_become_equality_tests() -> None:
    hostile = "a|b;c,d~e^f\x1fg"
    assert search_in("acl", [hostile, "x"]) == f"(acl eq '{hostile}' or acl eq 'x')"


def test_a_value_with_blanks_at_its_end_is_compared_whole() -> None:
    assert search_in("acl", ["u1 "]) == "(acl eq 'u1 ')"


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        search_in("acl", [])


def test_conditions_keep_their_own_parentheses() -> None:
    assert all_of("a eq 1 or b eq 2", None, "c eq 3") == "(a eq 1 or b eq 2) and (c eq 3)"
    assert all_of(None, "") is None
    assert all_of("a eq 1") == "a eq 1"
