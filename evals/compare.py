"""`python -m evals.compare old.json new.json`: compare two reports of `make eval`, measure by measure.

Exit code 2 if a file is not a report.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Reports have four decimal places, so smaller differences are rounding errors.
_SAME = 0.00005

Sets = Mapping[str, Mapping[str, float]]


def main() -> int:
    """Compare the two reports named on the command line, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m evals.compare", description=__doc__)
    parser.add_argument("old", type=Path, help="Report of the earlier revision.")
    parser.add_argument("new", type=Path, help="Report of the later revision.")
    arguments = parser.parse_args()
    try:
        print(compare(read_report(arguments.old), read_report(arguments.new)), end="")
    except (OSError, ValueError) as failed:
        print(failed, file=sys.stderr)
        return 2
    return 0


def read_report(path: Path) -> dict[str, Any]:
    """Read a report and return its JSON object.

    Raises:
        ValueError: the file isn't a report.
    """
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise ValueError(f"{path} is not JSON.") from None
    if not isinstance(report, dict) or not isinstance(report.get("sets"), dict):
        raise ValueError(f"{path} is not a report of `make eval`.")
    return report


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return a Markdown table that compares the measures of each set in both reports. Sets in only one report
    are listed below it.
    """
    old_sets, new_sets = old["sets"], new["sets"]
    parts = [
        f"# Differences\n\nOld: {old.get('commit')}, {old.get('model')}\n\n"
        f"New: {new.get('commit')}, {new.get('model')}\n"
    ]
    parts += [_table(name, old_sets[name], new_sets[name]) for name in new_sets if name in old_sets]
    parts += [f"Only in the {which}: {', '.join(names)}.\n" for which, names in _alone(old_sets, new_sets)]
    return "\n".join(parts)


def _table(name: str, old: Mapping[str, float], new: Mapping[str, float]) -> str:
    lines = [f"## {name}\n", "| measure | old | new | difference |", "|---|---:|---:|---:|"]
    for measure in dict.fromkeys([*new, *old]):
        before, after = old.get(measure), new.get(measure)
        lines.append(f"| {measure} | {_number(before)} | {_number(after)} | {_difference(before, after)} |")
    return "\n".join(lines) + "\n"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _difference(before: float | None, after: float | None) -> str:
    if before is None or after is None:
        return ""
    change = after - before
    return "" if abs(change) < _SAME else f"{round(change, 4):+g}"


def _alone(old: Sets, new: Sets) -> list[tuple[str, list[str]]]:
    only = [("old", sorted(set(old) - set(new))), ("new", sorted(set(new) - set(old)))]
    return [(which, names) for which, names in only if names]


if __name__ == "__main__":
    sys.exit(main())
