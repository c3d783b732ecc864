"""Cards: searchable text about a table, with its title, columns, types, common values and ranges. Pure."""

from collections.abc import Sequence

from shared.platform.tokens import TokenCounter
from shared.tables.models import Column, Table

_SHOWN_TOTALS = 5
_KINDS = {
    "text": "text",
    "integer": "whole number",
    "number": "number",
    "percent": "percentage",
    "money": "money",
    "date": "date",
}


def card(table: Table, max_tokens: int, count_tokens: TokenCounter) -> str:
    """Return the card of a table, shortened to `max_tokens`. Lines of columns that don't fit are replaced by
    their number.
    """
    place = f", sheet {table.sheet}" if table.sheet and table.sheet != table.title else ""
    lines = [f"Table: {table.title}{place}"]
    lines += [f"Unit: {table.unit}"] if table.unit else []
    lines += [table.description] if table.description else []
    lines += [f"Also called: {'; '.join(table.synonyms)}"] if table.synonyms else []
    lines += [f"It answers: {one.question}" for one in table.approved]
    lines += _totals(table)
    lines += [f"{table.row_count:,} rows. Columns:", *map(_line, table.columns)]
    return _fitting(lines, max_tokens, count_tokens)


def _totals(table: Table) -> list[str]:
    if not table.totals:
        return []
    labels = ", ".join(f"{one.label} (line {one.line})" for one in table.totals[:_SHOWN_TOTALS])
    more = len(table.totals) - _SHOWN_TOTALS
    return [f"Totals of other rows, left out: {labels}{f' and {more} more' if more > 0 else ''}"]


def _fitting(lines: Sequence[str], max_tokens: int, count_tokens: TokenCounter) -> str:
    sizes = count_tokens(lines)
    count, room = 0, max_tokens - max(count_tokens([f"… and {len(lines):,} more columns"]))
    for size in sizes:
        if size + 1 > room:
            break
        count, room = count + 1, room - size - 1
    fitting = list(lines[:count]) or [lines[0][: max_tokens * 2]]
    more = len(lines) - len(fitting)
    return "\n".join([*fitting, f"… and {more:,} more columns"] if more else fitting)


def _line(column: Column) -> str:
    unit = f" in {column.unit}" if column.unit else ""
    label = f" ({column.label})" if column.label.casefold() != column.name else ""
    values = ""
    if column.samples:
        values = f", such as {'; '.join(column.samples)}"
    elif column.lowest:
        values = f", from {column.lowest} to {column.highest}"
    if column.remarks:
        values += f", without a value in {column.remark_count:,} rows: {'; '.join(column.remarks)}"
    description = f". {column.description}" if column.description else ""
    synonyms = f". Also called: {'; '.join(column.synonyms)}" if column.synonyms else ""
    return f"- {column.name}{label}: {_KINDS[column.kind]}{unit}{values}{description}{synonyms}"
