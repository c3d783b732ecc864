"""Tests for delimited text files: the separator, the encoding and malformed rows."""

import pytest

from tests.unit.ingestion.conftest import Parse

TABLE = "| name | price |\n| --- | --- |\n| pump, big | 1,5 |"


@pytest.mark.parametrize(
    "content",
    [
        b'name,price\n"pump, big","1,5"\n',
        b"name;price\r\npump, big;1,5\r\n",
        b"name\tprice\npump, big\t1,5\n",
        b"sep=|\nname|price\npump, big|1,5\n",
        "name;price\npump, big;1,5\n".encode("utf-16"),
    ],
)
def test_separator_and_encoding_are_found_out(parse: Parse, content: bytes) -> None:
    (element,) = parse(content, ".csv").elements
    assert element.text == TABLE


def test_line_breaks_in_quotes_belong_to_the_cell_and_short_rows_are_filled_up(parse: Parse) -> None:
    (element,) = parse('a,b,c\n"one\ntwo",2\n', ".csv").elements
    assert element.text == ("| a | b | c |\n| --- | --- | --- |\n| one two | 2 |  |")


def test_a_field_without_end_costs_its_row_only(parse: Parse) -> None:
    document = parse(f'a,b\n1,2\n"{"x" * (1 << 20)}x",4\n5,6\n', ".csv")
    assert document.elements[0].text.splitlines()[:3] == ["| a | b |", "| --- | --- |", "| 1 | 2 |"]
    assert "malformed" in document.warnings[0]
