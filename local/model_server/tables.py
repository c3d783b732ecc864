"""Writes SQL over uploaded tables by one simple rule: sums, averages and rankings of a column named in the
question.

The value column is the numeric column named in the question, the grouping column the text column named there.
A comparison puts the same column of two tables side by side. Nothing else is calculated.
"""

import json
import re
from collections.abc import Sequence
from html import unescape
from typing import Any

from local.model_server.prompt_reader import element_text
from local.model_server.protocol.replies import ToolCall
from local.model_server.protocol.requests import ChatRequest
from local.model_server.text.words import content_words, detect_language

_ASKS = (
    ("AVG", r"\b(?:average|mean|durchschnitt\w*)\b"),
    ("SUM", r"\b(?:sum|summe|top (?:\d+|three|five|drei|fünf))\b"),
)
_TOP = re.compile(r"\btop (\d+|three|five|drei|fünf)\b", re.IGNORECASE)
_NUMBERS = {"three": 3, "drei": 3, "five": 5, "fünf": 5}


def takes_calculating(question: str) -> bool:
    """Return whether the wording of a question asks for a sum, an average or a ranking."""
    return any(re.search(pattern, question, re.IGNORECASE) for _, pattern in _ASKS)


def query_tables(request: ChatRequest) -> ToolCall | None:
    """Return a `run_sql` call for the tables in the prompt, or None if the rule doesn't apply or a tool was
    already called.
    """
    text = "\n".join(request.texts_of("user"))
    tables = [json.loads(unescape(match)) for match in re.findall(r"<table>(.*?)</table>", text)]
    question = element_text(text, "question") or ""
    stems = _stems(question)
    measured = [(table, name) for table in tables if (name := _named_column(table, stems, is_text=False))]
    may = "run_sql" in request.offered and not request.texts_of("tool")
    if not may or not measured or not takes_calculating(question):
        return None
    is_compared = re.search(r"\b(?:compare|vergleiche)\b", question, re.IGNORECASE) is not None
    targets = [one for one in measured if one[1] == measured[0][1]][: 2 if is_compared else 1]
    function = next(name for name, pattern in _ASKS if re.search(pattern, question, re.IGNORECASE))
    sql = _sql(question, stems, function, targets)
    return ToolCall("run_sql", json.dumps({"sql": sql, "table_ids": [one["table_id"] for one, _ in targets]}))


def answer_from_rows(request: ChatRequest) -> str | None:
    """Return the rows of the last SQL result as a cited Markdown table, or None if there is no result."""
    results = request.texts_of("tool")
    if not results or not results[-1].startswith('{"success": true, "result_id"'):
        return None
    result = json.loads(results[-1])
    text = "\n".join(request.texts_of("user"))
    is_german = detect_language(element_text(text, "question") or "") == "de"
    rows = [[_format_cell(cell, is_german=is_german) for cell in row] for row in result["rows"]]
    lines = [result["columns"], ["---"] * len(result["columns"]), *rows]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f'<answer>{table}\n\n<cite result="{result["result_id"]}"/>'


def _format_cell(cell: str | float | None, *, is_german: bool) -> str:
    """Return a table cell in German or English number format. Numbers from 10,000 get thousands
    separators.
    """
    if not isinstance(cell, int | float):
        return "" if cell is None else cell
    text = f"{cell:,.15g}" if abs(cell) >= 10_000 else f"{cell:.15g}"
    return text.translate(str.maketrans(",.", ".,")) if is_german else text


def _stems(text: str) -> set[str]:
    return {word[:5] for word in content_words(text)}


def _named_column(table: dict[str, Any], stems: set[str], *, is_text: bool) -> str:
    columns = (one for one in table["columns"] if (one["type"] in ("text", "date")) == is_text)
    return next((str(one["name"]) for one in columns if stems & _stems(one["label"])), "")


def _sql(question: str, stems: set[str], function: str, targets: Sequence[tuple[dict[str, Any], str]]) -> str:
    (table, column), *others = targets
    sides = [(one["name"], str(one["title"]).replace("'", "''")) for one, _ in targets]
    result = f"{function}({column}) AS result FROM"
    if others:
        return " UNION ALL ".join(f"SELECT '{title}' AS place, {result} {name}" for name, title in sides)
    group, top = _named_column(table, stems, is_text=True), _TOP.search(question)
    if not group:
        return f"SELECT {result} {table['name']}"
    limit = f" LIMIT {_NUMBERS.get(top[1].lower()) or int(top[1])}" if top else ""
    return f"SELECT {group}, {result} {table['name']} GROUP BY {group} ORDER BY result DESC{limit}"
