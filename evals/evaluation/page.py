"""The report as a self-contained HTML page with plots, tables, and a section for each question. Pure.

It loads nothing and runs no scripts, which its content security policy enforces. Text from documents, models
and question sets is escaped.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from evals.evaluation.asking import ModelCall, Outcome
from evals.evaluation.question_set import Target
from evals.evaluation.report import Origin, columns_by_kind, number, rank_counts, second_counts
from evals.evaluation.result import SetResult, first_rank
from evals.evaluation.scoring import Row

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --bar: #3b6fb6; --bad: #b3261e; --good: #2e7d32; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: .2rem .7rem; text-align: left; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.plots { display: flex; flex-wrap: wrap; gap: 2rem; }
figure { margin: 0; } figcaption { font-weight: 600; }
svg text { font: 12px system-ui, sans-serif; fill: currentColor; } svg rect { fill: var(--bar); }
section.question { border-top: 2px solid var(--line); margin-top: 2rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; border-left: 3px solid var(--line); padding-left: 1em }
.bad { color: var(--bad); } .good { color: var(--good); }
"""
_BAR_PX, _ROW_PX, _LABEL_PX = 240, 20, 70
_PAGES_SHOWN = 10


def as_html(results: Sequence[SetResult], origin: Origin) -> str:
    """Return the report of all sets as an HTML page."""
    overview = _table("measure", {result.name: result.measures | result.counts for result in results})
    sets = "".join(_set(number_, result) for number_, result in enumerate(results, start=1))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Evaluation</title><style>{_STYLE}</style></head><body><h1>Evaluation</h1>"
        f"<p>Model: {_safe(origin.model)}<br>Commit: {_safe(origin.commit)}</p>"
        f"{overview}{sets}</body></html>\n"
    )


def bars(title: str, counts: Mapping[str, int]) -> str:
    """Return a bar chart as inline SVG, with a text label for each bar."""
    most, height = max([*counts.values(), 1]), _ROW_PX * len(counts)
    width = _LABEL_PX + _BAR_PX + 50
    rows = "".join(
        f'<text x="{_LABEL_PX - 8}" y="{_ROW_PX * row + 14}" text-anchor="end">{_safe(label)}</text>'
        f'<rect x="{_LABEL_PX}" y="{_ROW_PX * row + 3}" width="{_BAR_PX * count / most:.1f}" height="14"/>'
        f'<text x="{_LABEL_PX + _BAR_PX * count / most + 6:.1f}" y="{_ROW_PX * row + 14}">{count}</text>'
        for row, (label, count) in enumerate(counts.items())
    )
    return (
        f"<figure><figcaption>{_safe(title)}</figcaption>"
        f'<svg role="img" aria-label="{_safe(title)}" width="{width}" height="{height}">{rows}</svg></figure>'
    )


def _set(place: int, result: SetResult) -> str:
    anchors = [f"q{place}-{index}" for index in range(1, len(result.outcomes) + 1)]
    listed = "".join(
        f'<tr><td><a href="#{anchor}">{_safe(outcome.question.query_id)}</a></td>'
        f"<td>{_safe(outcome.question.text)}</td><td>{_verdict(outcome)}</td></tr>"
        for anchor, outcome in zip(anchors, result.outcomes, strict=True)
    )
    sections = "".join(map(_question, anchors, result.outcomes, result.rows))
    return (
        f'<h2>{_safe(result.name)}</h2><div class="plots">{"".join(_plots(result))}</div>'
        f"{_table('measure by kind', columns_by_kind(result.kinds)) if result.kinds else ''}"
        f"<table><tr><th>question</th><th></th><th></th></tr>{listed}</table>{sections}"
    )


def _plots(result: SetResult) -> Iterable[str]:
    ranks = [first_rank(outcome) for outcome in result.outcomes if outcome.question.is_answerable]
    if ranks:
        yield bars("Rank of the first target that holds the answer", rank_counts(ranks))
    for title, seconds in (
        ("Seconds of a search", [outcome.search_seconds for outcome in result.outcomes]),
        ("Seconds of an answer", [outcome.answer_seconds for outcome in result.outcomes]),
    ):
        values = [one for one in seconds if one is not None]
        if values:
            yield bars(title, second_counts(values))


def _verdict(outcome: Outcome) -> str:
    if outcome.errors:
        return '<span class="bad">failed</span>'
    if outcome.answer is None:
        return f"found at rank {first_rank(outcome) or 'none'}"
    verdict = "no answer" if outcome.answer.abstained else "answered"
    is_right = outcome.answer.abstained is not outcome.question.is_answerable
    return f'<span class="{"good" if is_right else "bad"}">{verdict}</span>'


def _question(anchor: str, outcome: Outcome, row: Row) -> str:
    question, answer = outcome.question, outcome.answer
    measures = {name: part / whole for name, (part, whole) in row.items() if whole}
    expected = [*question.answers, *sorted(_place(target) for target in question.grades)]
    parts = [
        f'<section class="question" id="{anchor}">',
        f"<h3>{_safe(question.query_id)}: {_safe(question.text)}</h3>",
        _list("Expected", expected or ["The documents do not hold the answer."]),
        f"<h4>Answer</h4><pre>{_safe(answer.text)}</pre>" if answer else "",
        _citations(outcome),
        _list("Pages found, best first", [_place(page) for page in _first_pages(outcome)]),
        "".join(_call(place, call) for place, call in enumerate(outcome.calls, start=1)),
        _list("Errors", [f"{call}: {message}" for call, message in outcome.errors.items()]),
        _table("measure", {"": {**measures, **_times(outcome)}}),
        "</section>",
    ]
    return "".join(parts)


def _first_pages(outcome: Outcome) -> list[Target]:
    return list(dict.fromkeys(outcome.pages or ()))[:_PAGES_SHOWN]


def _citations(outcome: Outcome) -> str:
    cited = outcome.answer.citations if outcome.answer else ()
    return _list(
        "Citations",
        [
            f"{_place((one.filename, one.page_number))}, "
            f"{'verified' if one.shown_verified else 'not verified'}: “{one.quote}”"
            for one in cited
        ],
    )


def _call(place: int, call: ModelCall) -> str:
    title = f"Model call {place}: {call.tokens_in} tokens in, {call.tokens_out} out, {call.seconds:.2f} s"
    return f"<details><summary>{title}</summary><pre>{_safe(call.shown)}</pre></details>"


def _times(outcome: Outcome) -> dict[str, float]:
    times = {"search_seconds": outcome.search_seconds, "answer_seconds": outcome.answer_seconds}
    return {name: round(seconds, 3) for name, seconds in times.items() if seconds is not None}


def _list(title: str, entries: Sequence[str]) -> str:
    if not entries:
        return ""
    return f"<h4>{title}</h4><ul>{''.join(f'<li>{_safe(one)}</li>' for one in entries)}</ul>"


def _table(corner: str, columns: Mapping[str, Mapping[str, float]]) -> str:
    names = dict.fromkeys(name for column in columns.values() for name in column)
    head = "".join(f"<th>{_safe(name)}</th>" for name in columns)
    rows = "".join(
        f"<tr><td>{_safe(name)}</td>"
        + "".join(f'<td class="number">{number(column.get(name))}</td>' for column in columns.values())
        + "</tr>"
        for name in names
    )
    return f"<table><tr><th>{corner}</th>{head}</tr>{rows}</table>"


def _place(target: Target) -> str:
    name, page = target
    return name if page is None else f"{name}, page {page}"


def _safe(text: str) -> str:
    """Escape text for HTML, and replace characters that HTML doesn't allow."""
    return escape("".join(sign if sign in "\n\t" or sign.isprintable() else "\ufffd" for sign in text))
