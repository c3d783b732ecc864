"""Tests for hints that owners give about tables: they are validated and added to the table cards."""

import json
import sqlite3
from pathlib import Path

import pytest

from shared.platform.tokens import token_counter
from shared.tables.cards import card
from shared.tables.hints import MAX_BYTES, with_hints
from shared.tables.loader import TableFile
from shared.tables.models import DATABASE, Table, sql_name, with_names

HINTS = """tables:
  - table: Sales
    description: Invoiced sales of the pump division.
    synonyms: [turnover, Umsatz]
    columns:
      Revenue:
        description: Without tax, in EUR.
        synonyms: [income]
    questions:
      - question: What was the total revenue of the north?
        sql: SELECT SUM(sales.revenue) FROM Sales WHERE region = 'North'
      - question: How far is each region from its target?
        sql: >
          SELECT s.region, SUM(s.revenue) - p.target FROM sales s
          JOIN plan p ON p.region = s.region GROUP BY s.region, p.target
"""


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Table, ...]:
    file = TableFile(tmp_path, "sales.xlsx")
    for sheet, header in (("Sales", "Revenue"), ("Plan", "Target")):
        rows = [["Region", header], ["North", "120"], ["South", "80"]]
        assert list(file.load_rows(rows, sheet)) == rows
    return file.close()


def test_hints_stand_in_the_card_and_their_queries_run(tables: tuple[Table, ...], tmp_path: Path) -> None:
    hinted_tables, notes = with_hints(tables, HINTS, "sales.xlsx")
    assert notes == []
    text = card(hinted_tables[0], 500, token_counter(None))
    for phrase in ("pump division", "Umsatz", "Without tax", "income", "far is each region"):
        assert phrase in text
    named_tables = with_names("doc", hinted_tables)
    assert Table.from_stored(named_tables[0].model_dump_json()) == named_tables[0]
    with sqlite3.connect(tmp_path / DATABASE) as connection:
        for table in hinted_tables:
            connection.execute(
                f'CREATE TEMP VIEW "{sql_name("doc", table)}" AS SELECT * FROM {table.stored_name}'
            )
        results = [connection.execute(one.sql).fetchall() for one in named_tables[0].approved]
    assert results == [[(120,)], [("North", 0), ("South", 0)]]


@pytest.mark.parametrize(
    ("hints", "line", "message"),
    [
        ("tables:\n  - table: Costs\n", 2, "no table 'Costs' (Sales, Plan)"),
        ("tables:\n  - description: Sold.\n", 2, "`table` is required"),
        ("tables:\n  - table: Plan\n    columns:\n      Goal: {description: x}\n", 4, "no column 'Goal'"),
        ("tables:\n  - table: Plan\n    colums: {}\n", 3, "colums"),
        ("tables:\n  - table: Plan\n    questions:\n      - question: x\n", 4, "sql"),
        (
            "tables:\n  - table: Plan\n    questions:\n      - question: x\n        sql: DELETE FROM plan\n",
            5,
            "Only SELECT",
        ),
        (
            "tables:\n  - table: Plan\n    questions:\n      - question: x\n        sql: SELECT a FROM plan",
            5,
            "column is unknown",
        ),
        ("tables:\n  - table: 'Plan\n", 3, ""),
        ("tables:\n  - &a {table: Plan}\n  - *a\n", 1, "aliases"),
        ("just words", 1, ""),
        ("", 1, ""),
        ("x" * (MAX_BYTES + 1), 1, "64 KB"),
    ],
)
def test_a_slip_is_named_with_its_line_and_costs_no_table(
    tables: tuple[Table, ...], hints: str, line: int, message: str
) -> None:
    hinted_tables, notes = with_hints(tables, hints, "sales.xlsx")
    assert [table.columns for table in hinted_tables] == [table.columns for table in tables]
    assert notes[0].startswith(f"sales.xlsx.tables.yaml, line {line}: ")
    assert message in notes[0]


def test_the_rest_of_wrong_hints_holds(tables: tuple[Table, ...]) -> None:
    wrong = HINTS.replace("Revenue:", "Income:")
    hinted_tables, notes = with_hints(tables, wrong, "sales.xlsx")
    assert (len(notes), hinted_tables[0].synonyms, len(hinted_tables[0].approved)) == (
        1,
        ("turnover", "Umsatz"),
        2,
    )
    assert json.loads(hinted_tables[0].model_dump_json())["description"]
