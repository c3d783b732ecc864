"""Hints about tables that the owner of a data file provides in `NAME.tables.yaml`. Runs in the worker
process.

Hints are checked against the loaded tables. An invalid hint is skipped and reported in a note with its line
number, so a mistake in the hints never prevents a table from being loaded.
"""

from collections.abc import Sequence
from typing import Any

import yaml
from pydantic import Field, ValidationError

from shared.documents.ids import HINTS_SUFFIX
from shared.platform.errors import InvalidQueryError
from shared.platform.loading import load
from shared.platform.models import Model
from shared.tables.models import ApprovedQuestion, Column, Table, identifier, placeholder
from shared.tables.queries import MAX_SQL_CHARS, QueryTable

MAX_BYTES = 64 * 1024
_MAX_CHARS = 500
_Place = tuple[str | int, ...]
_Lines = dict[_Place, int]


class ColumnHints(Model):
    """Hints about one column."""

    description: str = Field(default="", max_length=_MAX_CHARS)
    synonyms: tuple[str, ...] = Field(default=(), max_length=20)


class QuestionHints(Model):
    """A sample question with SQL verified by the owner. The SQL names tables by title and columns by their
    SQL names.
    """

    question: str = Field(min_length=1, max_length=_MAX_CHARS)
    sql: str = Field(min_length=1, max_length=MAX_SQL_CHARS)


class TableHints(Model):
    """Hints about one table. `table` is the sheet or title of the table; it may be empty if the file has only
    one.
    """

    table: str = ""
    description: str = Field(default="", max_length=_MAX_CHARS)
    synonyms: tuple[str, ...] = Field(default=(), max_length=20)
    columns: dict[str, ColumnHints] = Field(default_factory=dict)
    questions: tuple[QuestionHints, ...] = Field(default=(), max_length=20)


class FileHints(Model):
    """The contents of a hints file."""

    tables: tuple[TableHints, ...]


def with_hints(tables: Sequence[Table], text: str, filename: str) -> tuple[list[Table], list[str]]:
    """Return the tables with hints applied, and a note for each invalid hint.

    Args:
        filename: name of the data file.
    """
    reader = _Reader(f"{filename}{HINTS_SUFFIX}", list(tables))
    try:
        values, lines = _parse(text)
        hints = FileHints.model_validate(values)
    except _SyntaxError as wrong:
        reader.note(wrong.line, wrong.reason)
    except ValidationError as invalid:
        for error in invalid.errors()[:5]:
            place = error["loc"]
            reader.note(_line(place, lines), f"{'.'.join(map(str, place))}: {error['msg']}")
    else:
        reader.apply(hints, lines)
    return reader.tables, reader.notes


class _SyntaxError(Exception):
    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line, self.reason = line, reason


def _parse(text: str) -> tuple[Any, _Lines]:
    """Parse YAML. Return its values, and the line number of each value by path."""
    if len(text.encode()) > MAX_BYTES:
        raise _SyntaxError(1, f"the file has more than {MAX_BYTES // 1024} KB")
    try:
        # Aliases can expand a short file into a huge one.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
            raise _SyntaxError(1, "YAML aliases are not allowed")
        root, values = yaml.compose(text, Loader=yaml.SafeLoader), yaml.safe_load(text)
    except yaml.MarkedYAMLError as wrong:
        line = wrong.problem_mark.line + 1 if wrong.problem_mark else 1
        raise _SyntaxError(line, str(wrong.problem or "the file is not valid YAML")) from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise _SyntaxError(1, "the file is not valid YAML") from None
    lines: _Lines = {}
    _note_lines(root, (), lines)
    return values, lines


def _note_lines(node: Any, above: _Place, lines: _Lines) -> None:
    if node is None:
        return
    lines.setdefault(above, node.start_mark.line + 1)
    if node.id == "mapping":
        for key, value in node.value:
            lines[*above, str(key.value)] = key.start_mark.line + 1
            _note_lines(value, (*above, str(key.value)), lines)
    elif node.id == "sequence":
        for number, value in enumerate(node.value):
            _note_lines(value, (*above, number), lines)


def _line(place: _Place, lines: _Lines) -> int:
    """Return the line of a path in the YAML file, or the line of its nearest parent."""
    while place not in lines and place:
        place = place[:-1]
    return lines.get(place, 1)


class _Reader:
    """Applies a hints file to the tables of a data file. Invalid hints are skipped and noted."""

    def __init__(self, name: str, tables: list[Table]) -> None:
        self.tables = tables
        self.notes: list[str] = []
        self._name = name

    def note(self, line: int, reason: str) -> None:
        self.notes.append(f"{self._name}, line {line}: {reason}.")

    def apply(self, hints: FileHints, lines: _Lines) -> None:
        for number, hint in enumerate(hints.tables):
            place: _Place = ("tables", number)
            position = self._position(hint.table)
            if position is None:
                problem = (
                    f"there is no table {hint.table!r}"
                    if hint.table
                    else "the file has several tables, so `table` is required"
                )
                self.note(_line((*place, "table"), lines), f"{problem} ({self._table_titles()})")
                continue
            table = self.tables[position]
            self.tables[position] = table.model_copy(
                update={
                    "description": hint.description,
                    "synonyms": hint.synonyms,
                    "columns": self._columns(table, hint, place, lines),
                    "approved": self._verified_questions(hint, place, lines),
                }
            )

    def _position(self, name: str) -> int | None:
        if not name:
            return 0 if len(self.tables) == 1 else None
        names = [
            (table.sheet or table.title, table.title, identifier(table.title, "")) for table in self.tables
        ]
        folded = name.casefold()
        positions = (
            position for position, aliases in enumerate(names) if folded in map(str.casefold, aliases)
        )
        return next(positions, None)

    def _table_titles(self) -> str:
        return ", ".join(table.sheet or table.title for table in self.tables) or "the file has none"

    def _columns(self, table: Table, hint: TableHints, place: _Place, lines: _Lines) -> tuple[Column, ...]:
        columns = list(table.columns)
        positions = {column.label.casefold(): position for position, column in enumerate(columns)}
        positions |= {column.name: position for position, column in enumerate(columns)}
        for name, text in hint.columns.items():
            position = positions.get(name.casefold())
            if position is None:
                self.note(_line((*place, "columns", name), lines), f"there is no column {name!r}")
                continue
            columns[position] = columns[position].model_copy(update=text.model_dump())
        return tuple(columns)

    def _verified_questions(
        self, hint: TableHints, place: _Place, lines: _Lines
    ) -> tuple[ApprovedQuestion, ...]:
        approved = []
        for number, question in enumerate(hint.questions):
            try:
                sql = _with_placeholders(question.sql, self.tables)
            except InvalidQueryError as refused:
                line = _line((*place, "questions", number, "sql"), lines)
                self.note(line, f"{refused.detail.rstrip('.')}. {' '.join(refused.hints)}"[:300].rstrip("."))
                continue
            approved.append(ApprovedQuestion(question=question.question, sql=sql))
        return tuple(approved)


def _with_placeholders(sql: str, tables: Sequence[Table]) -> str:
    """Return SQL with table names replaced by placeholders, because the final names depend on the document
    id.

    Raises:
        InvalidQueryError: the guard refuses the query.
    """
    exp, guard_query = load("sqlglot", "exp"), load("shared.tables.sql_guard", "guard_query")
    tables_by_name = {identifier(table.title, "table"): table for table in tables}
    places = {
        name: (
            "f0",
            QueryTable(
                name=name,
                stored_name=table.stored_name,
                title=table.title,
                columns=tuple(column.name for column in table.columns),
                kinds=tuple(column.kind for column in table.columns),
                hidden=table.hidden_columns,
            ),
        )
        for name, table in tables_by_name.items()
    }
    tree = guard_query(sql, places).tree
    marks = {name: exp.to_identifier(placeholder(table.number)) for name, table in tables_by_name.items()}
    for table_node in tree.find_all(exp.Table):
        if mark := marks.get(table_node.name.casefold()):
            table_node.set("this", mark.copy())
    for column in tree.find_all(exp.Column):
        if mark := marks.get(column.table.casefold()):
            column.set("table", mark.copy())
    return str(tree.sql(dialect="sqlite", comments=False))
