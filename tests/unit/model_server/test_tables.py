"""Tests for table questions: the SQL that the model server writes and its answer from the rows."""

import json

import pytest

from local.model_server.protocol.requests import ChatRequest
from local.model_server.tables import answer_from_rows, query_tables


def table(name: str, number: int) -> dict[str, object]:
    columns = [
        {"name": "region", "label": "Region", "type": "text"},
        {"name": "revenue", "label": "Revenue", "type": "money"},
    ]
    return {"table_id": f"d.{number}", "name": name, "title": name.title(), "columns": columns}


def make_request(question: str, *messages: dict[str, str]) -> ChatRequest:
    cards = "".join(
        f"<table>{json.dumps(table(name, n))}</table>" for n, name in enumerate(("north", "south"), 1)
    )
    text = f"<question>{question}</question><documents></documents>{cards}"
    function = {"name": "run_sql", "parameters": {"type": "object"}}
    return ChatRequest.model_validate(
        {
            "model": "m",
            "messages": [{"role": "user", "content": text}, *messages],
            "tools": [{"type": "function", "function": function}],
        }
    )


@pytest.mark.parametrize(
    ("question", "sql", "table_ids"),
    [
        ("What is the sum of revenue?", "SELECT SUM(revenue) AS result FROM north", ["d.1"]),
        (
            "Top three regions by revenue?",
            "SELECT region, SUM(revenue) AS result FROM north GROUP BY region ORDER BY result DESC LIMIT 3",
            ["d.1"],
        ),
        (
            "Compare the average revenue of both sheets",
            "SELECT 'North' AS place, AVG(revenue) AS result FROM north UNION ALL "
            "SELECT 'South' AS place, AVG(revenue) AS result FROM south",
            ["d.1", "d.2"],
        ),
    ],
)
def test_a_plain_question_becomes_sql(question: str, sql: str, table_ids: list[str]) -> None:
    call = query_tables(make_request(question))
    assert call is not None
    assert json.loads(call.arguments) == {"sql": sql, "table_ids": table_ids}


@pytest.mark.parametrize("question", ["What is the revenue?", "What is the sum of costs?"])
def test_nothing_else_is_calculated(question: str) -> None:
    assert query_tables(make_request(question)) is None


def test_the_rows_are_the_answer() -> None:
    result = {"success": True, "result_id": "q1", "columns": ["result"], "rows": [[12.5]]}
    tool_message = {"role": "tool", "tool_call_id": "1", "content": json.dumps(result)}
    for question, number in (("What is the sum of revenue?", "12.5"), ("Wie hoch ist die Summe?", "12,5")):
        request = make_request(question, tool_message)
        assert query_tables(request) is None
        assert (
            answer_from_rows(request) == f'<answer>| result |\n| --- |\n| {number} |\n\n<cite result="q1"/>'
        )
