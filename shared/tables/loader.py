"""Loading of sheet rows into a SQLite file while the same rows pass through to the parser.

A table begins with the first row that has at least two non-empty cells; a single cell above it is its title.
A header row after a blank line begins a new table. Total rows are left out (`totals`), because a sum over the
column would count everything twice. Rows are stored as text in a temporary table on disk until the types of
all columns are known, so memory use doesn't grow with the file.

Only the first rows of a large table become passages; SQL reads all of them.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from shared.platform.errors import BadDocumentError
from shared.tables.cell_values import EMPTY, ColumnReader, Decimals, Value, is_number
from shared.tables.headers import continues_header, header_unit, join_header
from shared.tables.hints import with_hints
from shared.tables.models import (
    CATALOG,
    DATABASE,
    RAW,
    ROW,
    Column,
    Table,
    TableCatalog,
    TotalRow,
    identifier,
)
from shared.tables.totals import TotalRows
from shared.tables.units import is_unit, split_unit

# Maximum number of tables per document. Each adds a block to the index.
MAX_TABLES = 50
MAX_COLUMNS = 400  # SQLite allows 2,000, and a column with raw text needs two
_MAX_CELL_CHARS = 32_767  # the limit of Excel; queries can read 100,000 bytes per value
_MAX_LABEL_CHARS = 200
_MAX_SAMPLE_CHARS = 60
_SAMPLES = 5
# Rows per INSERT.
_BATCH = 1000
_MAX_LEFT_OUT = 200  # total rows listed on the card; further totals are left out without being listed
_ADDITIVE = ("integer", "number", "money")
MAX_TABLE_CHARS = 64_000_000  # loading a table needs three times as much disk space
MAX_TEXT_CHARS = 2_000_000  # per document, from rows that become passages; about 2,000 blocks, unmeasured


class TableFile:
    """The tables of one document, written to a SQLite file in `folder`. Most problems only add a note to
    `notes`.
    """

    def __init__(self, folder: Path, filename: str) -> None:
        self.notes: list[str] = []
        self._folder = folder
        self._filename = PurePosixPath(filename).stem
        self._name = PurePosixPath(filename).name
        self._text_chars = 0
        self._tables: list[Table] = []
        self._connection: sqlite3.Connection | None = None

    def load_rows(
        self,
        rows: Iterable[Sequence[str]],
        sheet: str | None = None,
        page_number: int | None = None,
        decimals: Decimals = "en",
        first_line: int = 1,
    ) -> Iterator[Sequence[str]]:
        """Load rows into the file and yield them again. After MAX_TEXT_CHARS, rows of tables are loaded but
        not yielded.

        Args:
            rows: rows of one sheet or a part of it, including blank ones.
            decimals: notation of ambiguous numbers if no other column decides it.
            first_line: line of the first row in the sheet.
        """
        reader = _SheetReader(_Sheet(sheet, page_number, decimals), sheet or self._filename, self._connect)
        row_count = left_out = 0
        for line, row in enumerate(rows, start=first_line):
            row_count += 1
            self._keep(reader, line, row)
            if reader.is_in_table and self._text_chars > MAX_TEXT_CHARS and len(self._tables) < MAX_TABLES:
                left_out += 1
                reader.has_gaps = True
            else:
                self._text_chars += sum(map(len, row))
                yield row
        self._keep(reader, 0, None)
        if left_out:
            place, searchable = sheet or self._filename, row_count - left_out
            self.notes.append(
                f"Search covers {searchable:,} of the {row_count:,} rows of {place!r}; "
                "calculations use all rows."
            )

    def close(self, hints: str = "") -> tuple[Table, ...]:
        """Close the file, write its catalog and return its tables. Without tables, neither file is created.

        Args:
            hints: contents of the hints file in YAML; "" = none.
        """
        if self._connection is not None:
            self._connection.commit()
            self._connection.close()
        if hints:
            self._tables, notes = with_hints(self._tables, hints, self._name)
            self.notes += notes
        if self._tables:
            size_bytes = (self._folder / DATABASE).stat().st_size
            catalog = TableCatalog(tables=tuple(self._tables), size_bytes=size_bytes)
            (self._folder / CATALOG).write_text(catalog.model_dump_json(), encoding="utf-8")
        return tuple(self._tables)

    def _keep(self, reader: "_SheetReader", line: int, row: Sequence[str] | None) -> None:
        try:
            for pending in reader.take(line, row):
                if len(self._tables) == MAX_TABLES:
                    self._give_up(reader, f"Calculations can use only the first {MAX_TABLES} tables.")
                    return
                self._tables.append(pending.build_table(len(self._tables) + 1))
        except _TableError as refused:
            self._give_up(reader, f"Calculations cannot use the table {reader.title!r}: {refused}")
        except sqlite3.Error as failed:
            reason = f"the table could not be stored ({type(failed).__name__})."
            self._give_up(reader, f"Calculations cannot use the table {reader.title!r}: {reason}")

    def _give_up(self, reader: "_SheetReader", note: str) -> None:
        reader.is_given_up = True
        if reader.has_gaps:  # rows already withheld from search would be missing from SQL, too
            raise BadDocumentError(note, "Split the file.")
        if note not in self.notes:
            self.notes.append(note)

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(self._folder / DATABASE)
            for pragma in ("journal_mode=OFF", "synchronous=OFF", "temp_store=FILE"):
                self._connection.execute(f"PRAGMA {pragma}")
        return self._connection


class _TableError(Exception):
    """The reason why a table can't be loaded."""


@dataclass(frozen=True)
class _Sheet:
    """The sheet that is being read, and the notation of its ambiguous numbers."""

    name: str | None
    page_number: int | None
    decimals: Decimals


class _SheetReader:
    """Detects the tables in the rows of one sheet."""

    def __init__(self, sheet: _Sheet, title: str, connect: Callable[[], sqlite3.Connection]) -> None:
        self.title = title
        self.is_given_up = False
        self.has_gaps = False  # some rows of the current table were not passed on to the parser
        self._sheet = sheet
        self._connect = connect
        self._unit = ""
        self._header: Sequence[str] | None = None  # labels of a possible table
        self._header_rows = 0
        self._pending: _Pending | None = None
        self._after_blank = False

    @property
    def is_in_table(self) -> bool:
        """Whether the last row belongs to a table that is being loaded."""
        return self._pending is not None and not self.is_given_up

    def take(self, line: int, row: Sequence[str] | None) -> Iterator["_Pending"]:
        """Process one row, or None at the end of the sheet. Yield the current table when it is complete."""
        if self.is_given_up:
            return
        filled = sum(bool(cell.strip()) for cell in row or ())
        if self._pending is not None and (row is None or self._ends_before(row, filled)):
            yield self._pending
            self._pending = None
        if row is not None and filled:
            if self._pending is None:
                self._before_table(line, row, filled)
            else:
                self._pending.add(line, row)
        self._after_blank = not filled

    def _ends_before(self, row: Sequence[str], filled: int) -> bool:
        """Return whether a row after a blank line ends the table: a single cell, or the header of another
        table.
        """
        if self._pending is None or not self._after_blank or not filled:
            return False
        return filled == 1 or (self._pending.has_numbers and self._is_header(row))

    def _before_table(self, line: int, row: Sequence[str], filled: int) -> None:
        if filled == 1 and (self._header is None or is_unit(row[0])):
            line_text = next(" ".join(cell.split()) for cell in row if cell.strip())[:_MAX_LABEL_CHARS]
            title, self._unit = split_unit(line_text)
            self.title = title or self.title
        elif self._header is None:
            self._header, self._header_rows = row, 1
        elif continues_header(self._header, row, self._header_rows):
            self._header, self._header_rows = join_header(self._header, row), self._header_rows + 1
        else:
            unit = self._unit or header_unit(self._header)
            self._pending = _Pending(self._connect(), self._sheet, self.title, self._header, unit)
            self._header, self.has_gaps = None, False
            self._pending.add(line, row)

    @staticmethod
    def _is_header(row: Sequence[str]) -> bool:
        return not any(is_number(cell) for cell in row if cell.strip())


@dataclass
class _Pending:
    """A table that is being read. Its rows are stored as text until the types of all columns are known."""

    connection: sqlite3.Connection
    sheet: _Sheet
    title: str
    labels: Sequence[str]
    unit: str = ""
    has_numbers: bool = False
    _columns: list[ColumnReader] = field(default_factory=list)
    _batch: list[list[str | int]] = field(default_factory=list)
    _totals: list[TotalRow] = field(default_factory=list)
    _rows: int = 0
    _chars: int = 0

    def __post_init__(self) -> None:
        self.connection.execute("DROP TABLE IF EXISTS temp.waiting")
        self.connection.execute(f"CREATE TEMP TABLE waiting ({ROW} INTEGER)")
        self._widen(len(self.labels))

    def add(self, line: int, row: Sequence[str]) -> None:
        """Add a row.

        Raises:
            _TableError: the table is too wide or too large.
        """
        cells = [cell[:_MAX_CELL_CHARS] for cell in row]
        self._chars += sum(map(len, cells))
        if self._chars > MAX_TABLE_CHARS:
            raise _TableError(f"the table has more than {MAX_TABLE_CHARS:,} characters.")
        while len(cells) > len(self._columns) and not cells[-1].strip():
            cells.pop()
        if len(cells) > len(self._columns):
            self._flush()
            self._widen(len(cells))
        cells += [""] * (len(self._columns) - len(cells))
        for column, cell in zip(self._columns, cells, strict=True):
            column.add(cell)
        self.has_numbers = self.has_numbers or any(map(is_number, cells))
        self._rows += 1
        self._batch.append([line, *cells])
        if len(self._batch) == _BATCH:
            self._flush()

    def build_table(self, number: int) -> Table:
        """Write the complete table to the file and return its description. `number` counts the document's
        tables from 1.
        """
        self._flush()
        styles = {column.decimals for column in self._columns if column.decimals and column.kind != "text"}
        default = styles.pop() if len(styles) == 1 else self.sheet.decimals
        columns = [
            Column(name=name, label=label, kind=read.kind, unit=read.currency, has_raw=read.has_raw)
            for (name, label), read in zip(self._names(), self._columns, strict=True)
        ]
        stored = f"t{number}"
        self._write(stored, columns, default)
        described = [_with_values(self.connection, stored, column) for column in columns]
        return Table(
            number=number,
            stored_name=stored,
            title=self.title,
            unit=self.unit,
            sheet=self.sheet.name,
            page_number=self.sheet.page_number,
            row_count=self._rows - len(self._totals),
            columns=tuple(
                _with_remarks(self.connection, stored, column) if read.remark_count else column
                for column, read in zip(described, self._columns, strict=True)
            ),
            totals=tuple(self._totals[:_MAX_LEFT_OUT]),
        )

    def _write(self, stored: str, columns: Sequence[Column], default: Decimals) -> None:
        names = [f'"{column.name}" {_TYPES[column.kind]}' for column in columns]
        names += [f'"{column.name}{RAW}" TEXT' for column in columns if column.has_raw]
        self.connection.execute(f"CREATE TABLE {stored} ({ROW} INTEGER, {', '.join(names)})")
        converters = [read.converter(default) for read in self._columns]
        raw = [place for place, column in enumerate(columns) if column.has_raw]
        places = ", ".join("?" * (1 + len(columns) + len(raw)))
        waiting = self.connection.execute("SELECT * FROM temp.waiting ORDER BY rowid")
        self.connection.executemany(
            f"INSERT INTO {stored} VALUES ({places})",  # noqa: S608 - generated names and question marks
            (
                [line, *values, *(cells[place] for place in raw)]
                for line, cells, values in self._parts(waiting, columns, converters)
            ),
        )
        self.connection.execute("DROP TABLE temp.waiting")

    def _parts(
        self,
        waiting: Iterable[Sequence[Any]],
        columns: Sequence[Column],
        converters: Sequence[Callable[[str], Value]],
    ) -> Iterator[tuple[int, list[str], list[Value]]]:
        """Yield the line number, cells and converted values of each row, except total rows, which are added
        to `_totals`.
        """
        totals = TotalRows(
            [place for place, column in enumerate(columns) if column.kind in _ADDITIVE],
            [
                place
                for place, (column, read) in enumerate(zip(columns, self._columns, strict=True))
                if column.kind == "text" or read.remark_count
            ],
        )
        for number, (line, *stored) in enumerate(waiting, start=1):
            cells = [cell or "" for cell in stored]
            values = [convert(cell) for convert, cell in zip(converters, cells, strict=True)]
            if totals.is_total(cells, values, is_last=number == self._rows):
                label = next((" ".join(cell.split()) for cell in cells if cell.strip()), "")
                self._totals.append(TotalRow(line=line, label=label[:_MAX_SAMPLE_CHARS]))
            else:
                yield line, cells, values

    def _names(self) -> Iterator[tuple[str, str]]:
        """Yield a unique SQL name and the label of each column."""
        seen: set[str] = set()
        for place, label in enumerate(self.labels, start=1):
            label_text = " ".join(label.split())[:_MAX_LABEL_CHARS]
            name = base = identifier(label_text, f"column_{place}")
            number = 1
            while name in seen:
                number += 1
                name = f"{base}_{number}"
            seen.add(name)
            yield name, label_text or f"Column {place}"

    def _widen(self, width: int) -> None:
        while len(self.labels) > 1 and width == len(self.labels) and not self.labels[-1].strip():
            self.labels = self.labels[:-1]
            width -= 1
        if width > MAX_COLUMNS:
            raise _TableError(f"the table has {width:,} columns, but only {MAX_COLUMNS} can be loaded.")
        self.labels = [*self.labels, *[""] * (width - len(self.labels))]
        for place in range(len(self._columns), width):
            self.connection.execute(f"ALTER TABLE temp.waiting ADD COLUMN c{place} TEXT")
            self._columns.append(ColumnReader())

    def _flush(self) -> None:
        places = ", ".join("?" * (1 + len(self._columns)))
        self.connection.executemany(f"INSERT INTO temp.waiting VALUES ({places})", self._batch)  # noqa: S608
        self._batch.clear()


_TYPES = {
    "text": "TEXT",
    "integer": "INTEGER",
    "number": "REAL",
    "percent": "REAL",
    "money": "REAL",
    "date": "TEXT",
}


def _with_values(connection: sqlite3.Connection, stored: str, column: Column) -> Column:
    """Return the column with its most common values if it is text, otherwise with its range."""
    name = f'"{column.name}"'
    if column.kind == "text":
        # Safe to insert: column names were made by `identifier`.
        common = f"SELECT {name} FROM {stored} WHERE {name} <> '' GROUP BY 1 ORDER BY count(*) DESC, 1"  # noqa: S608
        rows = connection.execute(f"{common} LIMIT {_SAMPLES}").fetchall()
        samples = tuple(" ".join(value.split())[:_MAX_SAMPLE_CHARS] for (value,) in rows)
        return column.model_copy(update={"samples": samples})
    lowest, highest = connection.execute(f"SELECT min({name}), max({name}) FROM {stored}").fetchone()  # noqa: S608
    return column.model_copy(update={"lowest": _cell_text(lowest), "highest": _cell_text(highest)})


def _with_remarks(connection: sqlite3.Connection, stored: str, column: Column) -> Column:
    """Return the column with the most common cells that have no value, if it isn't text."""
    if column.kind == "text":
        return column
    raw = f'"{column.name}{RAW}"'
    counted = (
        f'SELECT {raw}, count(*) FROM {stored} WHERE "{column.name}" IS NULL GROUP BY 1 ORDER BY 2 DESC, 1'  # noqa: S608
    )
    remarks = [
        (" ".join(text.split())[:_MAX_SAMPLE_CHARS], count)
        for text, count in connection.execute(counted)
        if text.strip().casefold() not in EMPTY
    ]
    return column.model_copy(
        update={
            "remarks": tuple(text for text, _ in remarks[:_SAMPLES]),
            "remark_count": sum(count for _, count in remarks),
        }
    )


def _cell_text(value: str | float | None) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value if value is not None else "")
