"""Tables of a PDF page: ruled tables, and aligned rows of numbers that aren't part of a chart."""

from collections.abc import Sequence

from shared.ingestion.parsers.pdf_content import PageContent
from shared.ingestion.parsers.pdf_figures import page_figures
from shared.ingestion.parsers.pdf_lines import Line
from shared.ingestion.parsers.pdf_tables import Table, ruled_tables
from shared.ingestion.parsers.pdf_unruled import unruled_tables

_SIGNS = frozenset(("$", "€", "£", "%", ")", ")%"))
# An unruled table may replace a ruled table even if it lacks this share of the ruled table's words.
_TORN_SHARE = 0.1
# Lines and bars thinner than this many points don't suggest a chart.
_THIN = 3.0
# A table with a larger share of its area within a figure is a chart with labels.
_CHART_SHARE = 0.3


def read_tables(page: PageContent, lines: Sequence[Line]) -> list[Table]:
    """Return the tables of a page, ruled tables first. No word belongs to two tables."""
    ruled = ruled_tables(page, lines)
    tables = []
    for table in _outside_charts(list(unruled_tables(lines)), ruled, page, lines):
        rivals = [other for other in ruled if other.words & table.words]
        if all(_is_torn(other, table) for other in rivals):
            ruled = [other for other in ruled if other not in rivals]
            tables.append(table)
    return [*ruled, *tables]


def _is_torn(ruled: Table, table: Table) -> bool:
    """Return whether ruling lines separate currency or percent signs from their numbers, while the unruled
    table contains nearly all the same words.
    """
    has_signs = any(cell in _SIGNS for row in ruled.rows[1:] for cell in row)
    return has_signs and len(ruled.words - table.words) <= _TORN_SHARE * len(ruled.words)


def _outside_charts(
    tables: Sequence[Table], ruled: Sequence[Table], page: PageContent, lines: Sequence[Line]
) -> list[Table]:
    dark = [
        one.region
        for one in page.drawn
        if one.region is not None
        # Ignore pale areas, which are backgrounds of rows or headers.
        and not one.is_pale
        and min(one.region.width, one.region.height) > _THIN
    ]
    if not any(table.box.overlaps(region) for table in tables for region in dark):
        return list(tables)
    charts = [figure.region for figure in page_figures(page, lines, [table.box for table in ruled])]
    return [
        table
        for table in tables
        if all(table.box.intersect(chart).area <= _CHART_SHARE * table.box.area for chart in charts)
    ]
