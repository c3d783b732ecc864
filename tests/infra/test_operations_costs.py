"""Every table of docs/operations.md that is worked out is worked out again here, from the page's own symbols.

Formulas are read from the page, so a changed price, token count or formula without its result fails. What is
said to be measured on another page stands there.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping

import pytest

from functions.maintenance import SCHEDULE_S
from shared.ingestion.inventory import MOST_DOCUMENTS
from shared.ingestion.reconciliation import MAX_STARTS
from tests.architecture.source_tree import ROOT
from tests.infra.test_operations_page import PAGE, section

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
SHORT = {"million": 1e6, "thousand": 1e3}
OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def rows(heading: str, first: str) -> list[list[str]]:
    """Cells of the table below a heading whose head begins with `first`, without head and rule."""
    table = re.search(
        rf"^\| {re.escape(first)} \|.*\n\|[-|]+\|\n((?:\|.*\n?)+)", section(heading), re.MULTILINE
    )
    assert table, first
    return [[cell.strip() for cell in line.strip("|\n ").split("|")] for line in table[1].splitlines()]


def number(cell: str) -> float:
    """The first number of a cell, with the word of its size."""
    found = re.search(rf"({NUMBER.pattern})(?: (million|thousand))?", cell)
    assert found, cell
    return float(found[1].replace(",", "")) * SHORT.get(found[2] or "", 1)


def symbols() -> dict[str, float]:
    """Symbol -> value, of both tables."""
    values: dict[str, float] = {}
    for names, _, cell, *_ in [*rows("What one thing costs", "symbol"), *rows("What it costs", "symbol")]:
        given = [value.replace(",", "") for value in NUMBER.findall(cell.replace(", ", " ; "))]
        named = re.findall(r"`(\w+)`", names)
        assert len(named) == len(given), names
        values.update(zip(named, map(float, given), strict=True))
    return values


def worked_out(formula: str, values: Mapping[str, float]) -> float:
    def of(node: ast.expr) -> float:
        if isinstance(node, ast.BinOp):
            return OPERATORS[type(node.op)](of(node.left), of(node.right))
        if isinstance(node, ast.Name):
            return values[node.id]
        assert isinstance(node, ast.Constant)
        assert isinstance(node.value, int)
        return node.value

    return of(ast.parse(formula.replace("·", "*"), mode="eval").body)


def shown(cell: str) -> tuple[float, float]:
    """What a cell says, and how far off it may be: half of its last digit."""
    text = NUMBER.search(cell)
    assert text, cell
    places = len(text[0].partition(".")[2])
    return number(cell), 0.5 * 10**-places + 1e-9


@pytest.mark.parametrize("what", ["1,000 questions", "1,000 pages"])
def test_costs_are_those_of_their_formulas(what: str) -> None:
    *parts, (together, _, total) = rows("What it costs", what)
    values = symbols()
    costs = {name: worked_out(formula.strip("`"), values) for name, formula, _ in parts}
    assert len(costs) >= 6
    wrong = {
        name: costs[name] for name, _, cell in parts if abs(costs[name] - shown(cell)[0]) > shown(cell)[1]
    }
    assert wrong == {}
    assert "together" in together
    assert abs(sum(costs.values()) - shown(total)[0]) <= shown(total)[1]


def test_every_symbol_is_used_or_told_of() -> None:
    values = symbols()
    page = section("Sizes") + section("What it costs")
    for name in values.keys() - {"N"}:
        assert len(re.findall(rf"\b{name}\b", page)) >= 2, name


def test_a_month_of_ten_thousand_people_is_worked_out() -> None:
    values = symbols()
    question, page = (
        sum(worked_out(row[1].strip("`"), values) for row in rows("What it costs", f"1,000 {what}")[:-1])
        for what in ("questions", "pages")
    )
    told = section("What it costs")
    of_people = re.search(r"10,000 people cost some ([\d,]+) US dollars", told)
    of_pages = re.search(r"of ([\d.]+) million pages ([\d,]+);", told)
    assert of_people
    assert of_pages
    assert number(of_people[1]) == round(21 * 50 * question, -2)
    assert number(of_pages[2]) == round(float(of_pages[1]) * 1000 * page, -2)


def about(cell: str, value: float) -> bool:
    """Whether a cell says the value, to its two or three figures."""
    return math.isclose(number(cell), value, rel_tol=0.02)


def test_sizes_by_blocks_are_worked_out() -> None:
    values = symbols()
    partitions = {
        "basic": (15, 5),
        "standard": (160, 35),
        "standard2": (512, 150),
        "standard3": (1024, 300),
    }
    for told, pages, documents, vectors, storage, enough, embedding in rows("By blocks", "blocks"):
        blocks = number(told)
        assert about(pages, blocks / values["B"]), told
        assert about(documents, blocks / values["B"] / values["L"]), told
        assert about(vectors, blocks * 1024 * 4 * 1.1 / 1e9), told
        assert about(storage, blocks * 12e3 / 1e9), told
        assert about(embedding, blocks * values["t"] / 350_000 / 60), told
        for tier, count in re.findall(r"`(\w+)`, (\d+)", enough):
            by_storage, by_vectors = partitions[tier]
            need = max(number(storage) / by_storage, number(vectors) / by_vectors) / 0.8
            least = next(allowed for allowed in (1, 2, 3, 4, 6, 12) if allowed >= need)
            assert int(count) == least, (told, tier)


def test_rounds_of_the_reconciliation_are_worked_out() -> None:
    for documents, parts, takes in rows("Above 10,000 documents", "documents"):
        wanted = 2 ** math.ceil(math.log2(number(documents) / MOST_DOCUMENTS))
        assert int(parts) == wanted
        assert number(takes) == wanted * SCHEDULE_S / 60
    told = re.search(r"10,900 documents (\d+) hours, 109,000 four days, 1.09 million (\d+) days", PAGE)
    assert told
    assert int(told[1]) == round(10_900 / MAX_STARTS / 12)
    assert int(told[2]) == round(1.09e6 / MAX_STARTS / 12 / 24)


def test_sizes_by_people_are_worked_out() -> None:
    values = symbols()
    for told, day, second, at_once, instances, tokens, telemetry in rows("By people", "people"):
        questions = number(told) * 5
        busiest = questions / (8 * 3600) * 3
        streams = math.ceil(busiest * 25)
        assert number(day) == questions
        assert abs(number(second) - busiest) <= 0.005
        assert number(at_once) == streams
        assert number(instances) == values["G"] * max(math.ceil(streams / 32), math.ceil(busiest / 2.4))
        assert about(tokens, busiest * 60 * (values["T_in"] + values["T_out"]))
        assert abs(number(telemetry) - questions * values["Y"] / 1e6) <= 0.006
    most = round(busiest * 60 * 24_000 / 1e3)
    assert f"({most} if every question used all that it may)" in section("By people")


MEASURED = re.compile(r"([^|;]*)\]\((\w+\.md)")


@pytest.mark.parametrize(
    "row", [row for row in rows("What one thing costs", "symbol") if "](" in row[3]], ids=lambda row: row[0]
)
def test_what_was_measured_elsewhere_stands_there(row: list[str]) -> None:
    told = MEASURED.search(row[3])
    assert told
    there = (ROOT / "docs" / told[2]).read_text(encoding="utf-8")
    figures = [figure for figure in NUMBER.findall(told[1]) if len(figure) > 1]
    assert figures
    assert [figure for figure in figures if figure not in there] == []


def test_limits_are_those_of_the_code() -> None:
    host = (ROOT / "host.json").read_text(encoding="utf-8")
    app = (ROOT / "infra/bicep/modules/function-app.bicep").read_text(encoding="utf-8")
    monitoring = (ROOT / "infra/bicep/modules/monitoring.bicep").read_text(encoding="utf-8")
    activities = re.search(r'"maxConcurrentActivityFunctions": (\d+)', host)
    streams = re.search(r"param httpConcurrency int = (\d+)", app)
    cap = re.search(r"param dailyCapGb int = (\d+)", monitoring)
    assert activities
    assert streams
    assert cap
    limits = section("What limits what")
    assert f"{activities[1]} (`maxConcurrentActivityFunctions`" in limits
    assert f"`maxConcurrentActivityFunctions` {activities[1]}," in PAGE
    assert f"{streams[1]} (`httpConcurrency`)" in limits
    assert f"{cap[1]} GB a day (`dailyCapGb`" in limits


def test_other_figures_of_the_page_are_those_of_the_code() -> None:
    storage = (ROOT / "infra/bicep/modules/storage.bicep").read_text(encoding="utf-8")
    days = re.search(r"param softDeleteDays int = (\d+)", storage)
    assert days
    assert PAGE.count(f"for {days[1]} days") >= 2
    assert f"{MAX_STARTS * 12:,} by the reconciliation" in section("What limits what")
    assert f"{MAX_STARTS * 12:,} documents an hour" in section("When everything is gone")
    streams = (ROOT / "functions/http/event_stream.py").read_text(encoding="utf-8")
    assert "_POLLS_S = (0.02, 0.25)" in streams
    assert "(20 to 250 ms)" in section("What only a subscription can show")


def test_what_many_people_at_once_see_is_what_was_measured() -> None:
    told = re.search(r"Fifty people at once were measured.*?\(\[load\]", section("By people"))
    assert told
    there = (ROOT / "docs/load.md").read_text(encoding="utf-8").partition("### Starved")[0]
    figures = re.findall(r"(\d[\d.]*) (?:questions|ms)", told[0])
    assert len(figures) == 3
    assert [figure for figure in figures if not re.search(rf"\b{figure}", there)] == []
