"""Tools over tables of files and databases, which list them or query them in natural language or SQL."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Annotated, Any, Self

from pydantic import Field

from shared.evidence.models import Cell, LeftOutCells, QueriedTable, TableResult
from shared.platform.database_sources import is_database_id
from shared.platform.errors import InvalidQueryError
from shared.platform.language_models.models import CallLimits, ChatModel, Embedder, Prompt
from shared.platform.models import Model
from shared.platform.prompts import element, load
from shared.runs.provenance import UsedDocument
from shared.tables.models import Column
from shared.tables.queries import MAX_FILES, MAX_SQL_CHARS, QueryResult
from shared.tables.readable_tables import ReadableTable, TableLookup, tables_in
from shared.tools.base import Parameters, Query, Tool, ToolEvidence, ToolResult
from shared.tools.binding import Binding, run_query_of
from shared.tools.table_queries import RunQuery

MAX_SHOWN_ROWS = 50
_MAX_DRAFT_CHARS = 24_000  # characters of table descriptions in a prompt, about 7,000 tokens (not measured)
_MAX_VALUES = 20
_MAX_CELL_CHARS = 500
_IDENTIFIER = re.compile(r"\w+")
_HIDDEN_FIELDS = {"result_id", "constants", "headings", "labels", "left_out", "sql_in_german"}
"""Fields of a result that its proof needs, but not the model."""

TableIds = tuple[Annotated[str, Field(min_length=1, max_length=120)], ...]


class SqlDraft(Model):
    """Structured output of drafting SQL."""

    sql: str = Field(description="One SELECT; empty if unanswerable.")
    assumptions: tuple[str, ...] = Field(description="Assumptions that the SQL makes.")
    unanswerable: str = Field(description="Why the tables cannot answer; empty if they can.")


class ListTablesParameters(Parameters):
    """Arguments of `list_tables`."""

    query: str = Field(
        default="", max_length=500, description="Subject of the tables; empty = the newest tables."
    )
    limit: int = Field(default=20, description="Maximum number of tables, 1-100.")


@dataclass(frozen=True)
class ListTables(Tool):
    """Lists tables that the user may read: the best matches of a query, or the newest."""

    tables: TableLookup
    embedder: Embedder
    limits: CallLimits
    evidence: ToolEvidence = field(default_factory=ToolEvidence)

    name = "list_tables"
    description = (
        "List tables of spreadsheets, CSV files and databases that can be calculated with, and their "
        "columns: the best matches of a query, or the newest. `name` is for SQL (`run_sql`)."
    )
    parameters = ListTablesParameters
    documentation = (
        "Tables of files and databases: `tables` with `table_id`, `name` (in SQL), `doc_id`, `filename`, "
        "`sheet`, `title`, `row_count` and `columns`; `count`."
    )
    example = "{}"
    reports_documents = True

    @classmethod
    def bind(cls, binding: Binding) -> Self:
        return cls(binding.tables, binding.services.embedder, binding.limits, binding.evidence)

    async def _run(self, arguments: ListTablesParameters) -> ToolResult:
        query = arguments.query.strip()
        tables = await (
            self.tables.search(query, self.embedder, self.limits) if query else self.tables.newest()
        )
        page = tables[: min(max(arguments.limit, 1), 100)]
        self.evidence.documents.extend(_used_documents(page))
        return {"tables": [describe_table(table) for table in page], "count": len(page)}


class RunSqlParameters(Parameters):
    """Arguments of `run_sql`."""

    sql: str = Field(
        description=(
            "One SELECT over the tables' `name`s, in the SQL of SQLite or of their `database`. It must "
            "return every number that you will write, including totals, differences and shares."
        ),
        min_length=1,
        max_length=MAX_SQL_CHARS,
    )
    table_ids: TableIds = Field(
        description=f"The tables that it reads, of at most {MAX_FILES} files.", min_length=1, max_length=50
    )


@dataclass(frozen=True)
class RunSql(Tool):
    """Runs one SELECT over tables that the user may read."""

    tables: TableLookup
    run_query: RunQuery
    evidence: ToolEvidence

    name = "run_sql"
    description = (
        "Calculate with tables: run one SELECT over those that `list_tables` found. Read only. "
        "Returns the rows, the SQL in words, and the lines of the sheet it comes from."
    )
    parameters = RunSqlParameters
    documentation = (
        "Runs one SELECT, read only, on a guarded [engine](internals/decisions/0059-tables-in-sqlite.md): "
        "`sql` as it ran, `sql_in_words`, `columns`, `rows` (at most 50), `row_count`, `truncated`, "
        "`source_rows` (lines of the sheet, for a query over one table) and `tables`. At most 4,000 "
        "characters, ten files or one database."
    )
    example = '{"sql": "SELECT 1", "table_ids": ["manual.1"]}'
    reports_documents = True

    @classmethod
    def bind(cls, binding: Binding) -> Self:
        return cls(binding.tables, run_query_of(binding), binding.evidence)

    async def _run(self, arguments: RunSqlParameters) -> ToolResult:
        tables = await self.tables.get_many(arguments.table_ids)
        self.evidence.documents.extend(_used_documents(tables))
        return _record_result(self.evidence, await self.run_query(arguments.sql, tables), tables, ())


class QueryStructuredDataParameters(Parameters):
    """Arguments of `query_structured_data`."""

    question: Query
    table_ids: TableIds = Field(
        default=(), description="Candidate tables; empty = search for them.", max_length=50
    )


@dataclass(frozen=True)
class QueryStructuredData(Tool):
    """Has the model write SQL for a question and runs it. After an error or an empty result, the model tries
    once more.
    """

    tables: TableLookup
    run_query: RunQuery
    chat_model: ChatModel
    embedder: Embedder
    limits: CallLimits
    evidence: ToolEvidence = field(default_factory=ToolEvidence)
    draft_limits: CallLimits = field(default_factory=lambda: CallLimits(timeout_s=90))

    name = "query_structured_data"
    description = (
        "Answer a question by calculating with tables of spreadsheets, CSV files and databases: sums, "
        "averages, rankings, comparisons. Writes the SQL itself; check `sql_in_words` and `assumptions`. "
        "Ask for every number that you will write: totals, differences and shares, too."
    )
    parameters = QueryStructuredDataParameters
    documentation = (
        "Has the model write SQL for a question, once more if it fails or finds nothing, and runs it. "
        "Returns what `run_sql` does, and `assumptions`."
    )
    example = '{"question": "pump"}'
    reports_documents = True

    @classmethod
    def bind(cls, binding: Binding) -> Self:
        services = binding.services
        models = services.chat_model, services.embedder
        drafting = CallLimits(timeout_s=services.settings.answering.answer_timeout_s)
        return cls(binding.tables, run_query_of(binding), *models, binding.limits, binding.evidence, drafting)

    async def _run(self, arguments: QueryStructuredDataParameters) -> ToolResult:
        question = arguments.question
        if arguments.table_ids:
            tables = await self.tables.get_many(arguments.table_ids)
        else:
            candidates = await self.tables.search(question, self.embedder, self.limits)
            tables = _fitting(candidates)
        if not tables:
            raise InvalidQueryError(
                "No table that you can read matches the question.", "Search the documents."
            )
        self.evidence.documents.extend(_used_documents(tables))
        draft = await self._draft(question, tables)
        try:
            result = await self.run_query(draft.sql, tables)
            problem = await self._values(draft.sql, tables) if _is_empty(result) else ""
        except InvalidQueryError as refused:
            problem = " ".join((refused.detail, *refused.hints))
        else:
            if not problem:
                return _record_result(self.evidence, result, tables, draft.assumptions)
        draft = await self._draft(question, tables, draft.sql, problem)
        result = await self.run_query(draft.sql, tables)
        return _record_result(self.evidence, result, tables, draft.assumptions)

    async def _draft(
        self, question: str, tables: Sequence[ReadableTable], sql: str = "", problem: str = ""
    ) -> SqlDraft:
        """Have the model draft SQL for the question. `sql` and `problem` describe a failed earlier draft.

        Raises:
            InvalidQueryError: the model reports that the tables can't answer it.
        """
        listed = json.dumps([describe_table(table) for table in tables], ensure_ascii=False)
        parts = [element("tables", listed), element("question", question)]
        if problem:
            parts += [element("sql", sql), element("problem", problem)]
        prompt = Prompt(name="sql", system=load("tools", "sql_draft"), user="\n".join(parts))
        draft = await self.chat_model.parse(prompt, SqlDraft, self.draft_limits)
        if draft.unanswerable or not draft.sql.strip():
            reason = draft.unanswerable or "The model wrote no SQL."
            raise InvalidQueryError(f"The tables cannot answer this: {reason[:300]}", "Search the documents.")
        return draft

    async def _values(self, sql: str, tables: Sequence[ReadableTable]) -> str:
        """Return sample values of the text columns that the query names, as help for correcting it. An empty
        result is usually due to a misspelt value.
        """
        words = set(re.findall(r"\w+", sql.casefold()))
        lines = []
        for table in tables:
            columns = [one for one in table.table.columns if one.kind == "text" and one.name in words]
            for column in columns if table.name in words else ():
                # Both names come from the catalogue, and the SQL guard checks this query too.
                distinct = f'SELECT DISTINCT "{column.name}" FROM "{table.name}" LIMIT {_MAX_VALUES}'  # noqa: S608
                values = await self.run_query(distinct, tables)
                lines.append(f"{column.name} has {json.dumps([row[0] for row in values.rows])}")
        return f"No row matches. {'; '.join(lines)}" if lines else ""


def _used_documents(tables: Sequence[ReadableTable]) -> list[UsedDocument]:
    return [UsedDocument(doc_id=table.doc_id, version=table.version) for table in tables]


def _fitting(candidates: Sequence[ReadableTable]) -> list[ReadableTable]:
    """Return the first candidates whose descriptions fit into a prompt, but at least one."""
    sizes = accumulate(len(json.dumps(describe_table(table), ensure_ascii=False)) for table in candidates)
    count = sum(size <= _MAX_DRAFT_CHARS for size in sizes)
    return list(candidates[: max(count, 1)])


def _is_empty(result: QueryResult) -> bool:
    return all(value is None or value == 0 for row in result.rows for value in row)


def describe_table(table: ReadableTable) -> dict[str, Any]:
    """Return the description of a table for the model: ids, name in SQL, columns and annotations."""
    description = {
        "unit": table.table.unit,
        "description": table.table.description,
        "synonyms": list(table.table.synonyms),
        "approved": [one.model_dump() for one in table.table.approved],
        "totals_left_out": [total.label for total in table.table.totals[:_MAX_VALUES]],
        "database": "PostgreSQL" if is_database_id(table.doc_id) else "",
    }
    return {
        "table_id": table.table_id,
        "name": table.name,
        "doc_id": table.doc_id,
        "filename": table.filename,
        "sheet": table.table.sheet,
        "title": table.table.title,
        "row_count": table.table.row_count,
        "columns": [_column(column) for column in table.table.columns],
        **{name: value for name, value in description.items() if value},
    }


def _column(column: Column) -> dict[str, Any]:
    samples = column.samples or tuple(filter(None, dict.fromkeys((column.lowest, column.highest))))
    column_fields = {
        "name": column.name,
        "label": column.label,
        "type": column.kind,
        "samples": list(samples),
    }
    details = {
        "unit": column.unit,
        "without_value": list(column.remarks),
        "description": column.description,
        "synonyms": list(column.synonyms),
    }
    return {**column_fields, **{name: value for name, value in details.items() if value}}


def table_result(result: QueryResult, tables: Sequence[ReadableTable]) -> TableResult:
    """Convert a query result to evidence. It keeps at most 50 rows, and only the tables that the SQL
    names. The table that contains the first row comes first, because citations open it.
    """
    queried = sorted(tables_in(result.sql, tables), key=lambda table: table.name != result.main_table)
    headings = (heading for table in queried for heading in (table.table.title, table.table.unit))
    return TableResult(
        sql=result.sql,
        sql_in_words=result.sql_in_words,
        sql_in_german=result.sql_in_german,
        columns=result.columns,
        labels=_labels(result.columns, queried),
        rows=tuple(tuple(_short(cell) for cell in row) for row in result.rows[:MAX_SHOWN_ROWS]),
        row_count=result.row_count,
        truncated=result.truncated,
        source_rows=result.source_rows,
        constants=result.constants,
        headings=tuple(filter(None, headings)),
        left_out=_left_out(result.sql, queried),
        tables=tuple(
            QueriedTable(
                table_id=table.table_id,
                doc_id=table.doc_id,
                filename=table.filename,
                page_number=table.table.page_number,
                content_hash=table.content_hash,
            )
            for table in queried
        ),
    )


def _labels(columns: Sequence[str], tables: Sequence[ReadableTable]) -> tuple[str, ...]:
    """Return a heading for each column of a result. A column of a sheet has the sheet's heading, and an alias
    is written with spaces. SQL expressions are not changed.
    """
    labels: dict[str, str] = {}
    for column in (column for table in tables for column in table.table.columns):
        labels.setdefault(column.name, column.label)

    def label(name: str) -> str:
        if name in labels and labels[name] != name:
            return labels[name]
        words = " ".join(name.split("_")).strip() if _IDENTIFIER.fullmatch(name) else name
        return words[:1].upper() + words[1:]

    return tuple(map(label, columns))


async def is_computed(result: TableResult, tables: TableLookup, run_query: RunQuery) -> bool:
    """Return whether running a stored query again gives the same rows. False if a table has changed or is no
    longer readable.

    Raises:
        GroundworkError: the query can't be repeated now.
    """
    readable = await tables.get_many([table.table_id for table in result.tables])
    if [table.content_hash for table in readable] != [table.content_hash for table in result.tables]:
        return False
    again = table_result(await run_query(result.sql, readable), readable)
    return (again.rows, again.row_count) == (result.rows, result.row_count)


def _record_result(
    evidence: ToolEvidence, result: QueryResult, tables: Sequence[ReadableTable], assumptions: Sequence[str]
) -> ToolResult:
    """Add a query result to `evidence`, and return the fields of the tool result."""
    table_evidence = table_result(result, tables)
    evidence.results.append(table_evidence)
    fields = table_evidence.model_dump(mode="json", exclude=_HIDDEN_FIELDS)
    is_cut = result.truncated or result.row_count > MAX_SHOWN_ROWS
    stated = [*assumptions, *(cells.in_words() for cells in table_evidence.left_out)]
    return {**fields, "assumptions": stated, "truncated": is_cut}


def _left_out(sql: str, tables: Sequence[ReadableTable]) -> tuple[LeftOutCells, ...]:
    """Return the cells without a value, for each column that a query mentions."""
    words = set(re.findall(r"\w+", sql.casefold()))
    return tuple(
        LeftOutCells(
            table=table.table.title, column=column.label, count=column.remark_count, remarks=column.remarks
        )
        for table in tables
        for column in table.table.columns
        if column.remark_count and column.name in words
    )


def _short(cell: Cell) -> Cell:
    is_long = isinstance(cell, str) and len(cell) > _MAX_CELL_CHARS
    return f"{cell[:_MAX_CELL_CHARS]}…" if is_long and isinstance(cell, str) else cell
