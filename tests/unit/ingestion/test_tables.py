"""Separated values: the separator, the encoding, and what is malformed."""

from pathlib import Path

import pytest

from shared.ingestion.parsers.tables import parse_csv

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
def test_separator_and_encoding_are_found_out(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    (element,) = parse_csv(path).elements
    assert element.text == TABLE


def test_line_breaks_in_quotes_belong_to_the_cell_and_short_rows_are_filled_up(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('a,b,c\n"one\ntwo",2\n', encoding="utf-8")
    (element,) = parse_csv(path).elements
    assert element.text == ("| a | b | c |\n| --- | --- | --- |\n| one two | 2 |  |")


def test_a_field_without_end_costs_its_row_only(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f'a,b\n1,2\n"{"x" * (1 << 20)}x",4\n5,6\n', encoding="utf-8")
    document = parse_csv(path)
    assert document.elements[0].text.splitlines()[:3] == ["| a | b |", "| --- | --- |", "| 1 | 2 |"]
    assert "malformed" in document.warnings[0]
