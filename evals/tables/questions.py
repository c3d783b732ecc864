"""Evaluation of the tool `query_structured_data`: questions about tables, answered with the configured model.

The tables of a database are loaded like sheets of a workbook, with the app's loader. A result is right if a
gold query's columns are among its columns, with the same values in the same rows, in any order. A computed
result is wrong if the standard library's SQLite returns other rows for the SQL shown.
"""

import asyncio
import json
import math
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any, cast

from shared.access.models import UserContext
from shared.platform.errors import ModelFixableError
from shared.platform.language_models.models import CallLimits, ChatModel, Embedder, Prompt
from shared.platform.settings import Settings
from shared.retrieval.secured_index import SecuredIndex
from shared.tables.loader import TableFile
from shared.tables.models import DATABASE
from shared.tables.queries import QueryFile, QueryJob, QueryResult
from shared.tables.readable_tables import ReadableTable, TableLookup
from shared.tables.sql_worker import answer
from shared.tools.table_queries import result_of
from shared.tools.table_tools import QueryStructuredData, SqlDraft
from shared.wiring import Services, build_services

# Three hours, because a person may write the replies.
PATIENT = CallLimits(timeout_s=3 * 3600)
Row = Sequence[Any]


class Workbook(TableLookup):
    """A table lookup that returns all tables of one database for every search."""

    def __init__(self, database: Path, folder: Path, services: Services) -> None:
        user = UserContext(user_id="eval")
        super().__init__(
            SecuredIndex(services.content_index, user, services.documents),
            SecuredIndex(services.documents_index, user, services.documents),
            user,
            services,
            {},
        )
        self.path = folder / DATABASE
        self._tables = [
            ReadableTable(database.stem, f"{database.stem}.xlsx", "eval", table)
            for table in load_tables(database, folder)
        ]

    async def search(self, _query: str, _embedder: Embedder, _limits: CallLimits) -> list[ReadableTable]:
        """Return all tables of the database."""
        return list(self._tables)

    async def run(self, sql: str, tables: Sequence[ReadableTable]) -> QueryResult:
        """Run SQL through the app's guard and engine, in this process."""
        file = QueryFile(path=self.path, tables=tuple(table.query_table for table in tables))
        return result_of(answer(QueryJob(target=Path("unused"), sql=sql, files=(file,))))

    def independent(self, sql: str) -> list[Row]:
        """Run SQL directly in SQLite, to verify the result of the app's guard and engine."""
        with sqlite3.connect(":memory:") as connection:
            connection.execute("ATTACH ? AS f", (f"file:{self.path}?mode=ro",))
            for table in self._tables:
                view = f'CREATE TEMP VIEW "{table.name}" AS SELECT * FROM f.{table.table.stored_name}'
                connection.execute(view)
            return connection.execute(sql).fetchall()


def load_tables(database: Path, folder: Path) -> tuple[Any, ...]:
    """Load the tables of a database into `folder` with the app's loader, as if they were sheets with text
    cells.
    """
    folder.mkdir()
    file = TableFile(folder, database.name)
    with sqlite3.connect(f"file:{database}?mode=ro&immutable=1", uri=True) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for number, (name,) in enumerate(names, start=1):
            rows = connection.execute(f'SELECT * FROM "{name}"')
            header = [str(column[0]) for column in rows.description]
            for _ in file.load_rows(cells(header, rows), sheet=name, page_number=number):
                pass
    return file.close()


def cells(header: Row, rows: Iterable[Row]) -> Iterator[list[str]]:
    """Yield the header and the rows as text cells, as a sheet would show them."""
    for row in (header, *rows):
        yield ["" if value is None else str(value) for value in row]


class RecordedReplies:
    """Chat model that returns recorded replies. The file contains JSON lines of {"request", "reply"}, as
    written by `model_mailbox.py`.

    A reply belongs to a question, and to its repair if the request names a problem.
    """

    def __init__(self, path: Path) -> None:
        lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        self._replies = {
            self._key(str(one["request"]["messages"][-1]["content"])): str(one["reply"]["content"])
            for one in lines
        }

    async def parse(self, prompt: Prompt, output: type[SqlDraft], _limits: CallLimits) -> SqlDraft:
        """Return the recorded reply to the question in the prompt.

        Raises:
            ModelFixableError: if there is none.
        """
        reply = self._replies.get(self._key(prompt.user))
        if reply is None:
            raise ModelFixableError("No reply to this question was recorded.")
        return output.model_validate_json(reply)

    @staticmethod
    def _key(user: str) -> tuple[str, bool]:
        _, _, rest = user.partition("<question>")
        question, _, problem = rest.partition("</question>")
        return question, "<problem>" in problem


def asked(data: Path, settings: Settings, at_once: int, replies: Path | None = None) -> dict[str, Any]:
    """Ask all questions of a set. Return the measures, and one row for each question.

    Args:
        replies: recorded replies, used instead of the model.
    """
    services = build_services(settings)
    if replies is not None:
        services = replace(services, chat_model=cast("ChatModel", RecordedReplies(replies)))
    lines = [json.loads(line) for line in (data / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    with tempfile.TemporaryDirectory() as name:
        rows = asyncio.run(_ask(lines, data / "db", Path(name), services, at_once))
    kinds = Counter(row["verdict"] for row in rows)
    computed = [row.pop("is_same") for row in rows if row["verdict"] != "declined"]
    return {
        "questions": len(rows),
        **{verdict: kinds[verdict] for verdict in ("right", "wrong", "declined")},
        "computed": len(computed),
        "computed_wrong": computed.count(False),
        "rows": rows,
    }


async def _ask(
    lines: Sequence[Mapping[str, Any]], databases: Path, folder: Path, services: Services, at_once: int
) -> list[dict[str, Any]]:
    gate = asyncio.Semaphore(at_once)
    books = {
        name: Workbook(databases / name, folder / name, services) for name in {line["db"] for line in lines}
    }

    async def one(line: Mapping[str, Any]) -> dict[str, Any]:
        book = books[line["db"]]
        tool = QueryStructuredData(
            book, book.run, services.chat_model, services.embedder, PATIENT, draft_limits=PATIENT
        )
        question = " ".join(filter(None, (line["query"], line.get("instructions", ""))))
        async with gate:
            result = await tool.execute(question=question)
        verdict, is_same = judge(result, gold_rows(databases / line["db"], line["gold_sql"]), book)
        fields = {name: result.get(name) for name in ("sql", "rows", "error")}
        return {"query_id": line["query_id"], "verdict": verdict, "is_same": is_same, **fields}

    try:
        return list(await asyncio.gather(*map(one, lines)))
    finally:
        await services.close()


def judge(result: Mapping[str, Any], gold: Sequence[Sequence[Row]], book: Workbook) -> tuple[str, bool]:
    """Return the verdict on an answer ("right", "wrong" or "declined"), and whether SQLite returns the same
    rows for its SQL.
    """
    if not result["success"]:
        return "declined", False
    rows = result["rows"]
    is_same = _multiset(book.independent(result["sql"])[: len(rows)]) == _multiset(rows)
    return ("right" if any(holds(rows, one) for one in gold) else "wrong"), is_same


def gold_rows(database: Path, queries: Iterable[str]) -> list[list[Row]]:
    """Return the rows that SQLite returns for each gold query."""
    with sqlite3.connect(f"file:{database}?mode=ro&immutable=1", uri=True) as connection:
        return [connection.execute(sql).fetchall() for sql in queries]


def holds(rows: Sequence[Row], gold: Sequence[Row]) -> bool:
    """Return whether the columns of `gold` are among the columns of `rows`, in any order, with the same
    values in each row.
    """
    if len(rows) != len(gold):
        return False
    if not rows:
        return True
    width = len(gold[0])
    fitting = [
        [place for place in range(len(rows[0])) if _column(rows, place) == _column(gold, column)]
        for column in range(width)
    ]
    usable = sorted({place for places in fitting for place in places})
    return any(
        all(place in places for place, places in zip(chosen, fitting, strict=True))
        and _multiset([[row[place] for place in chosen] for row in rows]) == _multiset(gold)
        for chosen in permutations(usable, width)
    )


def _column(rows: Sequence[Row], place: int) -> Counter[Any]:
    return Counter(_plain(row[place]) for row in rows)


def _multiset(rows: Sequence[Row]) -> Counter[Any]:
    return Counter(tuple(map(_plain, row)) for row in rows)


def _plain(value: Any) -> Any:
    """Normalise a value for comparison: convert numeric text to a number, and round numbers to ten
    significant digits.
    """
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return value
    if isinstance(value, int | float) and math.isfinite(value):
        return float(f"{value:.10g}")
    return value
