"""Measures a large generated table: loading from CSV in a parser worker, and queries through guard and
engine.

The times exclude finding the table, fetching its file and the model.
"""

import asyncio
import datetime
import random
import statistics
import tempfile
import time
from pathlib import Path

from shared.ingestion.models import ParsedFile
from shared.ingestion.parser_process import parsers
from shared.ingestion.parser_worker import ParseJob
from shared.tables.models import CATALOG, DATABASE, TableCatalog
from shared.tables.queries import QueryFile, QueryJob, QueryTable
from shared.tables.sql_worker import answer

INSTANCE_MEMORY_MB = 2048
_PATIENCE_S = 1800.0
_REPEATS = 5
_QUERIES = (
    "SELECT SUM(revenue) FROM orders",
    "SELECT region, SUM(revenue) AS total FROM orders GROUP BY region ORDER BY total DESC",
    "SELECT product, COUNT(*) AS n, AVG(revenue) FROM orders WHERE date >= '2022-01-01' GROUP BY product "
    "ORDER BY n DESC LIMIT 5",
    "SELECT COUNT(DISTINCT product) FROM orders WHERE units > 10",
    "SELECT * FROM orders ORDER BY revenue DESC LIMIT 5",
    "SELECT strftime('%Y', date) AS year, region, SUM(units) FROM orders GROUP BY year, region",
)


def measure_table(rows: int) -> dict[str, float]:
    """Return the seconds for loading and for querying a table with the given number of rows, and the number
    of its text blocks.
    """
    with tempfile.TemporaryDirectory() as name:
        return asyncio.run(_measure(rows, Path(name)))


async def _measure(rows: int, folder: Path) -> dict[str, float]:
    source, tables, figures = folder / "orders.csv", folder / "tables", folder / "figures"
    tables.mkdir()
    figures.mkdir()
    _write(source, rows)
    job = ParseJob(
        source=source,
        target=folder / "parsed.json",
        filename=source.name,
        max_tokens=500,
        max_blocks=20_000,
        figures=figures,
        tables=tables,
    )
    pools = parsers(INSTANCE_MEMORY_MB)
    try:
        began = time.monotonic()
        await pools.files.run(job, _PATIENCE_S)
        load_s = time.monotonic() - began
        parsed = ParsedFile.model_validate_json(job.target.read_bytes())
    finally:
        pools.close()
    times = [_time_query(sql, tables) for _ in range(_REPEATS) for sql in _QUERIES]
    elapsed, cpu = zip(*times, strict=True)
    return {
        "rows": rows,
        "blocks": len(parsed.chunks),
        "load_s": round(load_s, 1),
        "query_p95_s": round(statistics.quantiles(elapsed, n=20)[-1], 2),
        "query_processor_p95_s": round(statistics.quantiles(cpu, n=20)[-1], 2),
    }


def _time_query(sql: str, tables: Path) -> tuple[float, float]:
    """Run a query through guard and engine. Return the elapsed seconds and the CPU seconds."""
    (table,) = TableCatalog.from_stored((tables / CATALOG).read_bytes()).tables
    query = QueryTable(
        name="orders",
        stored_name=table.stored_name,
        title=table.title,
        columns=tuple(column.name for column in table.columns),
        hidden=table.hidden_columns,
    )
    files = (QueryFile(path=tables / DATABASE, tables=(query,)),)
    began, worked = time.monotonic(), time.process_time()
    reply = answer(QueryJob(target=Path("unused"), sql=sql, files=files))
    times = time.monotonic() - began, time.process_time() - worked
    if reply.result is None:
        raise RuntimeError(f"{sql}: {reply.refusal}")
    return times


def _write(path: Path, rows: int) -> None:
    chance, first = random.Random(1), datetime.date(2020, 1, 1)
    with path.open("w", encoding="ascii") as file:
        file.write("Number,Date,Region,Product,Units,Revenue\n")
        for number in range(rows):
            day = first + datetime.timedelta(days=chance.randrange(1800))
            region = chance.choice(("North", "South", "East", "West"))
            cells = (number, day, region, f"Pump {chance.randrange(200)}", chance.randrange(1, 50))
            file.write(f"{','.join(map(str, cells))},{chance.randrange(100, 999_999) / 100:.2f}\n")
