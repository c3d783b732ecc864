"""Report on all runs: violated guarantees, durations and failed checks. Pure."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from evals.budgets.seen import EPSILON_MS, Seen

_SHARES = (50, 90, 95, 99)
_BINS_MS = (0, 100, 250, 500, 750, 1000, 2000, 5000, 10_000)


def report(runs: Sequence[Seen]) -> dict[str, Any]:
    """Return the report as a JSON object. A description of the machine is added by the caller."""
    return {
        **promises(runs),
        "budget_ms": sorted({run.limits.latency_ms for run in runs}),
        "epsilon_ms": max((run.limits.epsilon_ms for run in runs), default=EPSILON_MS),
        "outcomes": dict(Counter(run.outcome for run in runs)),
        "delegated": sum(any(name == "delegate" for name, _ in run.decisions) for run in runs),
        "children": sum(len(run.children) for run in runs),
        "child_statuses": dict(Counter(str(view.get("status")) for run in runs for view in run.views)),
        "reasons": dict(Counter(code for run in runs for _, codes in run.decisions for code in codes)),
        "wall_ms": spread([run.wall_ms for run in runs if run.wall_ms is not None]),
        "child_end_after_deadline_s": _child_ends(runs),
        "tokens": spread([run.spent.tokens for run in runs if run.spent is not None]),
        "overrun_histogram_ms": histogram([run.overrun_ms for run in runs if run.wall_ms is not None]),
        "load": spread([run.load for run in runs]),
        "faults": {fault: _of_fault([run for run in runs if run.fault == fault]) for fault in _faults(runs)},
        "defects": [_row(run) for run in runs if run.defects],
        "all_runs": [_row(run) for run in runs],
    }


def promises(runs: Sequence[Seen]) -> dict[str, float]:
    """Return how many runs violated each guarantee. All numbers except `runs` and `worst_overrun_ms` must be
    0.
    """
    return {
        "runs": len(runs),
        "over_budget": sum(run.is_over_budget for run in runs),
        "worst_overrun_ms": round(max((run.overrun_ms for run in runs), default=0.0), 1),
        "stuck": sum(run.is_stuck for run in runs),
        "children_alive": sum(run.children_alive for run in runs),
        "tokens_over": sum(run.is_over_tokens for run in runs),
        "unanswered": sum(run.is_unanswered for run in runs),
        "ended_twice": sum(run.is_duplicated for run in runs),
        "cut_without_warning": sum(run.is_unwarned for run in runs),
    }


def are_kept(measures: Mapping[str, float]) -> bool:
    """Return whether all guarantees were met."""
    return not any(measures[name] for name in measures if name not in ("runs", "worst_overrun_ms"))


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return minimum, maximum and percentiles of the values, or an empty dictionary if there are no
    values.
    """
    ordered = sorted(values)
    if not ordered:
        return {}
    shares = {f"p{share}": ordered[min(len(ordered) * share // 100, len(ordered) - 1)] for share in _SHARES}
    return {"min": ordered[0], **shares, "max": ordered[-1], "mean": round(statistics.fmean(ordered), 1)}


def histogram(values: Sequence[float]) -> dict[str, int]:
    """Return the number of values in each bin of a fixed histogram of milliseconds."""
    counts = dict.fromkeys([*(f"<= {bound}" for bound in _BINS_MS), "more"], 0)
    for value in values:
        name = next((f"<= {bound}" for bound in _BINS_MS if value <= bound), "more")
        counts[name] += 1
    return counts


def as_text(measures: Mapping[str, Any]) -> str:
    """Format the report as text: totals, a table of faults, and a line for each run with a defect."""
    head = ", ".join(f"{name} {measures[name]}" for name in promises(()))
    lines = [head, "", "| fault | runs | delegated | children | wall ms p50 | max | outcomes | broken |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for fault, one in measures["faults"].items():
        wall = one["wall_ms"]
        outcomes = ", ".join(f"{name} {count}" for name, count in one["outcomes"].items())
        lines.append(
            f"| {fault} | {one['runs']} | {one['delegated']} | {one['children']} | {wall.get('p50', 0):.0f} "
            f"| {wall.get('max', 0):.0f} | {outcomes} | {one['broken']} |"
        )
    rows = [f"{', '.join(row['defects'])}: {row}" for row in measures["defects"]]
    return "\n".join([*lines, "", *rows])


def _faults(runs: Sequence[Seen]) -> list[str]:
    return list(dict.fromkeys(run.fault for run in runs))


def _of_fault(runs: Sequence[Seen]) -> dict[str, Any]:
    return {
        "runs": len(runs),
        "delegated": sum(any(name == "delegate" for name, _ in run.decisions) for run in runs),
        "children": sum(len(run.children) for run in runs),
        "wall_ms": spread([run.wall_ms for run in runs if run.wall_ms is not None]),
        "outcomes": dict(Counter(run.outcome for run in runs)),
        "broken": sum(bool(run.defects) for run in runs),
    }


def _child_ends(runs: Sequence[Seen]) -> dict[str, float]:
    ends = [child.ended_after_s for run in runs for child in run.children if child.ended_after_s is not None]
    return spread(ends)


def _row(run: Seen) -> dict[str, Any]:
    """Return the row for a run in the report. It contains no text from documents."""
    last = run.last_event
    return {
        "defects": list(run.defects),
        "fault": run.fault,
        "knobs": run.knobs,
        "kind": run.kind,
        "question": run.question,
        "run_id": run.run_id,
        "wall_ms": run.wall_ms,
        "outcome": run.outcome,
        "error_type": last.data.get("type") if last is not None and last.name == "error" else None,
        "warnings": list(run.warnings),
        "decisions": [[name, *codes] for name, codes in run.decisions],
        "children": [
            {"status": child.status, "ended_after_deadline_s": child.ended_after_s} for child in run.children
        ],
        "sub_agents": [
            {
                name: view.get(name)
                for name in ("profile", "status", "turns", "tokens", "cost_usd", "warnings")
            }
            for view in run.views
        ],
        "spent": None if run.spent is None else vars(run.spent),
        "token_budget": run.limits.tokens,
        "excesses": list(run.excesses),
        "load": round(run.load, 2),
        "reconnects": run.reconnects,
    }
