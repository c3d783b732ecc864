"""`python -m evals.tables --data sql_defog --out report.json`: run gold queries through the app's SQL guard
and engine.

Each query also runs directly in the standard library's SQLite, and both must return the same rows, except for
the fifteenth digit of averages. Afterwards, the attacks of tests/unit/tables run and, with `--questions`, the
questions of the set (`evals.tables.questions`), and with `--rows 1000000` a large table
(`evals.tables.million`). Exit code 1 if a query differs.
"""

import argparse
import json
import math
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from evals.tables import million
from evals.tables.questions import asked
from shared.platform.settings import load_settings
from shared.tables.queries import QueryFile, QueryJob, QueryTable
from shared.tables.sql_worker import answer

# Placeholders that the app's settings require. Nothing connects to these addresses.
_UNUSED = {
    "AZURE_SEARCH_ENDPOINT": "http://127.0.0.1:9",
    "AZURE_SEARCH_API_KEY": "unused",
    "DocumentsStorage": "UseDevelopmentStorage=true",
    "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
    "OPENAI_API_KEY": "unused",
    "CHAT_MODEL": "unused",
    "EMBEDDING_MODEL": "unused",
    "EMBEDDING_DIMENSIONS": "8",
    "OWNER_ID_KEY": "unused, 0123456789 and some letters",
}
ATTACKS = Path("tests/unit/tables/test_attacks.py")


def main() -> int:
    """Run the evaluation as set on the command line, and return the exit code."""
    arguments = _parser().parse_args()
    lines = (arguments.data / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    gold = [
        (arguments.data / "db" / line["db"], sql)
        for line in map(json.loads, lines)
        for sql in line["gold_sql"]
    ]
    different = [(sql, reason) for path, sql in gold if (reason := difference(path, sql))]
    report: dict[str, Any] = {"gold": len(gold), "gold_same": len(gold) - len(different)}
    if arguments.questions:
        settings = load_settings({**_UNUSED, **os.environ})
        report |= asked(arguments.data, settings, arguments.at_once, arguments.replies)
        rows = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in report.pop("rows"))
        arguments.out.with_suffix(".questions.jsonl").write_text(rows, encoding="utf-8")
    if arguments.rows:
        report["large"] = million.measure_table(arguments.rows)
    report |= run_attacks()
    arguments.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=1))
    for sql, reason in different:
        print(f"{reason}: {sql}", file=sys.stderr)
    return int(bool(different) or report["attacks_passed"] > 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m evals.tables", description=__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, help="Folder with queries.jsonl and the databases in db/."
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--questions",
        action="store_true",
        help=(
            "Also answer the questions of the set with the model configured by OPENAI_BASE_URL and "
            "CHAT_MODEL."
        ),
    )
    parser.add_argument("--replies", type=Path, help="File with recorded replies, used in place of a model.")
    parser.add_argument(
        "--rows", type=int, default=0, help="Also load and query a generated table with this many rows."
    )
    parser.add_argument(
        "--at-once", type=int, default=4, help="Number of concurrent questions (default: %(default)s)."
    )
    return parser


def difference(path: Path, sql: str) -> str:
    """Run a query in the app and in SQLite. Return the reason why their results differ, or "" if their rows
    are equal.
    """
    reply = answer(
        QueryJob(target=Path("unused"), sql=sql, files=(QueryFile(path=path, tables=tables(path)),))
    )
    if reply.result is None:
        return reply.refusal.reason if reply.refusal else "no reply"
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as connection:
        expected = connection.execute(sql).fetchall()
    return "" if same(sorted(reply.result.rows, key=repr), sorted(expected, key=repr)) else "other rows"


def same(one: Any, other: Any) -> bool:
    """Return whether two values, rows or lists of rows are equal. Floats may differ in the last digits."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12)
    return bool(one == other)


def tables(path: Path) -> tuple[QueryTable, ...]:
    """Return descriptions of all tables in a SQLite file."""
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as connection:
        names = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        columns = {name: connection.execute(f'PRAGMA table_info("{name}")').fetchall() for name in names}
    return tuple(
        QueryTable(
            name=name, stored_name=name, title=name, columns=tuple(str(one[1]) for one in columns[name])
        )
        for name in names
    )


def run_attacks() -> dict[str, int]:
    """Run the attack tests. Return the number of attacks, and how many of them succeeded."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "attacks.json"
        command = ["-m", "pytest", "-q", "-m", "attack", "-p", "tests.attack_report", f"--attack-out={out}"]
        subprocess.run([sys.executable, *command, str(ATTACKS)], check=False, stdout=sys.stderr)
        counts = json.loads(out.read_text(encoding="utf-8"))
    return {"attacks": counts["cases"], "attacks_passed": len(counts["failed"])}


if __name__ == "__main__":
    sys.exit(main())
