"""The report as JSON, and as Markdown with tables and histograms. Pure."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from evals.evaluation.asking import Outcome
from evals.evaluation.result import SetResult, first_rank
from evals.evaluation.scoring import Row

# Length of the longest bar, in characters.
_BAR = 40
# Maximum number of entries shown in a list. Further entries are only counted.
_SHOWN = 40
_QUOTE_CHARS = 160
_RANKS = (("1", 1, 1), ("2-3", 2, 3), ("4-5", 4, 5), ("6-10", 6, 10), ("11-50", 11, 50))
_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0)


@dataclass(frozen=True)
class Origin:
    """The commit and models that were evaluated."""

    model: str
    commit: str


def as_json(results: Sequence[SetResult], origin: Origin) -> str:
    """Return the report as JSON: `{"sets": {name: {measure: number}}, "model", "commit"}`."""
    sets = {result.name: result.numbers for result in results}
    return json.dumps({"sets": sets, **asdict(origin)}, indent=1) + "\n"


def as_json_lines(results: Sequence[SetResult]) -> str:
    """Return JSON lines, one per question, with its hits, answer and measures."""
    lines = [
        json.dumps(_line(result.name, outcome, row), ensure_ascii=False)
        for result in results
        for outcome, row in zip(result.outcomes, result.rows, strict=True)
    ]
    return "".join(f"{line}\n" for line in lines)


def as_markdown(results: Sequence[SetResult], origin: Origin) -> str:
    """Return the report as Markdown. docs/internals/measuring.md explains the measures."""
    head = f"# Evaluation\n\nModel: {origin.model}\n\nCommit: {origin.commit}\n"
    overview = table("measure", {result.name: result.measures for result in results})
    counts = table("count", {result.name: result.counts for result in results})
    return "\n".join([head, overview, counts, *(_section(result) for result in results)])


def table(corner: str, columns: Mapping[str, Mapping[str, float]]) -> str:
    """Return a Markdown table with a column for each mapping and a row for each name. `corner` is the heading
    of the column with the names.
    """
    names = dict.fromkeys(name for column in columns.values() for name in column)
    lines = [f"| {corner} | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
    for name in names:
        cells = (number(column.get(name)) for column in columns.values())
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def number(value: float | None) -> str:
    """Format a number with a suitable number of decimal places. Return "" for None."""
    if value is None:
        return ""
    return (
        str(int(value)) if value == int(value) and abs(value) > 1 else f"{value:.4f}".rstrip("0").rstrip(".")
    )


def histogram(title: str, counts: Mapping[str, int]) -> str:
    """Return a histogram as text bars in a Markdown code block."""
    most = max([*counts.values(), 1])
    width = max(len(label) for label in counts)
    bars = [
        f"{label:>{width}} | {'#' * round(_BAR * count / most)} {count}" for label, count in counts.items()
    ]
    return "\n".join([title, "", "```", *bars, "```", ""])


def _section(result: SetResult) -> str:
    parts = [f"## {result.name}\n"]
    if result.kinds:
        parts.append(table("measure", columns_by_kind(result.kinds)))
    ranks = [first_rank(outcome) for outcome in result.outcomes if outcome.question.is_answerable]
    if ranks:
        parts.append(histogram("Rank of the first target that holds the answer:", rank_counts(ranks)))
    parts.extend(_latency(result.outcomes))
    parts.append(_list("Documents that are not ready", _not_ready(result)))
    parts.append(_list("Calls that failed (counted as the worst)", _failure_list(result.outcomes)))
    parts.append(_list("Quotations shown as verified that the page does not hold", _false_quotes(result)))
    return "\n".join(part for part in parts if part)


def columns_by_kind(kinds: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return the measures by kind of question, from a flat mapping with keys `measure.kind`."""
    columns: dict[str, dict[str, float]] = {}
    for full_name, value in kinds.items():
        name, _, kind = full_name.partition(".")
        columns.setdefault(kind, {})[name] = value
    return columns


def rank_counts(ranks: Sequence[int | None]) -> dict[str, int]:
    """Return the number of questions for each rank of the first correct target. Questions without a correct
    target are counted as "none".
    """
    present = [rank for rank in ranks if rank is not None]
    counts = {label: sum(first <= rank <= last for rank in present) for label, first, last in _RANKS}
    return {**counts, "none": len(ranks) - len(present)}


def _latency(outcomes: Sequence[Outcome]) -> Iterable[str]:
    for title, seconds in (
        ("Seconds of a search:", [outcome.search_seconds for outcome in outcomes]),
        ("Seconds of an answer:", [outcome.answer_seconds for outcome in outcomes]),
    ):
        values = [one for one in seconds if one is not None]
        if values:
            yield histogram(title, second_counts(values))


def second_counts(seconds: Sequence[float]) -> dict[str, int]:
    """Return a histogram of call durations: the number of calls in each range of seconds."""
    counts, below = {}, 0.0
    for limit in (*_SECONDS, float("inf")):
        label = f"<= {limit:g}" if limit != float("inf") else f"> {below:g}"
        counts[label] = sum(below < one <= limit for one in seconds)
        below = limit
    return counts


def _list(title: str, entries: Sequence[str]) -> str:
    if not entries:
        return ""
    more = [f"- and {len(entries) - _SHOWN} more"] if len(entries) > _SHOWN else []
    return "\n".join([f"{title}: {len(entries)}\n", *(f"- {one}" for one in entries[:_SHOWN]), *more, ""])


def _not_ready(result: SetResult) -> list[str]:
    return [
        f"{document.filename}: {document.status} {document.reason}" for document in result.ingestion.not_ready
    ]


def _failure_list(outcomes: Iterable[Outcome]) -> list[str]:
    return [
        f"{outcome.question.query_id}, {call}: {message}"
        for outcome in outcomes
        for call, message in outcome.errors.items()
    ]


def _false_quotes(result: SetResult) -> list[str]:
    return [
        f"{query_id}: {cited.filename}, page {cited.page_number}: {_one_line(cited.quote)}"
        for query_id, cited in result.false_quotes
    ]


def _one_line(quote: str) -> str:
    return " ".join(quote.split())[:_QUOTE_CHARS]


def _line(set_name: str, outcome: Outcome, row: Row) -> dict[str, object]:
    answer = outcome.answer
    return {
        "set": set_name,
        "query_id": outcome.question.query_id,
        "query": outcome.question.text,
        "type": outcome.question.kind,
        "relevant": sorted(map(list, outcome.question.grades), key=str),
        "first_rank": first_rank(outcome),
        "measures": {name: round(part / whole, 4) for name, (part, whole) in row.items() if whole},
        "pages": list(dict.fromkeys(outcome.pages or ()))[:10],
        "answer": answer.text if answer else None,
        "abstained": answer.abstained if answer else None,
        "citations": [[*cited.target, cited.shown_verified, cited.quote] for cited in answer.citations]
        if answer
        else [],
        "errors": dict(outcome.errors),
    }
